//! From blocks of lines to Parquet: the rows of one bin of files.

use std::fmt;
use std::sync::Arc;

use arrow_array::{ArrayRef, Date32Array, TimestampMicrosecondArray};
use arrow_schema::{DataType, Field as ArrowField, Schema, TimeUnit};
use parquet::errors::{ParquetError, Result};

use crate::background::BackgroundOutput;
use crate::columns::{ColumnKind, Rescued, UTC, with_id};
use crate::keys::KeyRules;
use crate::memory::{NoRoom, expect_room};
use crate::output::Output;
use crate::rows::Rows;
use crate::scan::{self, NoRecord};
use crate::sparse::ColumnRows;
use crate::text::TextRows;

/// Between two files only this share of it is held back: rows are encoded while the processor's cache still has them.
const SHARE_BETWEEN_FILES: usize = 4;

/// Bytes validated as text at once, if no line is longer.
const PART_BYTES: usize = 128 * 1024;

/// Held-back values, and nulls that take as much space.
const MAX_CELLS: usize = 4 * 1024 * 1024;

/// An output column.
#[derive(Debug)]
pub enum OutputColumn {
    /// A key's value.
    Key { key: Vec<u8>, kind: ColumnKind },
    /// Everything without its own column.
    Rescued,
    /// The row's file.
    Source,
    /// The same text in all rows.
    Text(String),
    /// The same time in all rows, in microseconds since 1970.
    Timestamp(i64),
    /// The same date in all rows, in days since 1970.
    Date(i32),
}

/// An output column's name, and its id in tables; 0 if it has none.
#[derive(Debug)]
pub struct ColumnName {
    pub name: String,
    pub field_id: i32,
}

impl From<String> for ColumnName {
    fn from(name: String) -> Self {
        Self { name, field_id: 0 }
    }
}

impl ColumnName {
    fn field(self, data_type: DataType) -> ArrowField {
        with_id(ArrowField::new(self.name, data_type, true), self.field_id)
    }
}

/// Times the records written at once: the additional memory of encoders if all of it is one long value.
const ENCODING_FACTOR: usize = 4;

/// Times the open row group, when it is assembled: a copy of it in parts, and its largest column again.
const GROWTH_FACTOR: usize = 2;

/// A line that is not a record: its number in the block, from 0, its start, its line feed, and its fault.
pub type RefusedLine = (usize, usize, usize, NoRecord);

/// The content of a block of lines.
#[derive(Debug, Default)]
pub struct Judged {
    pub lines: usize,
    pub blank_lines: usize,
    pub refused: Vec<RefusedLine>,
}

impl Judged {
    /// Adds a line that is not a record; returns the place of its line feed.
    fn add_other(&mut self, block: &[u8], start: usize, found: NoRecord) -> usize {
        if let Some(end) = scan::blank(block, start) {
            self.blank_lines += 1;
            return end;
        }
        let fault = match found {
            NoRecord::NoText => found,
            _ => scan::fault(block, start, found),
        };
        let end = end_of_line(block, start);
        self.refused.push((self.lines, start, end, fault));
        end
    }
}

#[derive(Debug)]
pub enum Failure {
    Parquet(ParquetError),
    Memory(NoRoom),
    /// An earlier call failed.
    Broken,
}

impl fmt::Display for Failure {
    fn fmt(&self, formatter: &mut fmt::Formatter) -> fmt::Result {
        match self {
            Self::Parquet(error) => error.fmt(formatter),
            Self::Memory(NoRoom { bytes }) => write!(formatter, "no memory for {bytes} bytes"),
            Self::Broken => formatter.write_str("an earlier call failed; expected no further calls"),
        }
    }
}

impl From<ParquetError> for Failure {
    fn from(error: ParquetError) -> Self {
        Self::Parquet(error)
    }
}

impl From<NoRoom> for Failure {
    fn from(error: NoRoom) -> Self {
        Self::Memory(error)
    }
}

pub struct BinWriter {
    columns: Vec<OutputColumn>,
    /// Columns that take space in each row; counted as at least one, so that rows without a key get written eventually.
    full_columns: usize,
    /// A file's rows are held back up to this size, so that the file can be withdrawn.
    held_bytes: usize,
    rows: Rows,
    output: BackgroundOutput,
}

