//! Columns of lists, structs and maps.
//!
//! The rules are those of `compactor/ndjson/nested_values.py`: a part that does not fit is null, and then the whole text
//! is rescued, too.

use std::collections::HashSet;
use std::sync::Arc;

use arrow_array::{ArrayRef, ListArray, MapArray, StructArray};
use arrow_buffer::{BooleanBufferBuilder, OffsetBuffer, ScalarBuffer};
use arrow_schema::{ArrowError, DataType, Field, Fields};

use crate::columns::{ColumnKind, Texts, TypedColumn, emptied, nulls, place, with_id};
use crate::memory::NoRoom;
use crate::scan::{self, Value};
use crate::sparse::{MIN_RUN, Run, SparseArray, add_run, forget_runs};
use crate::strings::unescaped;

/// The parts that a value may have: a short text such as `[{},{}]` has those of its type for each brace.
const MAX_SLOTS: usize = 1 << 23;

/// The keys of an object up to which each is compared with all others.
const FEW_KEYS: usize = 16;

/// The type of a list, a struct or a map.
#[derive(Debug, PartialEq)]
pub struct Nested {
    pub shape: Shape,
    /// With the field ids of its parts.
    data_type: DataType,
    /// Its parts, and itself.
    width: usize,
}

#[derive(Debug, PartialEq)]
pub enum Shape {
    /// Of elements.
    List(ColumnKind),
    /// Keys with their values.
    Struct(Vec<(Box<str>, ColumnKind)>),
    /// Of values.
    Map(ColumnKind),
}

impl Shape {
    /// The bracket with which its JSON starts.
    pub fn bracket(&self) -> u8 {
        if matches!(self, Self::List(_)) { b'[' } else { b'{' }
    }
}

impl Nested {
    /// # Arguments
    ///
    /// * `ids` - The field id of each own part in order, of a map's keys and values for instance; 0 for none.
    pub fn new(shape: Shape, ids: &[i32]) -> Self {
        let id = |at: usize| ids.get(at).copied().unwrap_or_default();
        // The names are those in Parquet's specification.
        let data_type = match &shape {
            Shape::List(part) => {
                DataType::List(Arc::new(with_id(Field::new("element", part.data_type(), true), id(0))))
            }
            Shape::Struct(parts) => {
                let field = |(at, (name, part)): (usize, &(Box<str>, ColumnKind))| {
                    with_id(Field::new(&**name, part.data_type(), true), id(at))
                };
                DataType::Struct(parts.iter().enumerate().map(field).collect())
            }
            Shape::Map(part) => {
                let key = with_id(Field::new("key", DataType::Utf8, false), id(0));
                let value = with_id(Field::new("value", part.data_type(), true), id(1));
                let entries = DataType::Struct(Fields::from(vec![key, value]));
                DataType::Map(Arc::new(Field::new("key_value", entries, false)), false)
            }
        };
        let width = match &shape {
            Shape::List(part) => 1 + width(part),
            Shape::Struct(parts) => 1 + parts.iter().map(|(_, part)| width(part)).sum::<usize>(),
            Shape::Map(part) => 2 + width(part),
        };
        Self { shape, data_type, width }
    }

    /// Whether a text may have too many parts to be a value.
    pub fn is_too_large(&self, text: &[u8]) -> bool {
        text.len() > MAX_SLOTS / self.width && memchr::memchr_iter(b'{', text).count() * self.width > MAX_SLOTS
    }

    /// Its Arrow type.
    pub fn data_type(&self) -> &DataType {
        &self.data_type
    }
}

fn width(kind: &ColumnKind) -> usize {
    if let ColumnKind::Nested(nested) = kind { nested.width } else { 1 }
}

/// What became of a value.
pub struct Appended {
    /// Whether the row has all of the text.
    pub is_whole: bool,
    /// The space that it takes, in values.
    pub cells: usize,
}

/// A column of nested values.
#[derive(Debug)]
pub struct NestedColumn {
    nested: Arc<Nested>,
    /// The rows outside runs.
    part: Part,
    /// All slots.
    slots: usize,
    /// Long runs of nulls.
    runs: Vec<Run>,
    run_rows: usize,
}

impl NestedColumn {
    pub fn new(nested: Arc<Nested>) -> Self {
        let part = Part::of_shape(&nested.shape);
        Self { nested, part, slots: 0, runs: Vec::new(), run_rows: 0 }
    }

