//! The columns of an open row group. Nulls wait as a number until a value follows or the row group ends.

use arrow_array::{ArrayRef, new_null_array};
use arrow_schema::{DataType, FieldRef, Schema};
use parquet::arrow::arrow_writer::{ArrowColumnWriter, ArrowLeafColumn, compute_leaves};
use parquet::basic::Compression;
use parquet::errors::{ParquetError, Result};
use parquet::schema::types::SchemaDescriptor;

use crate::checked_pages::ColumnPages;
use crate::chunk::Chunk;
use crate::sparse::{ColumnRows, SparseArray, Stretch};
use crate::text::{Compressor, IsUsed, Limits, TextWriter};

/// At most this many nulls are written at once.
const MAX_NULLS: usize = 16 * 1024;

/// Nulls are written in multiples of this, and the rest separately.
const NULLS_STEP: usize = 1024;

/// The page memory kept between two row groups.
const KEPT_BYTES: usize = 4 * 1024 * 1024;

/// Until this many bytes were compressed, pages are assumed to shrink by half, as those of logs do.
const USUAL_BYTES: usize = 512 * 1024;

pub struct OpenColumns {
    columns: Vec<OpenColumn>,
    /// For each column type.
    nulls: Vec<Nulls>,
}

enum OpenColumn {
    Texts(Box<TextWriter>),
    Arrays(ArrayColumn),
}

/// A column of values, or of maps.
struct ArrayColumn {
    field: FieldRef,
    /// Its index among the types.
    data_type: usize,
    /// One for each of its Parquet columns.
    writers: Vec<(ArrowColumnWriter, ColumnPages)>,
    /// Nulls after the written rows.
    pending_nulls: usize,
}

/// Shared by all columns of a file for writing.
pub struct Tools {
    pub compression: Compression,
    pub limits: Limits,
    pub compressor: Compressor,
    /// The page being written, before compression.
    pub body: Vec<u8>,
    pub is_used: IsUsed,
}

impl Tools {
    /// Frees memory that only an unusually long page needed.
    pub fn shrink(&mut self) {
        self.body.shrink_to(KEPT_BYTES);
        self.compressor.shrink_to(KEPT_BYTES);
    }
}

/// Nulls of one type, prepared for writers once for each length.
struct Nulls {
    data_type: DataType,
    /// As many as are written at once; nothing until they are needed.
    array: Option<ArrayRef>,
    leaves: Vec<Option<Vec<ArrowLeafColumn>>>,
}

impl OpenColumns {
    /// # Arguments
    ///
    /// * `writers` - For all Parquet columns, in schema order, with their pages.
    /// * `repeats_seldom` - For each of them, whether texts seldom repeated in the last row group; empty without one.
    pub fn new(
        schema: &Schema,
        parquet: &SchemaDescriptor,
        writers: impl Iterator<Item = (ArrowColumnWriter, ColumnPages)>,
        repeats_seldom: &[bool],
        tools: &Tools,
    ) -> Self {
        let mut nulls: Vec<Nulls> = Vec::new();
        let mut writers = writers.enumerate().peekable();
        let mut columns = Vec::with_capacity(schema.fields().len());
        for (root, field) in schema.fields().iter().enumerate() {
            let mut leaves = Vec::new();
            while let Some(leaf) = writers.next_if(|(leaf, _)| parquet.get_column_root_idx(*leaf) == root) {
                leaves.push(leaf);
            }
            columns.push(match (field.data_type(), leaves.first()) {
                (DataType::Utf8, Some((leaf, _))) => {
                    let is_plain = repeats_seldom.get(*leaf).copied().unwrap_or_default();
                    let writer = TextWriter::new(parquet.column(*leaf), tools.compression, tools.limits, is_plain);
                    OpenColumn::Texts(Box::new(writer))
                }
                (data_type, _) => OpenColumn::Arrays(ArrayColumn {
                    field: field.clone(),
                    data_type: place(&mut nulls, data_type),
                    writers: leaves.into_iter().map(|(_, writer)| writer).collect(),
                    pending_nulls: 0,
                }),
            });
        }
        Self { columns, nulls }
    }

    /// Appends rows.
    ///
    /// # Arguments
    ///
    /// * `rows` - Each column's content.
    ///
    /// # Errors
    ///
    /// The columns differ from the schema, or have different numbers of rows, which would be a fault in this module.
    pub fn write(&mut self, rows: &[ColumnRows], tools: &mut Tools) -> Result<()> {
        let count = rows.first().map_or(0, ColumnRows::len);
        if rows.len() != self.columns.len() || rows.iter().any(|column| column.len() != count) {
            return Err(ParquetError::General("columns of different lengths".to_owned()));
        }
        for (column, rows) in self.columns.iter_mut().zip(rows) {
            match (column, rows) {
                (OpenColumn::Texts(writer), ColumnRows::Texts(texts)) => writer.write(texts, tools)?,
                (OpenColumn::Texts(writer), ColumnRows::Runs(runs)) => writer.write_runs(runs, tools)?,
                (OpenColumn::Arrays(column), ColumnRows::Array(array)) => {
                    column.write(array, &mut self.nulls[column.data_type])?;
                }
                _ => return Err(ParquetError::General("a column of a different kind".to_owned())),
            }
        }
        Ok(())
    }

