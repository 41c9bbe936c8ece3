//! Sums of rows, for comparing the rows in Parquet files with their original lines, whatever the order of either.

mod lines;
mod nested;
mod values;

use std::collections::HashMap;
use std::hash::{BuildHasher, Hasher};

use hashbrown::DefaultHashBuilder;

use crate::columns::ColumnKind;
use lines::{Field, Value};

/// A record's keys without a column are distinguished by number; numbering restarts when there are this many.
const MAX_FURTHER_KEYS: usize = 16 * 1024;

/// Used instead of a column number: a value in the rescued data.
const RESCUED: usize = usize::MAX;

/// The sum of the digests of some rows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sum {
    pub rows: u64,
    pub total: u128,
}

/// A line that is not clearly a record: its number in the block, from 0, its start, and its line feed.
pub type DoubtfulLine = (usize, usize, usize);

/// The content of a block of lines.
#[derive(Debug, Default)]
pub struct Summed {
    pub lines: usize,
    pub blank_lines: usize,
    pub doubtful: Vec<DoubtfulLine>,
    pub sum: Sum,
}

/// A column's values in some rows, as in Arrow.
#[derive(Debug)]
pub struct Values<'a> {
    /// The number of its rows before the first one.
    pub offset: usize,
    /// One bit per row, set if it has a value; without it, all have one.
    pub valid: Option<&'a [u8]>,
    /// The starts of texts; none for values of a fixed width.
    pub offsets: Option<&'a [u8]>,
    pub data: &'a [u8],
    /// A list's elements, a struct's values by key, or a map's keys and values.
    pub parts: Vec<Values<'a>>,
}

