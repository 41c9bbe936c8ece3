//! Rows on their way from records to Parquet, file by file, so that a file which turns out unreadable can be withdrawn.

use std::sync::Arc;

use arrow_array::types::Int32Type;
use arrow_array::{ArrayRef, DictionaryArray, Int32Array, StringArray};
use arrow_schema::ArrowError;

use crate::columns::{Column, ColumnKind, Rescued};
use crate::keys::Keys;
use crate::scan::{Field, Value};
use crate::strings::unescape_into;

/// A file holds more different keys than any table can have columns.
#[derive(Debug)]
pub struct TooManyKeys;

/// What is known of a key.
#[derive(Clone, Copy, Debug, Default)]
struct Sighting {
    /// The last file that has it; files count from 1.
    file: u32,
    /// The last row that put it into the rescued data, and its entry there; rows count from 1 over all files.
    rescued_row: u64,
    entry: usize,
}

/// Where the current file began.
#[derive(Debug, Default)]
struct Mark {
    row: usize,
    bytes: usize,
    keys: usize,
    /// Different keys of the file so far.
    distinct_keys: usize,
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
    max_keys: usize,
    sightings: Vec<Sighting>,
    /// Which columns have a key in files that were read to their end.
    seen_columns: Vec<bool>,
    len: usize,
    bytes: usize,
    row_number: u64,
    /// Of the current row: numbers of keys, and where their text is in `scratch`; nowhere if a later field overruled it.
    entries: Vec<(usize, Option<(usize, usize)>)>,
    scratch: Vec<u8>,
    /// The files of the rows: the first row of each, and its name.
    sources: Vec<(usize, String)>,
    file: u32,
    mark: Mark,
    rescued_values: u64,
}

impl Rows {
    /// # Arguments
    ///
    /// * `columns` - Keys with what their columns hold.
    /// * `rescues_unknown` - Whether keys without a column go to the rescued data, or end the building of rows.
    /// * `max_keys` - Different keys that one file may hold.
    pub fn new(columns: &[(Vec<u8>, ColumnKind)], rescues_unknown: bool, max_keys: usize) -> Self {
        Self {
            keys: Keys::new(columns.iter().map(|(key, _)| key.clone())),
            columns: columns.iter().map(|(_, kind)| Column::new(*kind)).collect(),
            rescued: Rescued::new(),
            rescues_unknown,
            max_keys,
            sightings: vec![Sighting::default(); columns.len()],
            seen_columns: vec![false; columns.len()],
            len: 0,
            bytes: 0,
            row_number: 0,
            entries: Vec::new(),
            scratch: Vec::new(),
            sources: Vec::new(),
            file: 0,
            mark: Mark::default(),
            rescued_values: 0,
        }
    }

    pub fn keys(&self) -> &Keys {
        &self.keys
    }

    /// The number of rows that are not in the output yet.
    pub fn len(&self) -> usize {
        self.len
    }

    /// The length of the records that these rows were made of.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// The number of values that do not fit the type of their column, in files that were ended.
    pub fn rescued_values(&self) -> u64 {
        self.rescued_values
    }

    /// Whether some key has no column and cannot be rescued. No rows are built from then on: the caller starts again.
    pub fn lacks_columns(&self) -> bool {
        !self.rescues_unknown && self.keys.len() > self.columns.len()
    }

