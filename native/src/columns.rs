//! Columns of unwritten rows.
//!
//! A column that a row does not mention is updated only when next needed, so a row of ten fields costs ten steps even
//! among two thousand columns. Long runs of such rows are then counted, and take no space.

use std::collections::HashMap;
use std::sync::Arc;

use arrow_array::{
    ArrayRef, BooleanArray, Date32Array, Decimal128Array, Float64Array, Int64Array, MapArray, StringArray, StructArray,
    TimestampMicrosecondArray, TimestampNanosecondArray,
};
use arrow_buffer::{BooleanBufferBuilder, Buffer, NullBuffer, OffsetBuffer, ScalarBuffer};
use arrow_schema::{ArrowError, DataType, Field, Fields, TimeUnit};

use parquet::arrow::PARQUET_FIELD_ID_META_KEY;

use crate::memory::{NoRoom, room};
use crate::nested::{Nested, NestedColumn};
use crate::sparse::{ColumnRows, MIN_RUN, Run, SparseArray, add_run, forget_runs};
use crate::text::TextRows;
use crate::values::{self, Kind};

pub const UTC: &str = "UTC";

/// The ids of the rescued data's entries in tables; `compactor.schema.field_ids` has the same.
const KEY_FIELD_ID: i32 = 10_000_101;
const VALUE_FIELD_ID: i32 = 10_000_102;

/// A column's content: unchanged text, or values of a type.
#[derive(Clone, Debug, PartialEq)]
pub enum ColumnKind {
    Text,
    Typed(Kind),
    Nested(Arc<Nested>),
}

impl ColumnKind {
    /// Parses a type without parts.
    ///
    /// # Arguments
    ///
    /// * `kind` - `string`, or one that [`Kind::parse`] knows, with its parameters.
    ///
    /// # Errors
    ///
    /// There is no such type. The message has the requested type, and what was expected.
    pub(crate) fn parse(kind: &str, precision: u8, scale: i8, epoch: Option<&str>) -> Result<Self, String> {
        if kind == "string" { Ok(Self::Text) } else { Kind::parse(kind, precision, scale, epoch).map(Self::Typed) }
    }

    /// Its Arrow type.
    #[must_use]
    pub fn data_type(&self) -> DataType {
        match self {
            Self::Text | Self::Typed(Kind::ObjectId) => DataType::Utf8,
            Self::Typed(Kind::Long) => DataType::Int64,
            Self::Typed(Kind::Double) => DataType::Float64,
            Self::Typed(Kind::Decimal { precision, scale }) => DataType::Decimal128(*precision, *scale),
            Self::Typed(Kind::Boolean) => DataType::Boolean,
            Self::Typed(Kind::Date) => DataType::Date32,
            Self::Typed(Kind::Timestamp { .. }) => DataType::Timestamp(TimeUnit::Microsecond, Some(UTC.into())),
            Self::Typed(Kind::LocalTimestamp) => DataType::Timestamp(TimeUnit::Microsecond, None),
            Self::Typed(Kind::Nanoseconds { .. }) => DataType::Timestamp(TimeUnit::Nanosecond, Some(UTC.into())),
            Self::Nested(nested) => nested.data_type().clone(),
        }
    }
}

/// Consecutive texts.
#[derive(Debug)]
pub struct Texts {
    bytes: Vec<u8>,
    /// The end of each text, after an initial 0.
    ends: Vec<i32>,
}

impl Texts {
    pub fn new() -> Self {
        Self { bytes: Vec::new(), ends: vec![0] }
    }

    pub fn len(&self) -> usize {
        self.ends.len() - 1
    }

    /// Appends a text of at most this many bytes.
    ///
    /// # Errors
    ///
    /// Not enough memory.
    #[inline]
    pub fn push_with(&mut self, max_bytes: usize, append: impl FnOnce(&mut Vec<u8>)) -> Result<(), NoRoom> {
        room(&mut self.bytes, max_bytes)?;
        room(&mut self.ends, 1)?;
        append(&mut self.bytes);
        self.close();
        Ok(())
    }

    pub fn push(&mut self, text: &[u8]) -> Result<(), NoRoom> {
        self.push_with(text.len(), |bytes| bytes.extend_from_slice(text))
    }

    pub fn text(&self, at: usize) -> &[u8] {
        &self.bytes[place(self.ends[at])..place(self.ends[at + 1])]
    }

    pub fn truncate(&mut self, len: usize) {
        self.ends.truncate(len + 1);
        self.bytes.truncate(place(self.ends[len]));
    }

