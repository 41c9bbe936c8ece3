//! The columns of a row group in the making. Nulls wait, as a number, until a value follows them or the row group ends.

use std::sync::Arc;

use arrow_array::{ArrayRef, new_null_array};
use arrow_schema::{DataType, FieldRef, Schema};
use parquet::arrow::arrow_writer::{ArrowColumnChunk, ArrowColumnWriter, compute_leaves};
use parquet::errors::{ParquetError, Result};
use parquet::schema::types::SchemaDescriptor;

use crate::sparse::{SparseArray, Stretch};

/// Nulls are written as parts of an array of so many.
const MAX_NULLS: usize = 16 * 1024;

pub struct OpenColumns {
    columns: Vec<OpenColumn>,
}

struct OpenColumn {
    field: FieldRef,
    /// One for each column of Parquet that it consists of.
    writers: Vec<ArrowColumnWriter>,
    /// `MAX_NULLS` of them.
    nulls: ArrayRef,
    /// Nulls behind the rows that are written.
    pending_nulls: usize,
}

impl OpenColumns {
    /// # Arguments
    ///
    /// * `writers` - Of all columns of Parquet, in the order of the schema.
    pub fn new(schema: &Schema, parquet: &SchemaDescriptor, writers: Vec<ArrowColumnWriter>) -> Self {
        let mut nulls = NullArrays::default();
        let column = |field: &FieldRef| {
            let nulls = nulls.of_type(field.data_type());
            OpenColumn { field: field.clone(), writers: Vec::new(), nulls, pending_nulls: 0 }
        };
        let mut columns: Vec<OpenColumn> = schema.fields().iter().map(column).collect();
        for (leaf, writer) in writers.into_iter().enumerate() {
            columns[parquet.get_column_root_idx(leaf)].writers.push(writer);
        }
        Self { columns }
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
            column.write(rows)?;
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
        self.columns.into_iter().flat_map(OpenColumn::close)
    }

    fn writers(&self) -> impl Iterator<Item = &ArrowColumnWriter> {
        self.columns.iter().flat_map(|column| &column.writers)
    }
}

impl OpenColumn {
    fn write(&mut self, rows: &SparseArray) -> Result<()> {
        for stretch in rows.stretches() {
            match stretch {
                Stretch::Nulls(nulls) => self.pending_nulls += nulls,
                Stretch::Stored(array) => {
                    self.write_nulls()?;
                    self.append(&array)?;
                }
            }
        }
        Ok(())
    }

    fn write_nulls(&mut self) -> Result<()> {
        while self.pending_nulls > 0 {
            let nulls = self.nulls.slice(0, self.pending_nulls.min(MAX_NULLS));
            self.append(&nulls)?;
            self.pending_nulls -= nulls.len();
        }
        Ok(())
    }

    fn append(&mut self, array: &ArrayRef) -> Result<()> {
        for (leaf, writer) in compute_leaves(&self.field, array)?.iter().zip(&mut self.writers) {
            writer.write(leaf)?;
        }
        Ok(())
    }

    fn close(mut self) -> Vec<Result<ArrowColumnChunk>> {
        if let Err(error) = self.write_nulls() {
            return vec![Err(error)];
        }
        self.writers.into_iter().map(ArrowColumnWriter::close).collect()
    }
}

/// Nulls of each type, which columns share.
#[derive(Default)]
struct NullArrays(Vec<ArrayRef>);

impl NullArrays {
    fn of_type(&mut self, data_type: &DataType) -> ArrayRef {
        if let Some(found) = self.0.iter().find(|array| array.data_type() == data_type) {
            return Arc::clone(found);
        }
        self.0.push(new_null_array(data_type, MAX_NULLS));
        Arc::clone(&self.0[self.0.len() - 1])
    }
}