/// The content of some rows.
#[derive(Debug, Default)]
pub struct Given<'a> {
    /// Columns by number. Texts in a column of another type are those of its values.
    pub columns: Vec<(usize, Values<'a>)>,
    /// Maps of texts.
    pub rescued: Option<Values<'a>>,
    /// Numbers of columns missing from the rows: rescued values of their keys count as theirs.
    pub moved: Vec<usize>,
    /// Text columns whose values count as a key's rescued ones.
    pub retired: Vec<(Vec<u8>, Values<'a>)>,
}

/// Arrow's buffers are malformed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Malformed;

/// The columns of rows, and how their values become digests.
#[derive(Debug)]
pub struct RowSums {
    kinds: Vec<ColumnKind>,
    /// Each column key's number.
    numbers: HashMap<Box<[u8]>, usize>,
    /// Digests have two halves of 64 bits, with seeds specific to this object.
    hashers: [DefaultHashBuilder; 2],
}

/// Reads lines, one block after the other.
#[derive(Debug)]
pub struct LineReader {
    /// All keys seen, those with a column first.
    numbers: HashMap<Box<[u8]>, usize>,
    keys: Vec<Box<[u8]>>,
    fields: Vec<Field>,
    /// The number of each field's key.
    field_numbers: Vec<usize>,
    /// The previous line's keys, in order: most lines have the same.
    expected: Vec<usize>,
    /// For each key the last line with it, counted over all blocks, and its last field there.
    last: Vec<(u64, usize)>,
    line: u64,
    decoded_key: Vec<u8>,
    decoded: Vec<u8>,
}

impl RowSums {
    /// # Arguments
    ///
    /// * `columns` - Keys with their columns' content; each is identified by a number, from 0.
    pub fn new(columns: Vec<(Vec<u8>, ColumnKind)>) -> Self {
        Self {
            kinds: columns.iter().map(|(_, kind)| kind.clone()).collect(),
            numbers: columns.into_iter().enumerate().map(|(number, (key, _))| (key.into(), number)).collect(),
            hashers: [DefaultHashBuilder::default(), DefaultHashBuilder::default()],
        }
    }

    pub fn line_reader(&self) -> LineReader {
        let mut keys: Vec<Box<[u8]>> = vec![Box::default(); self.kinds.len()];
        for (key, number) in &self.numbers {
            keys[*number].clone_from(key);
        }
        LineReader {
            numbers: self.numbers.clone(),
            last: vec![(0, 0); keys.len()],
            keys,
            fields: Vec::new(),
            field_numbers: Vec::new(),
            expected: Vec::new(),
            line: 0,
            decoded_key: Vec::new(),
            decoded: Vec::new(),
        }
    }

    /// Adds up the rows of whole lines, each with its line feed.
    ///
    /// # Arguments
    ///
    /// * `constants` - Texts for keys that lines may lack: one that has the key keeps its own value, even null.
    pub fn lines(&self, reader: &mut LineReader, block: &[u8], constants: &[(Vec<u8>, Vec<u8>)]) -> Summed {
        let is_text = std::str::from_utf8(block).is_ok();
        let constants: Vec<(usize, &[u8])> =
            constants.iter().map(|(key, text)| (reader.number(key), text.as_slice())).collect();
        let mut summed = Summed::default();
        let mut start = 0;
        while start < block.len() {
            let end = memchr::memchr(b'\n', &block[start..]).map_or(block.len(), |length| start + length);
            let text = &block[start..end];
            if lines::is_blank(text) {
                summed.blank_lines += 1;
            } else if (is_text || std::str::from_utf8(text).is_ok()) && reader.read(text) {
                let digest = self.digest_of(reader, text, &constants);
                self.add(&mut summed.sum, digest);
            } else {
                summed.doubtful.push((summed.lines, start, end));
            }
            summed.lines += 1;
            start = end + 1;
        }
        reader.forget(self.kinds.len());
        summed
    }

    /// Adds up rows.
    ///
    /// # Arguments
    ///
    /// * `rows` - Number of rows.
    /// * `given` - Their content.
    /// * `ends` - The end of each sum; rows from one end to the next are in one sum.
    ///
    /// # Errors
    ///
    /// Values exceed their buffer, or have a wrong width or type; or there is no such column.
    pub fn rows(&self, rows: usize, given: &Given, ends: &[usize]) -> Result<Vec<Sum>, Malformed> {
        let mut digests = vec![0_u128; rows];
        for (number, values) in &given.columns {
            let kind = self.kinds.get(*number).ok_or(Malformed)?;
            let mut row = 0;
            while let Some(next) = values.next_valid(row, rows)? {
                let digest = match kind {
                    ColumnKind::Nested(nested) if !values.parts.is_empty() => {
                        self.digest(*number, &nested::of_arrays(values, next, nested)?)
                    }
                    ColumnKind::Nested(nested) => {
                        let text = values.at(next, &ColumnKind::Text)?.ok_or(Malformed)?;
                        let stored = nested::of_any_size(text, nested).filter(|(_, is_whole)| *is_whole);
                        self.digest(*number, &stored.ok_or(Malformed)?.0)
                    }
                    ColumnKind::Typed(typed) if values.offsets.is_some() => {
                        let text = values.at(next, kind)?.ok_or(Malformed)?;
                        let (stored, width) = values::stored(text, *typed).ok_or(Malformed)?;
                        self.digest(*number, &stored[..width])
                    }
                    _ => self.digest(*number, values.at(next, kind)?.ok_or(Malformed)?),
                };
                digests[next] = digests[next].wrapping_add(digest);
                row = next + 1;
            }
        }
        for (key, values) in &given.retired {
            for (row, digest) in digests.iter_mut().enumerate() {
                if let Some(value) = values.at(row, &ColumnKind::Text)? {
                    *digest = digest.wrapping_add(self.rescued_digest(key, value));
                }
            }
        }
        if let Some(rescued) = &given.rescued {
            self.add_rescued(rescued, &given.moved, &mut digests)?;
        }
        let mut sums = Vec::with_capacity(ends.len());
        let mut start = 0;
        for end in ends {
            let mut sum = Sum::default();
            for digest in digests.get(start..*end).ok_or(Malformed)? {
                self.add(&mut sum, *digest);
            }
            sums.push(sum);
            start = *end;
        }
        Ok(sums)
    }

    fn add_rescued(&self, maps: &Values, moved: &[usize], digests: &mut [u128]) -> Result<(), Malformed> {
        let [keys, values] = &maps.parts[..] else { return Err(Malformed) };
        for (row, digest) in digests.iter_mut().enumerate() {
            let Some((from, to)) = maps.entries(row)? else { continue };
            for entry in from..to {
                let key = keys.at(entry, &ColumnKind::Text)?.ok_or(Malformed)?;
                // A null value is never rescued.
                let value = values.at(entry, &ColumnKind::Text)?.ok_or(Malformed)?;
                let number = self.numbers.get(key).filter(|number| moved.contains(number));
                *digest = digest.wrapping_add(match number {
                    Some(number) => self.value_digest(*number, key, value),
                    None => self.rescued_digest(key, value),
                });
            }
        }
        Ok(())
    }

    /// The digest of the line that was read.
    fn digest_of(&self, reader: &mut LineReader, text: &[u8], constants: &[(usize, &[u8])]) -> u128 {
        let LineReader { keys, fields, field_numbers, last, line, decoded, .. } = reader;
        let mut digest = 0_u128;
        for (at, (field, number)) in fields.iter().zip(field_numbers.iter()).enumerate() {
            // If a key occurs twice in a record, the last value counts.
            if last[*number].1 != at {
                continue;
            }
            let value = match &field.value {
                Value::Null => continue,
                Value::Source(place) => &text[place.clone()],
                Value::Text { inner, is_escaped: false } => &text[inner.clone()],
                Value::Text { inner, is_escaped: true } => {
                    decoded.clear();
                    lines::decode(&text[inner.clone()], decoded);
                    &*decoded
                }
            };
            digest = digest.wrapping_add(self.value_digest(*number, &keys[*number], value));
        }
        for (number, value) in constants {
            if last[*number].0 != *line {
                digest = digest.wrapping_add(self.value_digest(*number, &keys[*number], value));
            }
        }
        digest
    }

    /// The contribution of a key's value to its row's digest.
    fn value_digest(&self, number: usize, key: &[u8], value: &[u8]) -> u128 {
        match self.kinds.get(number) {
            Some(ColumnKind::Text) => self.digest(number, value),
            Some(ColumnKind::Typed(kind)) => match values::stored(value, *kind) {
                Some((stored, width)) => self.digest(number, &stored[..width]),
                None => self.rescued_digest(key, value),
            },
            Some(ColumnKind::Nested(nested)) => match nested::stored(value, nested) {
                Some((stored, true)) => self.digest(number, &stored),
                Some((stored, false)) => self.digest(number, &stored).wrapping_add(self.rescued_digest(key, value)),
                None => self.rescued_digest(key, value),
            },
            None => self.rescued_digest(key, value),
        }
    }

    fn rescued_digest(&self, key: &[u8], value: &[u8]) -> u128 {
        self.hashed(|hasher| {
            hasher.write_usize(RESCUED);
            hasher.write_usize(key.len());
            hasher.write(key);
            hasher.write(value);
        })
    }

    fn digest(&self, number: usize, value: &[u8]) -> u128 {
        self.hashed(|hasher| {
            hasher.write_usize(number);
            hasher.write(value);
        })
    }

    /// Adds a row, given the sum of its values.
    fn add(&self, sum: &mut Sum, values: u128) {
        sum.rows += 1;
        sum.total = sum.total.wrapping_add(self.hashed(|hasher| hasher.write_u128(values)));
    }

    #[inline]
    fn hashed(&self, write: impl Fn(&mut <DefaultHashBuilder as BuildHasher>::Hasher)) -> u128 {
        let [high, low] = self.hashers.each_ref().map(|builder| {
            let mut hasher = builder.build_hasher();
            write(&mut hasher);
            hasher.finish()
        });
        u128::from(high) << 64 | u128::from(low)
    }
}

impl LineReader {
    /// Reads the fields of a line; false if it is not clearly a record.
    fn read(&mut self, text: &[u8]) -> bool {
        if lines::record(text, &mut self.fields).is_err() {
            return false;
        }
        self.line += 1;
        self.field_numbers.clear();
        for at in 0..self.fields.len() {
            let Field { key, is_key_escaped, .. } = &self.fields[at];
            let key = &text[key.clone()];
            let number = if *is_key_escaped {
                let mut decoded = std::mem::take(&mut self.decoded_key);
                decoded.clear();
                lines::decode(key, &mut decoded);
                let number = self.number(&decoded);
                self.decoded_key = decoded;
                number
            } else {
                let expected = self.expected.get(at).copied().filter(|number| *self.keys[*number] == *key);
                expected.unwrap_or_else(|| self.number(key))
            };
            self.field_numbers.push(number);
            self.last[number] = (self.line, at);
        }
        self.expected.clone_from(&self.field_numbers);
        true
    }

    fn number(&mut self, key: &[u8]) -> usize {
        if let Some(number) = self.numbers.get(key) {
            return *number;
        }
        let number = self.keys.len();
        self.keys.push(key.into());
        self.last.push((0, 0));
        self.numbers.insert(key.into(), number);
        number
    }

    /// Drops keys without a column if there are too many.
    fn forget(&mut self, columns: usize) {
        if self.keys.len() > columns + MAX_FURTHER_KEYS {
            for key in self.keys.drain(columns..) {
                self.numbers.remove(&key);
            }
            self.last.truncate(columns);
            self.expected.clear();
        }
    }
}

impl<'a> Values<'a> {
    /// The value in a row; None if null.
    fn at(&self, row: usize, kind: &ColumnKind) -> Result<Option<&'a [u8]>, Malformed> {
        let row = self.offset + row;
        if !self.is_valid(row)? {
            return Ok(None);
        }
        let (from, to) = match (kind, self.offsets) {
            (_, Some(offsets)) => (place(offsets, row)?, place(offsets, row + 1)?),
            (ColumnKind::Typed(kind), None) => {
                let width = values::width(*kind);
                (row * width, row * width + width)
            }
            (_, None) => return Err(Malformed),
        };
        self.data.get(from..to).map(Some).ok_or(Malformed)
    }

    /// Start and end of a row's entries; None if it is null.
    fn entries(&self, row: usize) -> Result<Option<(usize, usize)>, Malformed> {
        let row = self.offset + row;
        let offsets = self.offsets.ok_or(Malformed)?;
        Ok(if self.is_valid(row)? { Some((place(offsets, row)?, place(offsets, row + 1)?)) } else { None })
    }

    /// The first row from this one on, before the last one, that has a value. Most rows of many columns have none.
    fn next_valid(&self, from: usize, rows: usize) -> Result<Option<usize>, Malformed> {
        let mut row = from;
        while row < rows {
            let place = self.offset + row;
            let whole =
                self.valid.filter(|_| place.is_multiple_of(8)).map(|valid| valid.get(place / 8).ok_or(Malformed));
            if whole.transpose()? == Some(&0) {
                row += 8;
            } else if self.is_valid(place)? {
                return Ok(Some(row));
            } else {
                row += 1;
            }
        }
        Ok(None)
    }

    fn is_valid(&self, row: usize) -> Result<bool, Malformed> {
        let Some(valid) = self.valid else { return Ok(true) };
        valid.get(row / 8).map(|byte| byte >> (row % 8) & 1 == 1).ok_or(Malformed)
    }
}

/// The offset with this number.
fn place(offsets: &[u8], number: usize) -> Result<usize, Malformed> {
    let bytes = offsets.get(4 * number..).and_then(|rest| rest.first_chunk()).ok_or(Malformed)?;
    usize::try_from(i32::from_le_bytes(*bytes)).map_err(|_| Malformed)
}
