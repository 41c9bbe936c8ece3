//! One Parquet file, encoded in memory and taken in parts as it grows.

use std::io::Write;
use std::sync::Arc;

use arrow_schema::SchemaRef;
use parquet::arrow::ArrowWriter;
use parquet::arrow::arrow_writer::{ArrowRowGroupWriterFactory, ArrowWriterOptions};
use parquet::basic::{Compression, ZstdLevel};
use parquet::errors::{ParquetError, Result};
use parquet::file::properties::{EnabledStatistics, WriterProperties};
use parquet::file::writer::SerializedFileWriter;
use parquet::schema::types::SchemaDescriptor;

use crate::checked_pages::PageStores;
use crate::open_columns::{OpenColumns, Tools};
use crate::parts::Parts;
use crate::sparse::ColumnRows;
use crate::statistics::{MAX_BOUND_BYTES, declare_order_of_type};
use crate::text::{Compressor, Limits, none_used};

/// Encoded bytes of a row group. A file of 128 MB has eight: enough for parallel reads and to skip by, and few enough
/// for readers that request each column of each group. Measured: with four, queries of a range of rows read twice the
/// bytes. While one is assembled, memory holds little more than one copy of it.
const ROW_GROUP_BYTES: usize = 16 * 1024 * 1024;

/// The most memory of the open row group, including dictionaries and half-filled pages.
const MAX_MEMORY_BYTES: usize = 96 * 1024 * 1024;

/// Each column has an open page and dictionary.
const MIN_PAGE_BYTES: usize = 8 * 1024;
const MAX_PAGE_BYTES: usize = 1024 * 1024;

/// A larger dictionary is abandoned: for columns whose values seldom repeat, most of the work on it would be wasted.
/// Measured: output of events is 5 % smaller than with 64 KiB, for 1 % more work, or 5 % more where almost no value
/// repeats.
const MAX_DICTIONARY_BYTES: usize = 256 * 1024;

/// The file for the rows; it starts with the first of them.
pub struct Output {
    schema: SchemaRef,
    properties: WriterProperties,
    tools: Tools,
    file: Option<OpenFile>,
}

/// A started file, with its open row group.
struct OpenFile {
    writer: SerializedFileWriter<Parts>,
    row_groups: ArrowRowGroupWriterFactory,
    stores: Arc<PageStores>,
    /// The columns of the open row group; none between two row groups.
    columns: Option<OpenColumns>,
    /// For each Parquet column, whether texts seldom repeated in the last row group; empty before there is one.
    repeats_seldom: Vec<bool>,
}

impl Output {
    /// # Arguments
    ///
    /// * `all_pages_bytes` - Total size of the pages of all columns.
    ///
    /// # Errors
    ///
    /// A compression other than `snappy` and `zstd`.
    pub fn new(schema: SchemaRef, compression: &str, all_pages_bytes: usize) -> Result<Self> {
        let (compression, compressor) = match compression {
            "snappy" => (Compression::SNAPPY, Compressor::snappy()),
            "zstd" => {
                let level = ZstdLevel::default();
                (Compression::ZSTD(level), Compressor::zstd(level.compression_level())?)
            }
            other => {
                return Err(ParquetError::General(format!("compression {other:?}: expected snappy or zstd")));
            }
        };
        let page_bytes = (all_pages_bytes / schema.fields().len().max(1)).clamp(MIN_PAGE_BYTES, MAX_PAGE_BYTES);
        let limits = Limits { page_bytes, dictionary_bytes: page_bytes.min(MAX_DICTIONARY_BYTES) };
        let properties = WriterProperties::builder()
            .set_compression(compression)
            .set_created_by(concat!("compactor-native version ", env!("CARGO_PKG_VERSION")).to_owned())
            .set_data_page_size_limit(page_bytes)
            .set_dictionary_page_size_limit(limits.dictionary_bytes)
            .set_statistics_enabled(EnabledStatistics::Page)
            .set_statistics_truncate_length(Some(MAX_BOUND_BYTES))
            .build();
        let tools = Tools { compression, limits, compressor, body: Vec::new(), is_used: none_used() };
        Ok(Self { schema, properties, tools, file: None })
    }