    pub fn rows(&self) -> usize {
        self.part.len() + self.run_rows
    }

    /// Appends a value, or null if it is of a different kind.
    ///
    /// # Errors
    ///
    /// Not enough memory; parts of it may be there.
    #[inline(never)]
    pub fn push(&mut self, value: Value) -> Result<Appended, NoRoom> {
        let is_whole = match value {
            Value::Text { inner, escaped: true } => self.push_text(&unescaped(inner)?, false)?,
            Value::Text { inner, escaped: false } => self.push_text(inner, false)?,
            Value::Source(text) => self.push_text(text, true)?,
            Value::Null => self.part.push(value)?,
        };
        Ok(Appended { is_whole, cells: self.new_slots() })
    }

    fn push_text(&mut self, text: &[u8], is_source: bool) -> Result<bool, NoRoom> {
        if self.nested.is_too_large(text) {
            return self.part.push_null().map(|()| false);
        }
        self.part.push(if is_source { Value::Source(text) } else { Value::Text { inner: text, escaped: false } })
    }

    pub fn truncate(&mut self, rows: usize) {
        if rows < self.rows() {
            self.run_rows -= forget_runs(&mut self.runs, self.run_rows, rows);
            self.part.truncate(rows - self.run_rows);
            self.slots = self.part.slots();
        }
    }

    /// Fills up with nulls to this number of rows; returns the space that they take, in values.
    ///
    /// # Errors
    ///
    /// Not enough memory.
    #[cold]
    pub fn fill(&mut self, rows: usize) -> Result<usize, NoRoom> {
        let nulls = rows - self.rows();
        let is_behind_run = self.runs.last().is_some_and(|run| run.stored == self.part.len());
        if nulls >= MIN_RUN || is_behind_run {
            self.run(nulls);
            return Ok(0);
        }
        (0..nulls).try_for_each(|_| self.part.push_null())?;
        Ok(self.new_slots())
    }

    /// # Errors
    ///
    /// As for [`crate::columns::Column::take`].
    pub fn take(&mut self, rows: usize) -> Result<SparseArray, ArrowError> {
        if self.rows() < rows {
            self.run(rows - self.rows());
        }
        (self.run_rows, self.slots) = (0, 0);
        Ok(SparseArray::new(self.part.take(self.nested.data_type())?, std::mem::take(&mut self.runs)))
    }

    fn run(&mut self, nulls: usize) {
        add_run(&mut self.runs, self.part.len(), nulls);
        self.run_rows += nulls;
    }

    fn new_slots(&mut self) -> usize {
        let before = std::mem::replace(&mut self.slots, self.part.slots());
        self.slots - before
    }
}

/// A nested column, or a part of one, with a slot for each value.
#[derive(Debug)]
enum Part {
    Texts { texts: Texts, valid: BooleanBufferBuilder },
    Values(TypedColumn),
    List { elements: Box<Part>, ends: Vec<i32>, valid: BooleanBufferBuilder },
    Struct { names: Vec<Box<str>>, parts: Vec<Part>, valid: BooleanBufferBuilder },
    Map { keys: Texts, values: Box<Part>, ends: Vec<i32>, valid: BooleanBufferBuilder },
}

impl Part {
    fn new(kind: &ColumnKind) -> Self {
        match kind {
            ColumnKind::Text => Self::Texts { texts: Texts::new(), valid: BooleanBufferBuilder::new(0) },
            ColumnKind::Typed(kind) => Self::Values(TypedColumn::new(*kind)),
            ColumnKind::Nested(nested) => Self::of_shape(&nested.shape),
        }
    }

    fn of_shape(shape: &Shape) -> Self {
        let (ends, valid) = (vec![0], BooleanBufferBuilder::new(0));
        match shape {
            Shape::List(part) => Self::List { elements: Box::new(Self::new(part)), ends, valid },
            Shape::Map(part) => Self::Map { keys: Texts::new(), values: Box::new(Self::new(part)), ends, valid },
            Shape::Struct(parts) => {
                let (names, parts) = parts.iter().map(|(name, part)| (name.clone(), Self::new(part))).unzip();
                Self::Struct { names, parts, valid }
            }
        }
    }

    fn len(&self) -> usize {
        match self {
            Self::Texts { valid, .. }
            | Self::List { valid, .. }
            | Self::Struct { valid, .. }
            | Self::Map { valid, .. } => valid.len(),
            Self::Values(column) => column.rows(),
        }
    }