    /// # Errors
    ///
    /// A text is not UTF-8, which the scan has excluded.
    pub fn take(&mut self, nulls: Option<NullBuffer>) -> Result<StringArray, ArrowError> {
        // The next batch is probably as long: a text that grows by doubling is copied again and again.
        let (ends, bytes) = (emptied(&mut self.ends), Buffer::from_vec(emptied(&mut self.bytes)));
        self.ends.push(0);
        StringArray::try_new(OffsetBuffer::new(ScalarBuffer::from(ends)), bytes, nulls)
    }

    /// Ends the last text here. Rows are written long before their texts could add up to 2 GiB.
    fn close(&mut self) {
        self.ends.push(i32::try_from(self.bytes.len()).expect("texts of one batch are below 2 GiB"));
    }
}

/// A key's column. It may have fewer rows so far than the batch: the rest is null.
#[derive(Debug)]
pub enum Column {
    Texts(TextRows),
    /// Of [`Kind::ObjectId`].
    Ids(TextRows),
    /// Boxed, so that many text columns fit in the processor's cache at once.
    Typed(Box<TypedColumn>),
    Nested(Box<NestedColumn>),
}

impl Column {
    pub fn new(kind: &ColumnKind) -> Self {
        match kind {
            ColumnKind::Text => Self::Texts(TextRows::default()),
            ColumnKind::Typed(Kind::ObjectId) => Self::Ids(TextRows::default()),
            ColumnKind::Typed(kind) => Self::Typed(Box::new(TypedColumn::new(*kind))),
            ColumnKind::Nested(nested) => Self::Nested(Box::new(NestedColumn::new(nested.clone()))),
        }
    }

    /// Filled rows.
    #[inline]
    pub fn rows(&self) -> usize {
        match self {
            Self::Texts(texts) | Self::Ids(texts) => texts.len(),
            Self::Typed(column) => column.rows(),
            Self::Nested(column) => column.rows(),
        }
    }

    /// Drops all rows from this one on.
    #[cold]
    pub fn truncate(&mut self, rows: usize) {
        match self {
            Self::Texts(texts) | Self::Ids(texts) => texts.truncate(rows),
            Self::Typed(column) => column.truncate(rows),
            Self::Nested(column) => column.truncate(rows),
        }
    }

    /// Fills up with nulls to this number of rows, which exceeds the current one.
    ///
    /// # Returns
    ///
    /// The space that they take, in values.
    ///
    /// # Errors
    ///
    /// Not enough memory.
    #[inline]
    pub fn fill(&mut self, rows: usize) -> Result<usize, NoRoom> {
        match self {
            Self::Texts(texts) | Self::Ids(texts) => texts.push_nulls(rows - texts.len()).map(|()| 1),
            Self::Typed(column) => Ok(column.fill(rows)),
            Self::Nested(column) => column.fill(rows),
        }
    }

    /// Returns this number of rows, and is empty afterwards.
    ///
    /// # Arguments
    ///
    /// * `emptied` - Replaces the texts.
    ///
    /// # Errors
    ///
    /// Arrow considers the rows invalid, which would be a fault in this module.
    pub fn take(&mut self, rows: usize, emptied: Option<TextRows>) -> Result<ColumnRows, ArrowError> {
        match self {
            Self::Texts(texts) | Self::Ids(texts) => {
                texts.fill_to(rows);
                Ok(ColumnRows::Texts(std::mem::replace(texts, emptied.unwrap_or_default())))
            }
            Self::Typed(column) => Ok(ColumnRows::Array(column.take(rows)?)),
            Self::Nested(column) => Ok(ColumnRows::Array(column.take(rows)?)),
        }
    }
}

#[derive(Debug)]
enum Slots {
    Longs(Vec<i64>),
    Doubles(Vec<f64>),
    Decimals(Vec<i128>),
    Booleans(Vec<bool>),
    Days(Vec<i32>),
}

/// A column of values.
#[derive(Debug)]
pub struct TypedColumn {
    kind: Kind,
    /// The rows outside runs.
    slots: Slots,
    valid: BooleanBufferBuilder,
    /// Long runs of nulls.
    runs: Vec<Run>,
    /// The rows in runs.
    run_rows: usize,
}

impl TypedColumn {
    pub fn new(kind: Kind) -> Self {
        let slots = match kind {
            Kind::Long | Kind::Timestamp { .. } | Kind::LocalTimestamp | Kind::Nanoseconds { .. } => {
                Slots::Longs(Vec::new())
            }
            Kind::Double => Slots::Doubles(Vec::new()),
            Kind::Decimal { .. } => Slots::Decimals(Vec::new()),
            Kind::Boolean => Slots::Booleans(Vec::new()),
            Kind::Date => Slots::Days(Vec::new()),
            Kind::ObjectId => unreachable!("its column has texts, and it is no part of others"),
        };
        Self { kind, slots, valid: BooleanBufferBuilder::new(0), runs: Vec::new(), run_rows: 0 }
    }

