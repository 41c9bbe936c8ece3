//! Rows on their way from records to Parquet, file by file, so that a file which turns out unreadable can be withdrawn.

use arrow_array::ArrayRef;
use arrow_schema::ArrowError;

use crate::columns::{Column, ColumnKind, Rescued};
use crate::entries::{Entries, Key};
use crate::keys::{KeyRules, Keys, Place};
use crate::memory::NoRoom;
use crate::nested::Appended;
use crate::scan::{Field, Value};
use crate::sparse::{ColumnRows, TextRuns};
use crate::strings::{unescape, unescaped};
use crate::text::TextRows;
use crate::values::object_id;

/// The state of a key.
#[derive(Clone, Copy, Debug, Default)]
struct Sighting {
    /// The last row that put it into the rescued data, and its entry there; rows count from 1 over all files.
    rescued_row: u64,
    entry: usize,
}

/// The start of the current file.
#[derive(Debug, Default)]
struct Mark {
    row: usize,
    bytes: usize,
    cells: usize,
    keys: usize,
    /// An earlier file has keys that are not remembered.
    had_further_keys: bool,
    /// This file has such keys.
    is_with_further_keys: bool,
    rescued_values: u64,
    /// Some of its rows are already in the output.
    is_partly_written: bool,
}

/// The rows of a batch, and the keys of all batches.
#[derive(Debug)]
pub struct Rows {
    keys: Keys,
    columns: Vec<Column>,
    rescued: Rescued,
    rescues_unknown: bool,
    /// Whether there is a rescued data column.
    can_rescue: bool,
    /// Some key is not remembered: too long for a column, or one too many.
    has_further_keys: bool,
    sightings: Vec<Sighting>,
    len: usize,
    bytes: usize,
    cells: usize,
    row_number: u64,
    /// The current row's rescued entries.
    entries: Entries,
    /// The files of the rows: the first row of each, and its name.
    sources: Vec<(usize, String)>,
    mark: Mark,
    rescued_values: u64,
}

impl Rows {
    /// # Arguments
    ///
    /// * `columns` - Keys with their columns' content.
    /// * `rules` - How to handle keys without a column.
    /// * `can_rescue` - Whether there is a rescued data column.
    pub fn new(columns: &[(Vec<u8>, ColumnKind)], rules: &KeyRules, can_rescue: bool) -> Self {
        let keys = Keys::new(columns.iter().map(|(key, _)| key.clone()), rules);
        Self {
            sightings: vec![Sighting::default(); keys.len()],
            keys,
            columns: columns.iter().map(|(_, kind)| Column::new(kind)).collect(),
            rescued: Rescued::new(),
            rescues_unknown: rules.rescues_unknown,
            can_rescue,
            has_further_keys: false,
            len: 0,
            bytes: 0,
            cells: 0,
            row_number: 0,
            entries: Entries::default(),
            sources: Vec::new(),
            mark: Mark::default(),
            rescued_values: 0,
        }
    }

    pub fn keys(&self) -> &Keys {
        &self.keys
    }

    /// The number of rows not yet in the output.
    pub fn len(&self) -> usize {
        self.len
    }

    /// The length of these rows' records.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// The values and nulls that take space in the key columns; overestimated rather than underestimated.
    pub fn cells(&self) -> usize {
        self.cells
    }

    /// The number of values that do not fit their column's type, in ended files.
    pub fn rescued_values(&self) -> u64 {
        self.rescued_values
    }

    /// Whether some key has no column and cannot be rescued. From then on, no rows are built: the caller starts again.
    pub fn lacks_columns(&self) -> bool {
        !self.rescues_unknown && self.keys.len() > self.keys.known() || self.has_further_keys && !self.can_rescue
    }

    pub fn begin_file(&mut self, source: String) {
        self.sources.push((self.len, source));
        self.mark = Mark {
            row: self.len,
            bytes: self.bytes,
            cells: self.cells,
            keys: self.keys.len(),
            had_further_keys: self.has_further_keys,
            ..Mark::default()
        };
    }