    /// The length of the file if it ended now, including bytes not yet taken; an estimate, as open pages are not
    /// compressed.
    pub fn size_bytes(&self) -> usize {
        let expected = |file: &OpenFile| file.columns.as_ref().map_or(0, OpenColumns::expected_bytes);
        self.file.as_ref().map_or(0, |file| file.writer.bytes_written() + expected(file))
    }

    /// The bytes of the open row group, which will be assembled.
    pub fn in_progress_bytes(&self) -> usize {
        self.file.as_ref().map_or(0, OpenFile::in_progress_bytes)
    }

    /// # Arguments
    ///
    /// * `rows` - The content of each schema column.
    pub fn write(&mut self, rows: &[ColumnRows]) -> Result<()> {
        let file = match &mut self.file {
            Some(file) => file,
            none => none.insert(OpenFile::new(&self.schema, &self.properties)?),
        };
        file.write(&self.schema, rows, &mut self.tools)?;
        if file.in_progress_bytes() >= ROW_GROUP_BYTES || file.memory_bytes() >= MAX_MEMORY_BYTES {
            file.end_row_group(&mut self.tools)?;
        }
        Ok(())
    }

    /// Appends the bytes completed since the last call.
    pub fn move_to(&mut self, completed: &mut Parts) {
        if let Some(file) = &mut self.file {
            completed.append(file.writer.inner_mut());
        }
    }

    /// Ends the file. The next row starts a new one.
    ///
    /// # Arguments
    ///
    /// * `completed` - Receives its last bytes; none if it never started.
    pub fn finish(&mut self, completed: &mut Parts) -> Result<()> {
        let Some(mut file) = self.file.take() else { return Ok(()) };
        file.end_row_group(&mut self.tools)?;
        completed.append(file.writer.inner_mut());
        let schema: SchemaDescriptor = file.writer.schema_descr().clone();
        let mut footer = file.writer.into_inner()?.into_bytes();
        declare_order_of_type(&mut footer, &schema)?;
        Ok(completed.write_all(&footer)?)
    }
}

impl OpenFile {
    fn new(schema: &SchemaRef, properties: &WriterProperties) -> Result<Self> {
        // Readers take types from Parquet's own schema; Arrow's schema would say that texts are dictionaries.
        let options = ArrowWriterOptions::new().with_properties(properties.clone()).with_skip_arrow_metadata(true);
        let writer = ArrowWriter::try_new_with_options(Parts::default(), schema.clone(), options)?;
        let (writer, row_groups) = writer.into_serialized_writer()?;
        let stores = Arc::new(PageStores::default());
        let row_groups = row_groups.with_page_store_factory(stores.clone());
        Ok(Self { writer, row_groups, stores, columns: None, repeats_seldom: Vec::new() })
    }

    fn write(&mut self, schema: &SchemaRef, rows: &[ColumnRows], tools: &mut Tools) -> Result<()> {
        let columns = match &mut self.columns {
            Some(columns) => columns,
            none => {
                let writers = self.row_groups.create_column_writers(self.writer.flushed_row_groups().len())?;
                let writers = writers.into_iter().zip(self.stores.take());
                none.insert(OpenColumns::new(schema, self.writer.schema_descr(), writers, &self.repeats_seldom, tools))
            }
        };
        columns.write(rows, tools)
    }

    fn in_progress_bytes(&self) -> usize {
        self.columns.as_ref().map_or(0, OpenColumns::encoded_bytes)
    }

    fn memory_bytes(&self) -> usize {
        self.columns.as_ref().map_or(0, OpenColumns::memory_bytes)
    }

    fn end_row_group(&mut self, tools: &mut Tools) -> Result<()> {
        let Some(columns) = self.columns.take() else { return Ok(()) };
        let mut row_group = self.writer.next_row_group()?;
        self.repeats_seldom.clear();
        for chunk in columns.close(tools) {
            let chunk = chunk?;
            self.repeats_seldom.push(chunk.repeats_seldom);
            chunk.append_to_row_group(&mut row_group)?;
        }
        row_group.close()?;
        tools.shrink();
        Ok(())
    }
}
