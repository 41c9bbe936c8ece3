//! One Parquet file, encoded in memory and taken in parts as it grows.

use arrow_array::RecordBatch;
use arrow_schema::SchemaRef;
use parquet::arrow::ArrowWriter;
use parquet::arrow::arrow_writer::ArrowWriterOptions;
use parquet::basic::{Compression, ZstdLevel};
use parquet::errors::{ParquetError, Result};
use parquet::file::properties::{EnabledStatistics, WriterProperties};

/// Encoded bytes of a row group. A file of 128 MB has four: enough for parallel reads, and few enough for readers that
/// request each column of each group. While a row group is taken, memory holds it three times.
const ROW_GROUP_BYTES: usize = 32 * 1024 * 1024;

/// What the row group in the making may hold in memory, dictionaries and half-filled pages included.
const MAX_MEMORY_BYTES: usize = 96 * 1024 * 1024;

/// Pages of all columns together; each column has a page and a dictionary in the making.
const PAGES_BYTES: usize = 32 * 1024 * 1024;
const MIN_PAGE_BYTES: usize = 8 * 1024;
const MAX_PAGE_BYTES: usize = 1024 * 1024;

/// A larger dictionary is given up: of columns whose values seldom repeat, most of the work on it would be lost.
const MAX_DICTIONARY_BYTES: usize = 64 * 1024;

/// The file that rows are written to; it begins with the first of them.
pub struct Output {
    schema: SchemaRef,
    properties: WriterProperties,
    writer: Option<ArrowWriter<Vec<u8>>>,
}

impl Output {
    /// # Errors
    ///
    /// A compression that is none of `snappy` and `zstd`.
    pub fn new(schema: SchemaRef, compression: &str) -> Result<Self> {
        let compression = match compression {
            "snappy" => Compression::SNAPPY,
            "zstd" => Compression::ZSTD(ZstdLevel::default()),
            other => {
                return Err(ParquetError::General(format!("compression {other:?}: expected snappy or zstd")));
            }
        };
        let page_bytes = (PAGES_BYTES / schema.fields().len().max(1)).clamp(MIN_PAGE_BYTES, MAX_PAGE_BYTES);
        let properties = WriterProperties::builder()
            .set_compression(compression)
            .set_created_by(concat!("compactor-native version ", env!("CARGO_PKG_VERSION")).to_owned())
            .set_data_page_size_limit(page_bytes)
            .set_dictionary_page_size_limit(page_bytes.min(MAX_DICTIONARY_BYTES))
            .set_max_row_group_row_count(None)
            .set_statistics_enabled(EnabledStatistics::Chunk)
            .build();
        Ok(Self { schema, properties, writer: None })
    }

    /// The length of the file so far, including bytes that were not taken yet.
    pub fn size_bytes(&self) -> usize {
        self.writer.as_ref().map_or(0, |writer| writer.bytes_written() + writer.in_progress_size())
    }

    pub fn write(&mut self, batch: &RecordBatch) -> Result<()> {
        if self.writer.is_none() {
            // Readers tell types by Parquet's own schema; Arrow's beside it would say that texts are dictionaries.
            let options =
                ArrowWriterOptions::new().with_properties(self.properties.clone()).with_skip_arrow_metadata(true);
            self.writer = Some(ArrowWriter::try_new_with_options(Vec::new(), self.schema.clone(), options)?);
        }
        if let Some(writer) = &mut self.writer {
            writer.write(batch)?;
            if writer.in_progress_size() >= ROW_GROUP_BYTES || writer.memory_size() >= MAX_MEMORY_BYTES {
                writer.flush()?;
            }
        }
        Ok(())
    }

    /// The bytes that were completed since the last call.
    pub fn take(&mut self) -> Vec<u8> {
        self.writer.as_mut().map(|writer| std::mem::take(writer.inner_mut())).unwrap_or_default()
    }

    /// Ends the file. The next row begins another one.
    ///
    /// # Returns
    ///
    /// Its last bytes; none if it never began.
    pub fn finish(&mut self) -> Result<Vec<u8>> {
        self.writer.take().map_or(Ok(Vec::new()), ArrowWriter::into_inner)
    }
}