    /// Ends a file that was read completely.
    ///
    /// # Returns
    ///
    /// The new keys that no earlier file had, in first-seen order; and whether the file has keys that are not
    /// remembered.
    pub fn end_file(&mut self) -> (Vec<&[u8]>, bool) {
        self.rescued_values += self.mark.rescued_values;
        let new_keys = (self.mark.keys..self.keys.len()).map(|number| self.keys.text(number)).collect();
        (new_keys, self.mark.is_with_further_keys)
    }

    /// Drops the current file.
    ///
    /// # Returns
    ///
    /// False if some of its rows are already in the output; then nothing changes.
    pub fn withdraw_file(&mut self) -> bool {
        if self.mark.is_partly_written {
            return false;
        }
        for column in &mut self.columns {
            column.truncate(self.mark.row);
        }
        self.rescued.truncate(self.mark.row);
        (self.len, self.bytes, self.cells) = (self.mark.row, self.mark.bytes, self.mark.cells);
        self.keys.truncate(self.mark.keys);
        self.sightings.truncate(self.mark.keys);
        self.has_further_keys = self.mark.had_further_keys;
        self.sources.pop();
        true
    }

    /// Appends a record.
    ///
    /// # Arguments
    ///
    /// * `block` - The block with the fields.
    /// * `bytes` - The length of its line.
    ///
    /// # Errors
    ///
    /// Not enough memory; part of it may be there, so the rows are useless afterwards.
    pub fn append(&mut self, block: &[u8], fields: &[Field], bytes: usize) -> Result<(), NoRoom> {
        self.row_number += 1;
        let mut lacks_columns = self.lacks_columns();
        let mut place = Place::FIRST;
        for field in fields {
            let mut number = field.number();
            if !field.is_expected() {
                number = self.number(place, block, field)?;
                if number.is_none() {
                    (self.has_further_keys, self.mark.is_with_further_keys) = (true, true);
                }
                lacks_columns = self.lacks_columns();
            }
            place = number.map_or(Place::UNKNOWN, Place::behind);
            match number {
                _ if lacks_columns => {}
                Some(number) => self.set(number, block, field)?,
                None => self.entries.rescue_further(field.key(block), field.key_is_escaped(), field.value(block))?,
            }
        }
        if lacks_columns {
            self.entries.clear();
            return Ok(());
        }
        if !self.entries.is_empty() {
            self.close_entries()?;
        }
        self.len += 1;
        self.bytes += bytes;
        self.cells += fields.len();
        Ok(())
    }

    /// The number of a key that was not expected at its position; None if it is not remembered.
    fn number(&mut self, place: Place, block: &[u8], field: &Field) -> Result<Option<usize>, NoRoom> {
        let found = if field.key_is_escaped() {
            self.keys.number(&unescaped(field.key(block))?)
        } else {
            field.number().or_else(|| self.keys.number_in(block, field.key_place()))
        };
        if let Some(number) = found {
            self.keys.expect(place, number)?;
            self.sightings.resize(self.keys.len(), Sighting::default());
        }
        Ok(found)
    }

