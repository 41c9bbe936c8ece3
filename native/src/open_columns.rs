//! The columns of a row group in the making. Nulls wait, as a number, until a value follows them or the row group ends.

use arrow_array::{ArrayRef, new_null_array};
use arrow_schema::{DataType, FieldRef, Schema};
use parquet::arrow::arrow_writer::{ArrowColumnChunk, ArrowColumnWriter, ArrowLeafColumn, compute_leaves};
use parquet::errors::{ParquetError, Result};
use parquet::schema::types::SchemaDescriptor;

use crate::sparse::{SparseArray, Stretch};

/// So many nulls are written at once at most.
const MAX_NULLS: usize = 16 * 1024;

/// Nulls are written in multiples of this, and the rest by itself.
const NULLS_STEP: usize = 1024;

pub struct OpenColumns {
    columns: Vec<OpenColumn>,
    /// Of each type that a column has.
    nulls: Vec<Nulls>,
}

struct OpenColumn {
    field: FieldRef,
    /// Its place among the types.
    data_type: usize,
    /// One for each column of Parquet that it consists of.
    writers: Vec<ArrowColumnWriter>,
    /// Nulls behind the rows that are written.
    pending_nulls: usize,
}

/// Nulls of one type, made ready for writers once for each number of them.
struct Nulls {
    data_type: DataType,
    /// As many as are written at once; nothing before they are needed.
    array: Option<ArrayRef>,
    leaves: Vec<Option<Vec<ArrowLeafColumn>>>,
}

impl OpenColumns {
    /// # Arguments
    ///
    /// * `writers` - Of all columns of Parquet, in the order of the schema.
    pub fn new(schema: &Schema, parquet: &SchemaDescriptor, writers: Vec<ArrowColumnWriter>) -> Self {
        let mut nulls: Vec<Nulls> = Vec::new();
        let mut columns = Vec::with_capacity(schema.fields().len());
        for field in schema.fields() {
            let known = nulls.iter().position(|nulls| nulls.data_type == *field.data_type());
            let data_type = known.unwrap_or(nulls.len());
            if known.is_none() {
                nulls.push(Nulls { data_type: field.data_type().clone(), array: None, leaves: Vec::new() });
            }
            columns.push(OpenColumn { field: field.clone(), data_type, writers: Vec::new(), pending_nulls: 0 });
        }
        for (leaf, writer) in writers.into_iter().enumerate() {
            columns[parquet.get_column_root_idx(leaf)].writers.push(writer);
        }
        Self { columns, nulls }
    }

    /// Appends rows.
    ///
    /// # Arguments
    ///
    /// * `rows` - What each column has in them.
    ///
    /// # Errors
    ///
    /// The columns are not those of the schema, or have not the same number of rows, which would be a fault of this
    /// module.
    pub fn write(&mut self, rows: &[SparseArray]) -> Result<()> {
        let count = rows.first().map_or(0, SparseArray::len);
        if rows.len() != self.columns.len() || rows.iter().any(|column| column.len() != count) {
            return Err(ParquetError::General("columns of other lengths than others".to_owned()));
        }
        for (column, rows) in self.columns.iter_mut().zip(rows) {
            column.write(rows, &mut self.nulls[column.data_type])?;
        }
        Ok(())
    }

    pub fn encoded_bytes(&self) -> usize {
        self.writers().map(ArrowColumnWriter::get_estimated_total_bytes).sum()
    }

    pub fn memory_bytes(&self) -> usize {
        self.writers().map(ArrowColumnWriter::memory_size).sum()
    }

    /// The columns of Parquet, one after the other, so that each can go before the next one is put together.
    pub fn close(self) -> impl Iterator<Item = Result<ArrowColumnChunk>> {
        let Self { columns, mut nulls } = self;
        columns.into_iter().flat_map(move |column| {
            let data_type = column.data_type;
            column.close(&mut nulls[data_type])
        })
    }

    fn writers(&self) -> impl Iterator<Item = &ArrowColumnWriter> {
        self.columns.iter().flat_map(|column| &column.writers)
    }
}

impl OpenColumn {
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
        self.writers.iter_mut().zip(leaves).try_for_each(|(writer, leaf)| writer.write(leaf))
    }

    fn close(mut self, nulls: &mut Nulls) -> Vec<Result<ArrowColumnChunk>> {
        if let Err(error) = self.write_nulls(nulls) {
            return vec![Err(error)];
        }
        self.writers.into_iter().map(ArrowColumnWriter::close).collect()
    }
}

impl Nulls {
    /// The first of so many nulls, with their number.
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