impl BinWriter {
    /// # Arguments
    ///
    /// * `held_bytes` - A file's rows are held back up to this size, so that the file can be withdrawn.
    /// * `pages_bytes` - Total size of the pages of all columns.
    /// * `threads` - While this process has fewer writers, each encodes in a separate thread.
    ///
    /// # Errors
    ///
    /// The compression is unsupported; or keys have to be rescued without a column for them.
    pub fn new<N: Into<ColumnName>>(
        columns: Vec<(N, OutputColumn)>,
        compression: &str,
        rules: &KeyRules,
        (held_bytes, pages_bytes): (usize, usize),
        threads: usize,
    ) -> Result<Self> {
        let (fields, columns): (Vec<ArrowField>, Vec<OutputColumn>) =
            columns.into_iter().map(|(name, column)| (name.into().field(data_type(&column)), column)).unzip();
        let keyed: Vec<(Vec<u8>, ColumnKind)> = columns
            .iter()
            .filter_map(|column| match column {
                OutputColumn::Key { key, kind } => Some((key.clone(), kind.clone())),
                _ => None,
            })
            .collect();
        let can_rescue = columns.iter().any(|column| matches!(column, OutputColumn::Rescued));
        if !can_rescue && (rules.rescues_unknown || !rules.refused.is_empty()) {
            return Err(ParquetError::General("keys to rescue: expected a rescued data column".to_owned()));
        }
        let output =
            BackgroundOutput::new(Output::new(Arc::new(Schema::new(fields)), compression, pages_bytes)?, threads);
        let full_columns = (columns.len() - keyed.len()).max(1);
        Ok(Self { columns, full_columns, held_bytes, rows: Rows::new(&keyed, rules, can_rescue), output })
    }

    /// Starts a file. The previous one was ended or withdrawn.
    pub fn begin_file(&mut self, source: String) {
        self.rows.begin_file(source);
    }

    /// Drops the current file.
    ///
    /// # Returns
    ///
    /// False if some of its rows are already in the output; then nothing changes.
    pub fn withdraw_file(&mut self) -> bool {
        self.rows.withdraw_file()
    }

    /// Reads whole lines, each with its line feed.
    ///
    /// # Errors
    ///
    /// The rows could not be encoded.
    ///
    /// # Panics
    ///
    /// The block is longer than 4 GiB, or its last line has no line feed.
    pub fn read(&mut self, block: &[u8]) -> std::result::Result<Judged, Failure> {
        assert!(u32::try_from(block.len()).is_ok(), "a block of {} bytes; expected less than 4 GiB", block.len());
        let mut judged = Judged::default();
        let mut fields = Vec::new();
        let (mut is_text, mut looked_at) = (false, 0);
        let mut at = 0;
        while at < block.len() {
            if at >= looked_at {
                looked_at = part_end(block, at);
                is_text = simdutf8::basic::from_utf8(&block[at..looked_at]).is_ok();
            }
            let scanned = if is_text || is_line_text(block, at) {
                scan::record(block, at, self.rows.keys(), &mut fields)
            } else {
                Err(NoRecord::NoText)
            };
            let end = match scanned {
                Ok(end) => {
                    self.rows.append(block, &fields, end - at)?;
                    self.write_if_full(self.held_bytes, MAX_CELLS)?;
                    end
                }
                Err(NoRecord::NoRoom) => return Err(NoRoom { bytes: 2 * size_of_val(fields.as_slice()) }.into()),
                Err(found) => judged.add_other(block, at, found),
            };
            judged.lines += 1;
            at = end + 1;
        }
        Ok(judged)
    }

    /// Ends a file that was read completely.
    ///
    /// # Returns
    ///
    /// The new keys that no earlier file had, in first-seen order; and whether the file has keys that are not
    /// remembered.
    ///
    /// # Errors
    ///
    /// The rows could not be encoded.
    pub fn end_file(&mut self) -> std::result::Result<(Vec<Vec<u8>>, bool), Failure> {
        let (new_keys, has_further) = self.rows.end_file();
        let new_keys = new_keys.into_iter().map(<[u8]>::to_vec).collect();
        self.write_if_full(self.held_bytes / SHARE_BETWEEN_FILES, MAX_CELLS / SHARE_BETWEEN_FILES)?;
        Ok((new_keys, has_further))
    }

    /// The next completed Parquet bytes, without those of the last batch of rows. None if there are no more.
    pub fn take(&mut self) -> Option<Vec<u8>> {
        self.output.take()
    }