    /// The columns that some file has a key for.
    pub fn seen_columns(&self) -> impl Iterator<Item = usize> + '_ {
        self.seen_columns.iter().enumerate().filter(|(_, seen)| **seen).map(|(number, _)| number)
    }

    pub fn begin_file(&mut self, source: String) {
        self.file += 1;
        self.sources.push((self.len, source));
        self.mark = Mark { row: self.len, bytes: self.bytes, keys: self.keys.len(), ..Mark::default() };
    }

    /// Ends a file that was read to its end.
    ///
    /// # Returns
    ///
    /// The keys without a column that no file had before, as first seen.
    pub fn end_file(&mut self) -> Vec<&[u8]> {
        self.rescued_values += self.mark.rescued_values;
        for (seen, sighting) in self.seen_columns.iter_mut().zip(&self.sightings) {
            *seen |= sighting.file == self.file;
        }
        (self.mark.keys..self.keys.len()).map(|number| self.keys.text(number)).collect()
    }

    /// Forgets the current file.
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
        (self.len, self.bytes) = (self.mark.row, self.mark.bytes);
        self.keys.truncate(self.mark.keys);
        self.sightings.truncate(self.mark.keys);
        self.sources.pop();
        // Of a record that was one key too many.
        self.entries.clear();
        self.scratch.clear();
        // Its number is not to be taken for that of a file which ends well.
        self.file += 1;
        true
    }

    /// Appends a record.
    ///
    /// # Arguments
    ///
    /// * `block` - What the fields are places in.
    /// * `bytes` - The length of its line.
    ///
    /// # Errors
    ///
    /// [`TooManyKeys`]: the file is not to be taken in.
    pub fn append(&mut self, block: &[u8], fields: &[Field], bytes: usize) -> Result<(), TooManyKeys> {
        self.row_number += 1;
        for (place, field) in fields.iter().enumerate() {
            let number = field.number().unwrap_or_else(|| self.number(place, block, field));
            if self.sightings[number].file != self.file {
                self.sightings[number].file = self.file;
                self.mark.distinct_keys += 1;
                if self.mark.distinct_keys > self.max_keys {
                    return Err(TooManyKeys);
                }
            }
            if !self.lacks_columns() {
                self.set(number, field.value(block));
            }
        }
        if self.lacks_columns() {
            return Ok(());
        }
        if !self.entries.is_empty() {
            self.close_entries();
        }
        self.len += 1;
        self.bytes += bytes;
        Ok(())
    }

    fn number(&mut self, place: usize, block: &[u8], field: &Field) -> usize {
        let number = if field.key_is_escaped() {
            let mut key = Vec::new();
            unescape_into(field.key(block), &mut key);
            self.keys.number(&key)
        } else {
            self.keys.number(field.key(block))
        };
        self.keys.expect(place, number);
        self.sightings.resize(self.keys.len(), Sighting::default());
        number
    }

    fn set(&mut self, number: usize, value: Value) {
        self.forget_earlier(number);
        let row = self.len;
        let Some(column) = self.columns.get_mut(number) else {
            return self.rescue(number, value);
        };
        match (column.kind(), value) {
            (_, Value::Null) => {}
            (ColumnKind::Text, Value::Source(text) | Value::Text { inner: text, escaped: false }) => {
                column.set_text(row, |bytes| bytes.extend_from_slice(text));
            }
            (ColumnKind::Text, Value::Text { inner, escaped: true }) => {
                column.set_text(row, |bytes| unescape_into(inner, bytes));
            }
            (ColumnKind::Typed(_), Value::Source(text) | Value::Text { inner: text, escaped: false }) => {
                if !column.set_value(row, text) {
                    self.rescue(number, value);
                }
            }
            (ColumnKind::Typed(_), Value::Text { inner, escaped: true }) => {
                let mut text = Vec::new();
                unescape_into(inner, &mut text);
                if !column.set_value(row, &text) {
                    self.rescue(number, value);
                }
            }
        }
    }

    /// Of a key that is in a record twice, the last value counts.
    #[inline]
    fn forget_earlier(&mut self, number: usize) {
        if let Some(column) = self.columns.get_mut(number) {
            column.truncate(self.len);
        }
        let sighting = self.sightings[number];
        if sighting.rescued_row == self.row_number {
            self.entries[sighting.entry].1 = None;
        }
    }

    fn rescue(&mut self, number: usize, value: Value) {
        let start = self.scratch.len();
        match value {
            Value::Null => return,
            Value::Text { inner, escaped: true } => unescape_into(inner, &mut self.scratch),
            Value::Source(text) | Value::Text { inner: text, .. } => {
                self.scratch.extend_from_slice(text);
            }
        }
        let range = Some((start, self.scratch.len()));
        let sighting = &mut self.sightings[number];
        if sighting.rescued_row == self.row_number {
            self.entries[sighting.entry].1 = range;
        } else {
            (sighting.rescued_row, sighting.entry) = (self.row_number, self.entries.len());
            self.entries.push((number, range));
        }
    }

    fn close_entries(&mut self) {
        let Self { keys, scratch, entries, .. } = self;
        let present = entries.iter().filter_map(|(number, range)| range.map(|range| (*number, range)));
        self.mark.rescued_values += present.clone().filter(|(number, _)| *number < self.columns.len()).count() as u64;
        self.rescued.set(self.len, present.map(|(number, (start, end))| (keys.text(number), &scratch[start..end])));
        self.entries.clear();
        self.scratch.clear();
    }

    /// Returns all rows: the columns with keys in their order, and the rescued data.
    ///
    /// # Errors
    ///
    /// Arrow takes the rows for invalid, which would be a fault of this module.
    pub fn take(&mut self) -> Result<(Vec<ArrayRef>, ArrayRef, ArrayRef), ArrowError> {
        let rows = self.len;
        self.mark.is_partly_written |= rows > self.mark.row;
        let sources = self.take_sources()?;
        let columns = self.columns.iter_mut().map(|column| column.take(rows)).collect::<Result<_, _>>()?;
        let rescued = self.rescued.take(rows)?;
        (self.len, self.bytes) = (0, 0);
        (self.mark.row, self.mark.bytes) = (0, 0);
        Ok((columns, rescued, sources))
    }

    /// The file of each row; the current one stays for rows to come.
    fn take_sources(&mut self) -> Result<ArrayRef, ArrowError> {
        let mut numbers = Vec::with_capacity(self.len);
        let ends = self.sources.iter().skip(1).map(|(row, _)| *row).chain([self.len]);
        for (number, end) in ends.enumerate() {
            numbers.resize(end, i32::try_from(number).expect("files of one batch are below 2^31"));
        }
        let names: StringArray = self.sources.iter().map(|(_, name)| Some(name)).collect();
        self.sources.drain(..self.sources.len().saturating_sub(1));
        if let Some(last) = self.sources.last_mut() {
            last.0 = 0;
        }
        Ok(Arc::new(DictionaryArray::<Int32Type>::try_new(Int32Array::from(numbers), Arc::new(names))?))
    }
}
