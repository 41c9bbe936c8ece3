//! Keeps the pages of the columns that the library encodes, and adds the checksums to them that it leaves out.

use std::mem::take;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bytes::Bytes;
use parquet::arrow::arrow_writer::{ArrowColumnChunk, PageKey, PageStore, PageStoreArgs, PageStoreFactory};
use parquet::errors::{ParquetError, Result};

use crate::chunk::{Chunk, DataPage, length};
use crate::statistics::{readable, readable_index};
use crate::text::{is_dictionary, with_checksum};

/// The pages of each column of an open row group, in the order of the columns.
#[derive(Debug, Default)]
pub struct PageStores(Mutex<Vec<ColumnPages>>);

impl PageStores {
    /// The pages of the columns whose writers were created since the last call.
    pub fn take(&self) -> Vec<ColumnPages> {
        take(&mut *self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl PageStoreFactory for PageStores {
    fn create(&self, _args: &PageStoreArgs<'_>) -> Result<Box<dyn PageStore>> {
        let pages = ColumnPages::default();
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push(pages.clone());
        Ok(Box::new(pages))
    }
}

/// The complete pages of a column; clones share them.
#[derive(Clone, Debug, Default)]
pub struct ColumnPages(Arc<Mutex<Pages>>);

#[derive(Debug, Default)]
struct Pages {
    /// The header of the page that follows.
    header: Option<Bytes>,
    dictionary: Vec<Bytes>,
    data: Vec<Vec<Bytes>>,
    added_bytes: usize,
    bytes: usize,
}

impl ColumnPages {
    fn lock(&self) -> MutexGuard<'_, Pages> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The column of these pages.
    ///
    /// # Errors
    ///
    /// The chunk has other pages, which would be a fault in this module.
    pub fn into_chunk(self, chunk: &ArrowColumnChunk) -> Result<Chunk> {
        let fault = || ParquetError::General("a column with other pages than those in its index".to_owned());
        let pages = take(&mut *self.lock());
        let (metadata, locations) = (&chunk.close().metadata, chunk.close().offset_index.as_ref().ok_or_else(fault)?);
        let starts = locations.page_locations().iter().map(|page| page.first_row_index);
        let ends = starts.clone().skip(1).chain([i64::try_from(chunk.close().rows_written).map_err(|_| fault())?]);
        let rows: Vec<i64> = starts.zip(ends).map(|(start, end)| end - start).collect();
        if rows.len() != pages.data.len() {
            return Err(fault());
        }
        let data = pages
            .data
            .into_iter()
            .zip(rows)
            .map(|(parts, rows)| Ok(DataPage { parts, rows: usize::try_from(rows).map_err(|_| fault())? }));
        let builder = metadata.clone().into_builder();
        Ok(Chunk {
            dictionary: pages.dictionary,
            pages: data.collect::<Result<_>>()?,
            uncompressed_bytes: usize::try_from(metadata.uncompressed_size()).map_err(|_| fault())? + pages.added_bytes,
            metadata: match readable(metadata.statistics()) {
                Some(statistics) => builder.set_statistics(statistics).build()?,
                None => builder.build()?,
            },
            // The library counts rows where it should count values, if a row has several.
            column_index: match metadata.column_descr().max_rep_level() {
                0 => readable_index(chunk.close().column_index.as_ref())?,
                _ => None,
            },
            repeats_seldom: false,
        })
    }
}

impl PageStore for ColumnPages {
    /// Takes the header of a page, and its bytes with the next call.
    fn put(&mut self, value: Bytes) -> Result<PageKey> {
        let mut pages = self.lock();
        let Some(header) = pages.header.take() else {
            pages.header = Some(value);
            return Ok(PageKey::new(0));
        };
        let checked = with_checksum(&header, &value)?;
        pages.added_bytes += checked.len() - header.len();
        let parts = vec![Bytes::from(checked), value];
        pages.bytes += length(&parts);
        if is_dictionary(&header) {
            pages.dictionary = parts;
        } else {
            pages.data.push(parts);
        }
        Ok(PageKey::new(0))
    }

    fn take(&mut self, _key: PageKey) -> Result<Bytes> {
        Err(ParquetError::General("pages are taken with their column".to_owned()))
    }

    fn memory_size(&self) -> usize {
        self.lock().bytes
    }
}