    #[inline]
    fn set(&mut self, number: usize, block: &[u8], field: &Field) -> Result<(), NoRoom> {
        let value = field.value(block);
        // If a key occurs twice in a record, the last value counts.
        if !self.entries.is_empty() {
            let sighting = self.sightings[number];
            if sighting.rescued_row == self.row_number {
                self.entries.replace(sighting.entry, Value::Null)?;
            }
        }
        let Some(column) = self.columns.get_mut(number) else {
            return self.rescue(number, value);
        };
        let rows = column.rows();
        if rows > self.len {
            column.truncate(self.len);
        } else if rows < self.len && value != Value::Null {
            self.cells += column.fill(self.len)?;
        }
        match (column, value) {
            (_, Value::Null) => Ok(()),
            (Column::Texts(texts), Value::Source(_) | Value::Text { escaped: false, .. }) => {
                texts.push(block, field.value_place())
            }
            // Escapes are never shorter than the decoded text.
            (Column::Texts(texts), Value::Text { inner, escaped: true }) => {
                texts.push_with(inner.len(), |target| unescape(inner, target))
            }
            (Column::Ids(texts), Value::Source(text) | Value::Text { inner: text, escaped: false }) => {
                match object_id(text) {
                    Some(digits) => texts.push_with(digits.len(), |target| {
                        target[..digits.len()].copy_from_slice(&digits);
                        digits.len()
                    }),
                    None => self.rescue(number, value),
                }
            }
            (Column::Ids(texts), Value::Text { inner, escaped: true }) => match object_id(&unescaped(inner)?) {
                Some(digits) => texts.push_with(digits.len(), |target| {
                    target[..digits.len()].copy_from_slice(&digits);
                    digits.len()
                }),
                None => self.rescue(number, value),
            },
            (Column::Typed(column), Value::Source(text) | Value::Text { inner: text, escaped: false }) => {
                if column.push_value(text) { Ok(()) } else { self.rescue(number, value) }
            }
            (Column::Typed(column), Value::Text { inner, escaped: true }) => {
                if column.push_value(&unescaped(inner)?) {
                    Ok(())
                } else {
                    self.rescue(number, value)
                }
            }
            (Column::Nested(column), value) => {
                let Appended { is_whole, cells } = column.push(value)?;
                self.cells += cells;
                if is_whole { Ok(()) } else { self.rescue(number, value) }
            }
        }
    }

    fn rescue(&mut self, number: usize, value: Value) -> Result<(), NoRoom> {
        let sighting = &mut self.sightings[number];
        if sighting.rescued_row == self.row_number {
            self.entries.replace(sighting.entry, value)?;
        } else if value != Value::Null {
            (sighting.rescued_row, sighting.entry) = (self.row_number, self.entries.push(number, value)?);
        }
        Ok(())
    }

    fn close_entries(&mut self) -> Result<(), NoRoom> {
        let Self { keys, entries, columns, .. } = self;
        let misfits = entries.present().filter(|(key, _)| matches!(key, Key::Numbered(at) if *at < columns.len()));
        self.mark.rescued_values += misfits.count() as u64;
        let texts = entries.present().map(|(key, value)| match key {
            Key::Numbered(number) => (keys.text(number), value),
            Key::Further(text) => (text, value),
        });
        self.rescued.set(self.len, texts)?;
        self.entries.clear();
        Ok(())
    }

    /// Returns all rows: the key columns in order, the rescued data, and the files of the rows.
    ///
    /// # Arguments
    ///
    /// * `emptied` - Buffers of earlier rows, for reuse.
    ///
    /// # Errors
    ///
    /// Arrow considers the rows invalid, which would be a fault in this module.
    pub fn take(
        &mut self,
        emptied: impl Iterator<Item = TextRows>,
    ) -> Result<(Vec<ColumnRows>, ArrayRef, TextRuns), ArrowError> {
        let rows = self.len;
        self.mark.is_partly_written |= rows > self.mark.row;
        let sources = self.take_sources();
        let mut emptied = emptied.fuse();
        let mut take = |column: &mut Column| {
            let buffer = if matches!(column, Column::Texts(_) | Column::Ids(_)) { emptied.next() } else { None };
            column.take(rows, buffer)
        };
        let columns = self.columns.iter_mut().map(&mut take).collect::<Result<_, _>>()?;
        let rescued = self.rescued.take(rows)?;
        (self.len, self.bytes, self.cells) = (0, 0, 0);
        (self.mark.row, self.mark.bytes, self.mark.cells) = (0, 0, 0);
        Ok((columns, rescued, sources))
    }

    /// The files of the rows; the current one stays for rows to come.
    fn take_sources(&mut self) -> TextRuns {
        let ends = self.sources.iter().skip(1).map(|(row, _)| *row).chain([self.len]);
        let files = self.sources.iter().zip(ends);
        let runs = files.map(|((start, name), end)| (name.as_bytes().into(), end - start)).collect();
        self.sources.drain(..self.sources.len().saturating_sub(1));
        if let Some(last) = self.sources.last_mut() {
            last.0 = 0;
        }
        runs
    }
}