    #[inline]
    pub fn rows(&self) -> usize {
        self.valid.len() + self.run_rows
    }

    /// Appends a value.
    ///
    /// # Returns
    ///
    /// Whether the text is a valid value; if not, nothing is appended.
    pub fn push_value(&mut self, text: &[u8]) -> bool {
        self.push_as(text, self.kind)
            || values::unwrapped(text, self.kind).is_some_and(|(inner, kind)| self.push_as(inner, kind))
    }

    fn push_as(&mut self, text: &[u8], kind: Kind) -> bool {
        let fits = match (&mut self.slots, kind) {
            (Slots::Longs(slots), Kind::Long) => push(slots, values::long(text)),
            (Slots::Longs(slots), Kind::Timestamp { epoch }) => push(slots, values::timestamp(text, epoch)),
            (Slots::Longs(slots), Kind::LocalTimestamp) => push(slots, values::local_timestamp(text)),
            (Slots::Longs(slots), Kind::Nanoseconds { epoch }) => push(slots, values::nanoseconds(text, epoch)),
            (Slots::Doubles(slots), _) => push(slots, values::double(text)),
            (Slots::Decimals(slots), Kind::Decimal { precision, scale }) => {
                push(slots, values::decimal(text, precision, scale))
            }
            (Slots::Booleans(slots), _) => push(slots, values::boolean(text)),
            (Slots::Days(slots), _) => push(slots, values::date(text)),
            _ => false,
        };
        if fits {
            self.valid.append(true);
        }
        fits
    }

    pub fn truncate(&mut self, rows: usize) {
        if rows >= self.rows() {
            return;
        }
        self.run_rows -= forget_runs(&mut self.runs, self.run_rows, rows);
        let stored = rows - self.run_rows;
        self.valid.truncate(stored);
        match &mut self.slots {
            Slots::Longs(slots) => slots.truncate(stored),
            Slots::Doubles(slots) => slots.truncate(stored),
            Slots::Decimals(slots) => slots.truncate(stored),
            Slots::Booleans(slots) => slots.truncate(stored),
            Slots::Days(slots) => slots.truncate(stored),
        }
    }

    fn take(&mut self, rows: usize) -> Result<SparseArray, ArrowError> {
        if self.rows() < rows {
            self.run(rows - self.rows());
        }
        self.run_rows = 0;
        let runs = std::mem::take(&mut self.runs);
        Ok(SparseArray::new(self.take_stored()?, runs))
    }

    /// Returns the rows outside runs.
    ///
    /// # Errors
    ///
    /// As for [`Column::take`].
    pub fn take_stored(&mut self) -> Result<ArrayRef, ArrowError> {
        let nulls = nulls(&mut self.valid);
        Ok(match &mut self.slots {
            Slots::Longs(slots) => match self.kind {
                Kind::Nanoseconds { .. } => {
                    Arc::new(TimestampNanosecondArray::try_new(emptied(slots).into(), nulls)?.with_timezone(UTC))
                }
                Kind::LocalTimestamp => Arc::new(TimestampMicrosecondArray::try_new(emptied(slots).into(), nulls)?),
                Kind::Timestamp { .. } => {
                    Arc::new(TimestampMicrosecondArray::try_new(emptied(slots).into(), nulls)?.with_timezone(UTC))
                }
                _ => Arc::new(Int64Array::try_new(emptied(slots).into(), nulls)?),
            },
            Slots::Doubles(slots) => Arc::new(Float64Array::try_new(emptied(slots).into(), nulls)?),
            Slots::Decimals(slots) => Arc::new(
                Decimal128Array::try_new(emptied(slots).into(), nulls)?
                    .with_data_type(ColumnKind::Typed(self.kind).data_type()),
            ),
            Slots::Booleans(slots) => Arc::new(BooleanArray::new(std::mem::take(slots).into(), nulls)),
            Slots::Days(slots) => Arc::new(Date32Array::try_new(emptied(slots).into(), nulls)?),
        })
    }

    #[cold]
    fn fill(&mut self, rows: usize) -> usize {
        let nulls = rows - self.rows();
        let is_behind_run = self.runs.last().is_some_and(|run| run.stored == self.valid.len());
        if nulls >= MIN_RUN || is_behind_run {
            self.run(nulls);
            return 0;
        }
        self.store(nulls);
        nulls
    }