    /// The slots of all values so far.
    fn slots(&self) -> usize {
        self.len()
            + match self {
                Self::Texts { .. } | Self::Values(_) => 0,
                Self::List { elements, .. } => elements.slots(),
                Self::Struct { parts, .. } => parts.iter().map(Self::slots).sum(),
                Self::Map { keys, values, .. } => keys.len() + values.slots(),
            }
    }

    fn truncate(&mut self, len: usize) {
        if len >= self.len() {
            return;
        }
        match self {
            Self::Texts { texts, valid } => {
                texts.truncate(len);
                valid.truncate(len);
            }
            Self::Values(column) => column.truncate(len),
            Self::List { elements, ends, valid } => {
                ends.truncate(len + 1);
                elements.truncate(place(ends[len]));
                valid.truncate(len);
            }
            Self::Struct { parts, valid, .. } => {
                for part in parts {
                    part.truncate(len);
                }
                valid.truncate(len);
            }
            Self::Map { keys, values, ends, valid } => {
                ends.truncate(len + 1);
                let entries = place(ends[len]);
                if entries < keys.len() {
                    keys.truncate(entries);
                }
                values.truncate(entries);
                valid.truncate(len);
            }
        }
    }

    fn push_null(&mut self) -> Result<(), NoRoom> {
        match self {
            Self::Texts { texts, valid } => {
                texts.push_with(0, |_| ())?;
                valid.append(false);
            }
            Self::Values(column) => column.store(1),
            Self::List { elements, ends, valid } => close(ends, elements.len(), valid, false),
            Self::Map { values, ends, valid, .. } => close(ends, values.len(), valid, false),
            Self::Struct { parts, valid, .. } => {
                parts.iter_mut().try_for_each(Self::push_null)?;
                valid.append(false);
            }
        }
        Ok(())
    }

    /// Appends a value, or null if it does not fit.
    ///
    /// # Returns
    ///
    /// Whether the slot has all of it.
    fn push(&mut self, value: Value) -> Result<bool, NoRoom> {
        let is_own = matches!(value, Value::Source(text) | Value::Text { inner: text, .. } if self.starts(text));
        match (&mut *self, value) {
            (_, Value::Null) => self.push_null().map(|()| true),
            (Self::Texts { texts, valid }, Value::Source(text) | Value::Text { inner: text, escaped: false }) => {
                valid.append(true);
                texts.push(text).map(|()| true)
            }
            (_, Value::Text { inner, escaped: true }) => {
                let text = unescaped(inner)?;
                self.push(Value::Text { inner: &text, escaped: false })
            }
            (Self::Values(column), Value::Source(text) | Value::Text { inner: text, escaped: false }) => {
                let fits = column.push_value(text);
                if !fits {
                    column.store(1);
                }
                Ok(fits)
            }
            (_, Value::Source(text)) if is_own => self.push_at(text, 0).map(|(is_whole, _)| is_whole),
            // JSON text in a string is not known to be valid.
            (_, Value::Text { inner, .. }) if is_own => {
                let line = [inner, b"\n"].concat();
                if scan::is_value(&line) {
                    self.push_at(&line, 0).map(|(is_whole, _)| is_whole)
                } else {
                    self.push_null().map(|()| false)
                }
            }
            _ => self.push_null().map(|()| false),
        }
    }

    /// Whether a text starts with the bracket of this part's values.
    fn starts(&self, text: &[u8]) -> bool {
        match self {
            Self::Texts { .. } | Self::Values(_) => false,
            Self::List { .. } => text.first() == Some(&b'['),
            Self::Struct { .. } | Self::Map { .. } => text.first() == Some(&b'{'),
        }
    }