    pub fn encoded_bytes(&self) -> usize {
        self.sum(TextWriter::encoded_bytes, ArrowColumnWriter::get_estimated_total_bytes)
    }

    /// The length of the row group if it ended now: text pages are expected to shrink as the earlier ones did.
    pub fn expected_bytes(&self) -> usize {
        let before = self.sum(|texts| texts.complete_bytes().0, |_| 0) + 2 * USUAL_BYTES;
        let after = self.sum(|texts| texts.complete_bytes().1, |_| 0) + USUAL_BYTES;
        let open = self.sum(TextWriter::open_bytes, |_| 0);
        self.encoded_bytes() - open.saturating_sub(open * after / before)
    }

    pub fn memory_bytes(&self) -> usize {
        self.sum(TextWriter::memory_bytes, ArrowColumnWriter::memory_size)
    }

    /// The Parquet columns, one by one, so that each can be released before the next one is assembled.
    pub fn close(self, tools: &mut Tools) -> impl Iterator<Item = Result<Chunk>> {
        let Self { columns, mut nulls } = self;
        columns.into_iter().flat_map(move |column| match column {
            OpenColumn::Texts(writer) => vec![writer.close(tools)],
            OpenColumn::Arrays(column) => {
                let data_type = column.data_type;
                column.close(&mut nulls[data_type])
            }
        })
    }

    fn sum(&self, texts: impl Fn(&TextWriter) -> usize, arrays: impl Fn(&ArrowColumnWriter) -> usize) -> usize {
        let columns = self.columns.iter().map(|column| match column {
            OpenColumn::Texts(writer) => texts(writer),
            OpenColumn::Arrays(column) => column.writers.iter().map(|(writer, _)| arrays(writer)).sum(),
        });
        columns.sum()
    }
}

/// The index of a type among the columns' types.
fn place(nulls: &mut Vec<Nulls>, data_type: &DataType) -> usize {
    let known = nulls.iter().position(|nulls| nulls.data_type == *data_type);
    known.unwrap_or_else(|| {
        nulls.push(Nulls { data_type: data_type.clone(), array: None, leaves: Vec::new() });
        nulls.len() - 1
    })
}

impl ArrayColumn {
    fn write(&mut self, rows: &SparseArray, nulls: &mut Nulls) -> Result<()> {
        for stretch in rows.stretches() {
            match stretch {
                Stretch::Nulls(count) => self.pending_nulls += count,
                Stretch::Stored(array) => {
                    self.write_nulls(nulls)?;
                    self.append(&compute_leaves(&self.field, &array)?)?;
                }
            }
        }
        Ok(())
    }

    fn write_nulls(&mut self, nulls: &mut Nulls) -> Result<()> {
        while self.pending_nulls > 0 {
            let (count, leaves) = nulls.leaves(&self.field, self.pending_nulls)?;
            self.append(leaves)?;
            self.pending_nulls -= count;
        }
        Ok(())
    }

    fn append(&mut self, leaves: &[ArrowLeafColumn]) -> Result<()> {
        self.writers.iter_mut().zip(leaves).try_for_each(|((writer, _), leaf)| writer.write(leaf))
    }

    fn close(mut self, nulls: &mut Nulls) -> Vec<Result<Chunk>> {
        if let Err(error) = self.write_nulls(nulls) {
            return vec![Err(error)];
        }
        self.writers.into_iter().map(|(writer, pages)| pages.into_chunk(&writer.close()?)).collect()
    }
}

impl Nulls {
    /// The first of this many nulls, with their number.
    fn leaves(&mut self, field: &FieldRef, wanted: usize) -> Result<(usize, &[ArrowLeafColumn])> {
        let steps = wanted.min(MAX_NULLS) / NULLS_STEP;
        let (count, place) = if steps == 0 { (wanted, wanted) } else { (steps * NULLS_STEP, NULLS_STEP + steps - 1) };
        if place >= self.leaves.len() {
            self.leaves.resize_with(place + 1, || None);
        }
        let leaves = match &mut self.leaves[place] {
            Some(leaves) => leaves,
            none => {
                let array = self.array.get_or_insert_with(|| new_null_array(&self.data_type, MAX_NULLS));
                none.insert(compute_leaves(field, &array.slice(0, count))?)
            }
        };
        Ok((count, leaves.as_slice()))
    }
}