    fn run(&mut self, nulls: usize) {
        add_run(&mut self.runs, self.valid.len(), nulls);
        self.run_rows += nulls;
    }

    /// Appends nulls outside runs.
    pub fn store(&mut self, nulls: usize) {
        self.valid.append_n(nulls, false);
        let stored = self.valid.len();
        match &mut self.slots {
            Slots::Longs(slots) => slots.resize(stored, 0),
            Slots::Doubles(slots) => slots.resize(stored, 0.0),
            Slots::Decimals(slots) => slots.resize(stored, 0),
            Slots::Booleans(slots) => slots.resize(stored, false),
            Slots::Days(slots) => slots.resize(stored, 0),
        }
    }
}

/// Returns which rows are null, if any is, and is empty afterwards.
pub fn nulls(valid: &mut BooleanBufferBuilder) -> Option<NullBuffer> {
    Some(NullBuffer::new(valid.finish())).filter(|nulls| nulls.null_count() > 0)
}

/// A field with an id in tables, unless that is 0.
pub fn with_id(field: Field, id: i32) -> Field {
    if id == 0 {
        return field;
    }
    field.with_metadata(HashMap::from([(PARQUET_FIELD_ID_META_KEY.to_owned(), id.to_string())]))
}

/// Returns all items, and reserves space for as many if there is enough memory.
pub fn emptied<T>(items: &mut Vec<T>) -> Vec<T> {
    let mut next = Vec::new();
    // Without memory it grows item by item, and the caller that adds one gets the error.
    let _ = next.try_reserve_exact(items.len());
    std::mem::replace(items, next)
}

pub fn place(end: i32) -> usize {
    usize::try_from(end).unwrap_or_default()
}

fn push<T>(slots: &mut Vec<T>, value: Option<T>) -> bool {
    value.map(|value| slots.push(value)).is_some()
}

/// The rescued data column: a map of texts, null if a row has none.
#[derive(Debug)]
pub struct Rescued {
    keys: Texts,
    values: Texts,
    /// The end of each row's entries, after an initial 0.
    ends: Vec<i32>,
}

impl Rescued {
    pub fn new() -> Self {
        Self { keys: Texts::new(), values: Texts::new(), ends: vec![0] }
    }

    /// Filled rows.
    pub fn rows(&self) -> usize {
        self.ends.len() - 1
    }

    /// Sets the entries of an unfilled row.
    ///
    /// # Errors
    ///
    /// As for [`Texts::push_with`].
    pub fn set<'a>(&mut self, row: usize, entries: impl Iterator<Item = (&'a [u8], &'a [u8])>) -> Result<(), NoRoom> {
        self.fill(row);
        for (key, value) in entries {
            self.keys.push(key)?;
            self.values.push(value)?;
        }
        self.close();
        Ok(())
    }

    pub fn truncate(&mut self, rows: usize) {
        if rows < self.rows() {
            self.ends.truncate(rows + 1);
            let entries = place(self.ends[rows]);
            self.keys.truncate(entries);
            self.values.truncate(entries);
        }
    }

    /// # Errors
    ///
    /// As for [`Column::take`].
    pub fn take(&mut self, rows: usize) -> Result<ArrayRef, ArrowError> {
        self.fill(rows);
        let ends = std::mem::replace(&mut self.ends, vec![0]);
        let nulls: NullBuffer = ends.windows(2).map(|pair| pair[0] < pair[1]).collect();
        let entries = StructArray::try_new(
            Self::entry_fields(),
            vec![Arc::new(self.keys.take(None)?), Arc::new(self.values.take(None)?)],
            None,
        )?;
        let offsets = OffsetBuffer::new(ScalarBuffer::from(ends));
        Ok(Arc::new(MapArray::try_new(Self::entries_field(), offsets, entries, Some(nulls), false)?))
    }

    /// The names are those in Parquet's specification of maps.
    pub fn data_type() -> DataType {
        DataType::Map(Self::entries_field(), false)
    }

    fn entries_field() -> Arc<Field> {
        Arc::new(Field::new("key_value", DataType::Struct(Self::entry_fields()), false))
    }

    fn entry_fields() -> Fields {
        Fields::from(vec![
            with_id(Field::new("key", DataType::Utf8, false), KEY_FIELD_ID),
            with_id(Field::new("value", DataType::Utf8, true), VALUE_FIELD_ID),
        ])
    }

    fn fill(&mut self, rows: usize) {
        let end = self.ends[self.rows()];
        self.ends.resize(rows.max(self.rows()) + 1, end);
    }

    fn close(&mut self) {
        self.ends.push(i32::try_from(self.keys.len()).expect("entries of one batch are below 2^31"));
    }
}
