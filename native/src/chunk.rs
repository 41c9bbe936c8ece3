//! A complete Parquet column of a row group: its pages, and what the footer and the page index say of them.

use std::io::{self, Read};
use std::sync::{Mutex, PoisonError};

use bytes::Bytes;
use parquet::column::writer::ColumnCloseResult;
use parquet::errors::{ParquetError, Result};
use parquet::file::metadata::{ColumnChunkMetaData, OffsetIndexBuilder};
use parquet::file::page_index::column_index::ColumnIndexMetaData;
use parquet::file::reader::{ChunkReader, Length};
use parquet::file::writer::SerializedRowGroupWriter;

use crate::parts::Parts;

/// A page of rows.
pub struct DataPage {
    /// Its header, and what follows it; or both in one.
    pub parts: Vec<Bytes>,
    pub rows: usize,
}

pub struct Chunk {
    /// The dictionary's page, if there is one.
    pub dictionary: Vec<Bytes>,
    pub pages: Vec<DataPage>,
    /// All but the places and lengths of the pages.
    pub metadata: ColumnChunkMetaData,
    /// The bytes of all pages before compression, with their headers.
    pub uncompressed_bytes: usize,
    pub column_index: Option<ColumnIndexMetaData>,
    /// Whether the same column is better off without a dictionary in the next row group.
    pub repeats_seldom: bool,
}

impl Chunk {
    pub fn append_to_row_group(self, row_group: &mut SerializedRowGroupWriter<'_, Parts>) -> Result<()> {
        let dictionary_bytes = length(&self.dictionary);
        let mut offsets = OffsetIndexBuilder::new();
        let (mut end, mut rows) = (dictionary_bytes, 0);
        for page in &self.pages {
            let page_bytes = length(&page.parts);
            let size = i32::try_from(page_bytes).map_err(|_| too_long(page_bytes))?;
            offsets.append_offset_and_size(signed(end), size);
            offsets.append_row_count(signed(page.rows));
            (end, rows) = (end + page_bytes, rows + page.rows);
        }
        let metadata = self
            .metadata
            .into_builder()
            .set_total_compressed_size(signed(end))
            .set_total_uncompressed_size(signed(self.uncompressed_bytes))
            .set_data_page_offset(signed(dictionary_bytes))
            .set_dictionary_page_offset((dictionary_bytes > 0).then_some(0))
            .build()?;
        let close = ColumnCloseResult {
            bytes_written: end as u64,
            rows_written: rows as u64,
            metadata,
            bloom_filter: None,
            column_index: self.column_index,
            offset_index: Some(offsets.build()),
        };
        let parts = self.dictionary.into_iter().chain(self.pages.into_iter().flat_map(|page| page.parts));
        row_group.append_column(&PartsInOrder { length: end as u64, parts: Mutex::new(parts.collect()) }, close)
    }
}

pub fn length(parts: &[Bytes]) -> usize {
    parts.iter().map(Bytes::len).sum()
}

/// Sizes of things in memory.
pub fn signed(size: usize) -> i64 {
    i64::try_from(size).unwrap_or(i64::MAX)
}

pub fn too_long(page_bytes: usize) -> ParquetError {
    ParquetError::General(format!("a page of {page_bytes} bytes; expected less than 2 GiB"))
}

/// A column's pages, readable once, and released while being read.
struct PartsInOrder {
    length: u64,
    parts: Mutex<Vec<Bytes>>,
}

impl Length for PartsInOrder {
    fn len(&self) -> u64 {
        self.length
    }
}

impl ChunkReader for PartsInOrder {
    type T = PartsReader;

    fn get_read(&self, _start: u64) -> Result<PartsReader> {
        let parts = std::mem::take(&mut *self.parts.lock().unwrap_or_else(PoisonError::into_inner));
        Ok(PartsReader { parts: parts.into_iter(), part: Bytes::new(), at: 0 })
    }

    fn get_bytes(&self, _start: u64, _length: usize) -> Result<Bytes> {
        Err(ParquetError::General("pages must be read in order".to_owned()))
    }
}

struct PartsReader {
    parts: std::vec::IntoIter<Bytes>,
    part: Bytes,
    at: usize,
}

impl Read for PartsReader {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        while self.at == self.part.len() {
            let Some(part) = self.parts.next() else { return Ok(0) };
            (self.part, self.at) = (part, 0);
        }
        let length = (&self.part[self.at..]).read(buffer)?;
        self.at += length;
        Ok(length)
    }
}
