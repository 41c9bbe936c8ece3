//! Parquet pages: their headers in Thrift's compact protocol, and their compressed bytes.

use std::io::{self, Read};
use std::sync::{Mutex, PoisonError};

use bytes::Bytes;
use parquet::errors::{ParquetError, Result};
use parquet::file::reader::{ChunkReader, Length};

use super::hybrid::push_varint;
use super::snappy::{Encoder, Search, max_compressed_bytes};

/// Thrift's numbers for Parquet's encodings.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Values {
    Plain = 0,
    Places = 8,
}

/// Of the levels.
const RUN_LENGTHS: u64 = 3;

const PAGE_OF_DATA: u64 = 0;
const PAGE_OF_DICTIONARY: u64 = 2;

/// The header's field for the header of each kind of page.
const DATA_FIELD: u8 = 5;
const DICTIONARY_FIELD: u8 = 7;

/// Thrift's types: the marks of a 32-bit integer, a struct, and its end.
const INTEGER: u8 = 5;
const STRUCT: u8 = 12;
const END: u8 = 0;

/// Compresses pages, reusing its memory.
pub struct Compressor {
    codec: Codec,
    compressed: Vec<u8>,
}

enum Codec {
    Snappy(Encoder),
    Zstd(zstd::bulk::Compressor<'static>),
}

/// A page with its header.
#[derive(Debug)]
pub struct Page {
    pub bytes: Vec<u8>,
    pub header_bytes: usize,
}

impl Compressor {
    pub fn snappy() -> Self {
        Self { codec: Codec::Snappy(Encoder::default()), compressed: Vec::new() }
    }

    /// # Errors
    ///
    /// The level is not one of zstd's, or there is not enough memory.
    pub fn zstd(level: i32) -> Result<Self> {
        let codec = Codec::Zstd(zstd::bulk::Compressor::new(level)?);
        Ok(Self { codec, compressed: Vec::new() })
    }

    /// The best compression for pages like this one; None if it is too short to decide.
    pub fn best_search(&mut self, body: &[u8]) -> Option<Search> {
        self.make_room(body);
        match &mut self.codec {
            Codec::Snappy(encoder) => encoder.best_search(body, &mut self.compressed),
            Codec::Zstd(_) => None,
        }
    }

    /// A page of rows.
    ///
    /// # Arguments
    ///
    /// * `body` - The levels and values.
    /// * `rows` - Number of rows, including nulls.
    /// * `search` - Snappy's search for copies.
    pub fn data_page(&mut self, body: &[u8], rows: usize, values: Values, search: Search) -> Result<Page> {
        let numbers = [rows as u64, values as u64, RUN_LENGTHS, RUN_LENGTHS];
        self.page(body, PAGE_OF_DATA, DATA_FIELD, &numbers, search)
    }

    /// A dictionary's page.
    pub fn dictionary_page(&mut self, body: &[u8], values: usize) -> Result<Page> {
        let numbers = [values as u64, Values::Plain as u64];
        self.page(body, PAGE_OF_DICTIONARY, DICTIONARY_FIELD, &numbers, Search::Four)
    }

    /// Frees memory beyond this size.
    pub fn shrink_to(&mut self, bytes: usize) {
        self.compressed.truncate(bytes);
        self.compressed.shrink_to(bytes);
    }

    fn page(&mut self, body: &[u8], kind: u64, field: u8, numbers: &[u64], search: Search) -> Result<Page> {
        let compressed = self.compress(body, search)?;
        if i32::try_from(body.len().max(compressed.len())).is_err() {
            return Err(ParquetError::General(format!("a page of {} bytes; expected less than 2 GiB", body.len())));
        }
        let mut bytes = Vec::with_capacity(compressed.len() + 32);
        push_integers(&mut bytes, &[kind, body.len() as u64, compressed.len() as u64]);
        bytes.push((field - 3) << 4 | STRUCT);
        push_integers(&mut bytes, numbers);
        bytes.extend_from_slice(&[END, END]);
        let header_bytes = bytes.len();
        bytes.extend_from_slice(compressed);
        Ok(Page { bytes, header_bytes })
    }

    fn compress(&mut self, body: &[u8], search: Search) -> Result<&[u8]> {
        self.make_room(body);
        let length = match &mut self.codec {
            Codec::Snappy(encoder) => encoder.compress(body, search, &mut self.compressed),
            Codec::Zstd(compressor) => compressor.compress_to_buffer(body, &mut self.compressed[..])?,
        };
        Ok(&self.compressed[..length])
    }

    /// Reserves space for the compressed page.
    fn make_room(&mut self, body: &[u8]) {
        let most = match self.codec {
            Codec::Snappy(_) => max_compressed_bytes(body.len()),
            Codec::Zstd(_) => zstd::zstd_safe::compress_bound(body.len()),
        };
        if self.compressed.len() < most {
            self.compressed.resize(most, 0);
        }
    }
}

/// Appends integers as a struct's fields 1, 2, 3 and so on.
fn push_integers(bytes: &mut Vec<u8>, numbers: &[u64]) {
    for number in numbers {
        bytes.push(1 << 4 | INTEGER);
        // Zigzag encoding of non-negative numbers.
        push_varint(bytes, number << 1);
    }
}

/// A column's pages, readable once, and released while being read.
pub struct PagesInOrder {
    length: u64,
    pages: Mutex<Vec<Vec<u8>>>,
}

impl PagesInOrder {
    pub fn new(pages: Vec<Vec<u8>>) -> Self {
        Self { length: pages.iter().map(|page| page.len() as u64).sum(), pages: Mutex::new(pages) }
    }
}

impl Length for PagesInOrder {
    fn len(&self) -> u64 {
        self.length
    }
}

impl ChunkReader for PagesInOrder {
    type T = PagesReader;

    fn get_read(&self, _start: u64) -> Result<PagesReader> {
        let pages = std::mem::take(&mut *self.pages.lock().unwrap_or_else(PoisonError::into_inner));
        Ok(PagesReader { pages: pages.into_iter(), page: Vec::new(), at: 0 })
    }

    fn get_bytes(&self, _start: u64, _length: usize) -> Result<Bytes> {
        Err(ParquetError::General("pages must be read in order".to_owned()))
    }
}

pub struct PagesReader {
    pages: std::vec::IntoIter<Vec<u8>>,
    page: Vec<u8>,
    at: usize,
}

impl Read for PagesReader {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        while self.at == self.page.len() {
            let Some(page) = self.pages.next() else { return Ok(0) };
            (self.page, self.at) = (page, 0);
        }
        let length = (&self.page[self.at..]).read(buffer)?;
        self.at += length;
        Ok(length)
    }
}