    /// The length of the Parquet file so far, including bytes not yet taken, without the last batch of rows.
    #[must_use]
    pub fn output_bytes(&self) -> usize {
        self.output.size_bytes()
    }

    /// Whether some key has no column and cannot be rescued. From then on, no rows are built.
    #[must_use]
    pub fn lacks_columns(&self) -> bool {
        self.rows.lacks_columns()
    }

    /// The number of values that do not fit their column's type, in ended files.
    #[must_use]
    pub fn rescued_values(&self) -> u64 {
        self.rows.rescued_values()
    }

    /// Ends the Parquet file and completes its bytes, which must be taken before the next row: that starts a new file.
    ///
    /// # Errors
    ///
    /// The rows could not be encoded.
    pub fn finish(&mut self) -> std::result::Result<(), Failure> {
        self.write()?;
        self.expect_room_for(0)?;
        Ok(self.output.finish()?)
    }

    /// Whether there is enough memory to encode records of this length, and to assemble the row group.
    fn expect_room_for(&self, record_bytes: usize) -> std::result::Result<(), NoRoom> {
        expect_room(ENCODING_FACTOR * record_bytes + GROWTH_FACTOR * self.output.in_progress_bytes())
    }

    fn write_if_full(&mut self, max_bytes: usize, max_cells: usize) -> std::result::Result<(), Failure> {
        let cells = self.rows.cells() + self.rows.len() * self.full_columns;
        if self.rows.bytes() >= max_bytes || cells >= max_cells { self.write() } else { Ok(()) }
    }

    fn write(&mut self) -> std::result::Result<(), Failure> {
        let rows = self.rows.len();
        // Parquet has no rows without columns.
        if rows == 0 || self.rows.lacks_columns() || self.columns.is_empty() {
            return Ok(());
        }
        self.expect_room_for(self.rows.bytes())?;
        let emptied = self.output.written()?.into_iter().filter_map(emptied);
        let (keyed, rescued, sources) = self.rows.take(emptied).map_err(ParquetError::from)?;
        let mut keyed = keyed.into_iter();
        let arrays: Vec<ColumnRows> = self
            .columns
            .iter()
            .map(|column| match column {
                OutputColumn::Key { .. } => keyed.next().unwrap_or_else(|| rescued.clone().into()),
                OutputColumn::Rescued => rescued.clone().into(),
                OutputColumn::Source => ColumnRows::Runs(sources.clone()),
                OutputColumn::Text(text) => ColumnRows::Runs(vec![(text.as_bytes().into(), rows)]),
                OutputColumn::Timestamp(micros) => timestamps(*micros, rows).into(),
                OutputColumn::Date(days) => dates(*days, rows).into(),
            })
            .collect();
        Ok(self.output.write(arrays)?)
    }
}

fn data_type(column: &OutputColumn) -> DataType {
    match column {
        OutputColumn::Key { kind, .. } => kind.data_type(),
        OutputColumn::Rescued => Rescued::data_type(),
        OutputColumn::Source | OutputColumn::Text(_) => DataType::Utf8,
        OutputColumn::Timestamp(_) => DataType::Timestamp(TimeUnit::Microsecond, Some(UTC.into())),
        OutputColumn::Date(_) => DataType::Date32,
    }
}

/// The buffer of written rows.
fn emptied(rows: ColumnRows) -> Option<TextRows> {
    match rows {
        ColumnRows::Texts(mut texts) => {
            texts.clear();
            Some(texts)
        }
        _ => None,
    }
}

fn timestamps(micros: i64, rows: usize) -> ArrayRef {
    Arc::new(TimestampMicrosecondArray::from_value(micros, rows).with_timezone(UTC))
}

fn dates(days: i32, rows: usize) -> ArrayRef {
    Arc::new(Date32Array::from_value(days, rows))
}

/// The end of the lines to validate as text at once: they are still in the processor's cache when they are read.
fn part_end(block: &[u8], start: usize) -> usize {
    let most = block.len().min(start + PART_BYTES);
    match memchr::memrchr(b'\n', &block[start..most]) {
        Some(length) => start + length + 1,
        None => end_of_line(block, most) + 1,
    }
}

fn is_line_text(block: &[u8], start: usize) -> bool {
    simdutf8::basic::from_utf8(&block[start..end_of_line(block, start)]).is_ok()
}

fn end_of_line(block: &[u8], start: usize) -> usize {
    memchr::memchr(b'\n', &block[start..]).map_or(block.len(), |length| start + length)
}
