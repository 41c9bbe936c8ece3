//! Parquet pages: their headers in Thrift's compact protocol, and their compressed bytes.

use crc_fast::{CrcAlgorithm, checksum};
use parquet::errors::{ParquetError, Result};

use super::hybrid::push_varint;
use super::snappy::{Encoder, Search, max_compressed_bytes};
use crate::chunk::too_long;

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

/// The header's field for the checksum of the compressed bytes.
const CHECKSUM_FIELD: u8 = 4;

/// Thrift's types: the marks of a 32-bit integer, a struct, and its end.
const INTEGER: u8 = 5;
const STRUCT: u8 = 12;
const END: u8 = 0;

/// The mark of an integer in the next field.
const NEXT_INTEGER: u8 = 1 << 4 | INTEGER;

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
            return Err(too_long(body.len()));
        }
        let mut bytes = Vec::with_capacity(compressed.len() + 40);
        push_integers(&mut bytes, &[kind, body.len() as u64, compressed.len() as u64]);
        push_checksum(&mut bytes, compressed);
        bytes.push((field - CHECKSUM_FIELD) << 4 | STRUCT);
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
        bytes.push(NEXT_INTEGER);
        // Zigzag encoding of non-negative numbers.
        push_varint(bytes, number << 1);
    }
}

/// Appends the next field of a header: the CRC-32 of a page's compressed bytes, as Parquet's readers expect it.
fn push_checksum(bytes: &mut Vec<u8>, compressed: &[u8]) {
    let checksum = u32::try_from(checksum(CrcAlgorithm::Crc32IsoHdlc, compressed)).unwrap_or_default().cast_signed();
    bytes.push(NEXT_INTEGER);
    push_varint(bytes, u64::from((checksum << 1 ^ checksum >> 31).cast_unsigned()));
}

/// The header of a page with its checksum, which the library's headers lack.
///
/// # Errors
///
/// The header does not begin as this version of the library begins it.
pub fn with_checksum(header: &[u8], compressed: &[u8]) -> Result<Vec<u8>> {
    let fault = || ParquetError::General("a page header that does not begin with three integers".to_owned());
    let mut at = 0;
    for _ in 1..CHECKSUM_FIELD {
        let bytes = header.get(at..).filter(|bytes| bytes.first() == Some(&NEXT_INTEGER)).ok_or_else(fault)?;
        at += 1 + bytes[1..].iter().position(|byte| *byte < 0x80).ok_or_else(fault)? + 1;
    }
    // The next field is one of the structs, and its mark says how many fields after the last one it is.
    let mark = *header.get(at).filter(|mark| **mark & 0xF == STRUCT && **mark >> 4 > 1).ok_or_else(fault)?;
    let mut bytes = Vec::with_capacity(header.len() + 6);
    bytes.extend_from_slice(&header[..at]);
    push_checksum(&mut bytes, compressed);
    bytes.push(mark - (1 << 4));
    bytes.extend_from_slice(&header[at + 1..]);
    Ok(bytes)
}

/// Whether a page with this header is a dictionary.
pub fn is_dictionary(header: &[u8]) -> bool {
    header.get(1).is_some_and(|kind| u64::from(*kind) == PAGE_OF_DICTIONARY << 1)
}