    /// Appends the value at a place in a valid text, as [`Self::push`] does; returns also its end.
    fn push_at(&mut self, text: &[u8], at: usize) -> Result<(bool, usize), NoRoom> {
        if !self.starts(&text[at..]) {
            let (value, end) = scan::value_within(text, at);
            return Ok((self.push(value)?, end));
        }
        let mut is_whole = true;
        let end = match self {
            Self::Texts { .. } | Self::Values(_) => at,
            Self::List { elements, ends, valid } => {
                let end = scan::elements(text, at, |start| {
                    let (fits, end) = elements.push_at(text, start)?;
                    is_whole &= fits;
                    Ok(end)
                })?;
                close(ends, elements.len(), valid, true);
                end
            }
            Self::Struct { names, parts, valid } => {
                let (row, mut next) = (valid.len(), 0);
                let end = members(text, at, |key, start| {
                    let is_next = names.get(next).is_some_and(|name| name.as_bytes() == key);
                    let found = if is_next { Some(next) } else { names.iter().position(|name| name.as_bytes() == key) };
                    if let Some(part) = found.filter(|found| parts[*found].len() == row) {
                        next = part + 1;
                        let (fits, end) = parts[part].push_at(text, start)?;
                        is_whole &= fits;
                        return Ok(end);
                    }
                    let (value, end) = scan::value_within(text, start);
                    is_whole &= found.is_none() && value == Value::Null;
                    Ok(end)
                })?;
                parts.iter_mut().filter(|part| part.len() == row).try_for_each(Self::push_null)?;
                valid.append(true);
                end
            }
            Self::Map { keys, values, ends, valid } => {
                let (first, mut seen) = (keys.len(), HashSet::new());
                let end = members(text, at, |key, start| {
                    // Of a repeated key, the first value counts.
                    if !is_new(keys, first, key, &mut seen) {
                        is_whole = false;
                        return Ok(scan::value_within(text, start).1);
                    }
                    keys.push(key)?;
                    let (fits, end) = values.push_at(text, start)?;
                    is_whole &= fits;
                    Ok(end)
                })?;
                close(ends, keys.len(), valid, true);
                end
            }
        };
        Ok((is_whole, end))
    }

    fn take(&mut self, data_type: &DataType) -> Result<ArrayRef, ArrowError> {
        Ok(match (self, data_type) {
            (Self::Texts { texts, valid }, _) => Arc::new(texts.take(nulls(valid))?),
            (Self::Values(column), _) => column.take_stored()?,
            (Self::List { elements, ends, valid }, DataType::List(field)) => {
                let elements = elements.take(field.data_type())?;
                Arc::new(ListArray::try_new(field.clone(), offsets(ends), elements, nulls(valid))?)
            }
            (Self::Struct { parts, valid, .. }, DataType::Struct(fields)) => {
                let arrays = parts.iter_mut().zip(fields).map(|(part, field)| part.take(field.data_type()));
                Arc::new(StructArray::try_new(fields.clone(), arrays.collect::<Result<_, _>>()?, nulls(valid))?)
            }
            (Self::Map { keys, values, ends, valid }, DataType::Map(entries, _)) => {
                let DataType::Struct(fields) = entries.data_type() else { return Err(other_type(data_type)) };
                let arrays = vec![Arc::new(keys.take(None)?) as ArrayRef, values.take(fields[1].data_type())?];
                let pairs = StructArray::try_new(fields.clone(), arrays, None)?;
                Arc::new(MapArray::try_new(entries.clone(), offsets(ends), pairs, nulls(valid), false)?)
            }
            _ => return Err(other_type(data_type)),
        })
    }
}

/// Calls for each member of the object at a place in a valid text, with its key and the start of its value. The call
/// returns the value's end, and this function the object's.
fn members(
    text: &[u8],
    at: usize,
    mut each: impl FnMut(&[u8], usize) -> Result<usize, NoRoom>,
) -> Result<usize, NoRoom> {
    scan::elements(text, at, |start| match scan::key_within(text, start) {
        (inner, true, value) => each(&unescaped(inner)?, value),
        (key, false, value) => each(key, value),
    })
}

/// Whether none of the keys from `first` on equals this one; many of them are also in `seen`.
fn is_new(keys: &Texts, first: usize, key: &[u8], seen: &mut HashSet<Vec<u8>>) -> bool {
    let mut others = (first..keys.len()).map(|at| keys.text(at));
    if keys.len() - first < FEW_KEYS {
        return others.all(|other| other != key);
    }
    if seen.is_empty() {
        seen.extend(others.map(<[u8]>::to_vec));
    }
    seen.insert(key.to_vec())
}

fn close(ends: &mut Vec<i32>, end: usize, valid: &mut BooleanBufferBuilder, is_valid: bool) {
    ends.push(i32::try_from(end).expect("elements of one batch are below 2^31"));
    valid.append(is_valid);
}

fn offsets(ends: &mut Vec<i32>) -> OffsetBuffer<i32> {
    let taken = emptied(ends);
    ends.push(0);
    OffsetBuffer::new(ScalarBuffer::from(taken))
}

fn other_type(data_type: &DataType) -> ArrowError {
    ArrowError::SchemaError(format!("a part of another type than {data_type}"))
}
