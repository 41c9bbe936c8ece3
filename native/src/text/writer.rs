//! One text column of an open row group.

use parquet::basic::{Compression, Encoding, EncodingMask, PageType};
use parquet::errors::Result;
use parquet::file::metadata::{ColumnChunkMetaData, PageEncodingStats};
use parquet::file::statistics::Statistics;
use parquet::schema::types::ColumnDescPtr;

use super::bounds::Bounds;
use super::dictionary::{Dictionary, MAX_VALUES, Placed, Sought};
use super::hybrid::{Hybrid, MAX_WIDTH};
use super::page_index::PageIndex;
use super::pages::{Page, Values};
use super::rows::{LENGTH_BYTES, NULLS, NULLS_BYTES, TextRows, number_at};
use super::snappy::Search;
use crate::chunk::{Chunk, DataPage, signed};
use crate::open_columns::Tools;
use crate::sparse::TextRuns;

/// Texts in a page, and nulls, where consecutive ones count once.
const MAX_PAGE_VALUES: usize = 20_000;

/// Rows in a page. Almost all are null then.
const MAX_PAGE_ROWS: usize = 1024 * 1024;

/// Texts repeat seldom if at most one in this many was there before: a dictionary then costs more than it saves.
const SELDOM: usize = 16;

/// Fewer texts are not conclusive.
const FEWEST: usize = 512;

/// Texts looked up in the dictionary at once.
const LOOKED_UP_AT_ONCE: usize = 16;

/// Space before the texts of a page without indices, for the levels of almost all pages.
const LEVELS_ROOM: usize = 4 * 1024;

/// For each place of a dictionary, whether a page has its value. An array, so that no place is checked.
pub type IsUsed = Box<[bool; MAX_VALUES]>;

/// No value of a dictionary.
///
/// # Panics
///
/// Never: the vector has the length of the array.
pub fn none_used() -> IsUsed {
    vec![false; MAX_VALUES].try_into().expect("it has this length")
}

/// Size limits of pages.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    pub page_bytes: usize,
    pub dictionary_bytes: usize,
}

pub struct TextWriter {
    descr: ColumnDescPtr,
    compression: Compression,
    limits: Limits,
    dictionary: Dictionary,
    /// Texts that were looked up in it.
    looked_up: usize,
    /// Whether it gets no further texts.
    is_plain: bool,
    /// Whether it had no room for the next text, so that it gets none from the next page on.
    has_left_dictionary: bool,
    /// Of all complete pages.
    bounds: Bounds,
    index: PageIndex,
    /// Bytes of all texts.
    text_bytes: usize,
    rows: usize,
    nulls: usize,
    page: OpenPage,
    pages: Vec<DataPage>,
    /// How many of them have dictionary indices. They are the first ones.
    dictionary_pages: usize,
    /// How pages without indices are compressed; None until one of them is long enough to decide.
    search: Option<Search>,
    uncompressed_bytes: usize,
    compressed_bytes: usize,
}

/// The open page.
#[derive(Debug, Default)]
struct OpenPage {
    rows: usize,
    /// Texts, and nulls, where consecutive ones count once.
    values: usize,
    nulls: usize,
    /// Consecutive texts not yet in the levels.
    present: usize,
    /// Of the texts that do not go to the dictionary.
    bounds: Bounds,
    levels: Hybrid,
    /// For each text, if it goes to the dictionary.
    places: Vec<u16>,
    /// Otherwise each text after its length, preceded by space for the levels; empty without any.
    plain: Vec<u8>,
}

impl OpenPage {
    fn new() -> Self {
        let mut page = Self::default();
        page.levels.begin(1);
        page
    }

    fn nulls(&mut self, nulls: usize) {
        self.levels.put_runs((1, self.present), (0, nulls));
        self.present = 0;
        self.rows += nulls;
        self.nulls += nulls;
        self.values += 1;
    }

    /// Consecutive texts, each after its length.
    #[inline]
    fn plain(&mut self, texts: &[u8], count: usize) {
        if self.plain.is_empty() {
            self.plain.resize(LEVELS_ROOM, 0);
        }
        self.plain.extend_from_slice(texts);
        self.present += count;
        self.rows += count;
        self.values += count;
    }

    /// Levels and values; [`OpenPage::clear`] must follow.
    ///
    /// # Arguments
    ///
    /// * `body` - Holds them if they are not in one place.
    fn body<'a>(&'a mut self, body: &'a mut Vec<u8>, width: u32, values: Values) -> &'a [u8] {
        self.levels.put_run(1, self.present);
        let levels = self.levels.finish();
        let length = u32::try_from(levels.len()).unwrap_or(u32::MAX).to_le_bytes();
        if values == Values::Plain && levels.len() + LENGTH_BYTES <= LEVELS_ROOM && !self.plain.is_empty() {
            let start = LEVELS_ROOM - levels.len();
            self.plain[start..LEVELS_ROOM].copy_from_slice(levels);
            self.plain[start - LENGTH_BYTES..start].copy_from_slice(&length);
            return &self.plain[start - LENGTH_BYTES..];
        }
        body.clear();
        body.extend_from_slice(&length);
        body.extend_from_slice(levels);
        if values == Values::Plain {
            body.extend_from_slice(self.plain.get(LEVELS_ROOM..).unwrap_or_default());
            return body;
        }
        body.push(width.to_le_bytes()[0]);
        self.levels.begin(width);
        self.levels.put_all(&self.places);
        body.extend_from_slice(self.levels.finish());
        body
    }

    fn clear(&mut self) {
        self.levels.begin(1);
        self.places.clear();
        self.plain.truncate(LEVELS_ROOM);
        (self.rows, self.values, self.nulls, self.present) = (0, 0, 0, 0);
    }

    fn plain_bytes(&self) -> usize {
        self.plain.len().saturating_sub(LEVELS_ROOM)
    }

    fn bytes(&self, width: u32) -> usize {
        self.levels.bytes() + self.plain_bytes() + (self.places.len() * width as usize).div_ceil(8)
    }

    /// How many more values fit.
    fn room(&self) -> usize {
        MAX_PAGE_VALUES.saturating_sub(self.values)
    }
}

impl TextWriter {
    /// # Arguments
    ///
    /// * `is_plain` - Whether to use no dictionary.
    pub fn new(descr: ColumnDescPtr, compression: Compression, limits: Limits, is_plain: bool) -> Self {
        Self {
            descr,
            compression,
            limits,
            dictionary: Dictionary::default(),
            looked_up: 0,
            is_plain,
            has_left_dictionary: false,
            bounds: Bounds::default(),
            index: PageIndex::default(),
            text_bytes: 0,
            rows: 0,
            nulls: 0,
            page: OpenPage::new(),
            pages: Vec::new(),
            search: None,
            dictionary_pages: 0,
            uncompressed_bytes: 0,
            compressed_bytes: 0,
        }
    }

    /// Appends rows.
    ///
    /// # Errors
    ///
    /// A page is too long for Parquet, or cannot be compressed.
    pub fn write(&mut self, rows: &TextRows, tools: &mut Tools) -> Result<()> {
        let (stream, end) = (rows.stream(), rows.used());
        let (mut at, mut told) = (0, 0);
        while at < end {
            if number_at(stream, at) == NULLS {
                let nulls = number_at(stream, at + LENGTH_BYTES) as usize;
                self.nulls(nulls);
                (at, told) = (at + NULLS_BYTES, told + nulls);
            } else {
                let before = self.page.rows;
                at = if self.is_plain { self.plain(stream, at, end) } else { self.places(stream, at, end) };
                told += self.page.rows - before;
            }
            if self.is_page_full() {
                self.end_page(tools)?;
            } else if self.has_left_dictionary {
                self.leave_dictionary(tools)?;
            }
        }
        if told < rows.len() {
            self.nulls(rows.len() - told);
        }
        if self.is_page_full() { self.end_page(tools) } else { Ok(()) }
    }

    /// Appends rows with the same text as many rows before and after them.
    ///
    /// # Errors
    ///
    /// As for [`Self::write`].
    pub fn write_runs(&mut self, runs: &TextRuns, tools: &mut Tools) -> Result<()> {
        for (text, rows) in runs {
            let length = u32::try_from(text.len()).unwrap_or(u32::MAX).to_le_bytes();
            let value = [&length, &**text].concat();
            let mut left = *rows;
            while left > 0 {
                let before = self.page.rows;
                if self.is_plain {
                    self.plain(&value, 0, value.len());
                } else if self.places(&value, 0, value.len()) > 0 {
                    self.repeat_last(left - 1, text.len());
                }
                left -= self.page.rows - before;
                if self.is_page_full() {
                    self.end_page(tools)?;
                } else if self.has_left_dictionary {
                    self.leave_dictionary(tools)?;
                }
            }
        }
        Ok(())
    }

    /// The bytes of all pages, including the open one and the dictionary.
    pub fn encoded_bytes(&self) -> usize {
        self.compressed_bytes + self.open_bytes()
    }

    /// The bytes of the open page and the dictionary, which are not compressed yet.
    pub fn open_bytes(&self) -> usize {
        self.dictionary.page().len() + self.page.bytes(self.dictionary.width())
    }

    /// The bytes of complete pages: before and after compression.
    pub fn complete_bytes(&self) -> (usize, usize) {
        (self.uncompressed_bytes, self.compressed_bytes)
    }

    pub fn memory_bytes(&self) -> usize {
        let page = self.page.plain.capacity() + 2 * self.page.places.capacity() + self.page.levels.memory_bytes();
        let bounds = self.bounds.memory_bytes() + self.page.bounds.memory_bytes() + self.index.memory_bytes();
        self.compressed_bytes + self.dictionary.memory_bytes() + bounds + page
    }

    /// # Errors
    ///
    /// As for [`Self::write`].
    pub fn close(mut self, tools: &mut Tools) -> Result<Chunk> {
        if self.page.rows > 0 {
            self.end_page(tools)?;
        }
        let mut dictionary = Vec::new();
        if self.dictionary_pages > 0 {
            let page = tools.compressor.dictionary_page(self.dictionary.page(), self.dictionary.len())?;
            self.count(&page, self.dictionary.page().len());
            dictionary.push(page.bytes.into());
        }
        Ok(Chunk {
            metadata: self.metadata(dictionary.len())?,
            repeats_seldom: self.repeats_seldom(),
            dictionary,
            pages: self.pages,
            uncompressed_bytes: self.uncompressed_bytes,
            column_index: self.index.build()?,
        })
    }

    fn nulls(&mut self, nulls: usize) {
        self.nulls += nulls;
        self.page.nulls(nulls);
    }

    /// Looks up consecutive texts in the dictionary, until the page or the dictionary is full.
    ///
    /// # Returns
    ///
    /// The place of the first text that was not looked up; or of what follows in the stream.
    fn places(&mut self, stream: &[u8], start: usize, end: usize) -> usize {
        let room = self.page.room();
        let (mut count, length) = self.dictionary.same_as_only(&stream[start..end], room);
        let mut at = start + count * length;
        self.page.places.resize(self.page.places.len() + count, 0);
        let mut sought = [(0, Sought::default()); LOOKED_UP_AT_ONCE];
        while !self.has_left_dictionary {
            let texts = self.look_up(stream, at, end, sought.iter_mut().take(room - count));
            if texts == 0 {
                break;
            }
            for (behind, sought) in sought.iter().take(texts) {
                match self.dictionary.place(&stream[at..*behind], *sought, self.limits.dictionary_bytes) {
                    Placed::Known(place) | Placed::New(place) => self.page.places.push(place),
                    Placed::NoRoom => {
                        self.has_left_dictionary = true;
                        break;
                    }
                }
                (at, count) = (*behind, count + 1);
            }
        }
        self.text_bytes += at - start - count * LENGTH_BYTES;
        self.page.present += count;
        self.page.rows += count;
        self.page.values += count;
        self.looked_up += count;
        at
    }

    /// Starts to look up consecutive texts.
    ///
    /// # Arguments
    ///
    /// * `sought` - Receives the end of each, and the lookup.
    ///
    /// # Returns
    ///
    /// Their number.
    #[inline]
    fn look_up<'a>(
        &self,
        stream: &[u8],
        start: usize,
        end: usize,
        sought: impl Iterator<Item = &'a mut (usize, Sought)>,
    ) -> usize {
        let (mut at, mut count) = (start, 0);
        for found in sought {
            if at >= end {
                break;
            }
            let length = number_at(stream, at);
            if length == NULLS {
                break;
            }
            let behind = at + LENGTH_BYTES + length as usize;
            *found = (behind, self.dictionary.look_up(&stream[at + LENGTH_BYTES..behind]));
            (at, count) = (behind, count + 1);
        }
        count
    }

    /// Whether its texts seldom repeated, so that the rest of the file is better off without a dictionary.
    fn repeats_seldom(&self) -> bool {
        if self.looked_up == 0 {
            return self.is_plain; // without a dictionary since an earlier row group, or without a text
        }
        let repeated = self.looked_up - self.dictionary.len();
        self.looked_up >= FEWEST && repeated * SELDOM <= self.looked_up
    }

    /// Appends consecutive texts unchanged, until the page is full.
    ///
    /// # Returns
    ///
    /// The place of the first text that was not appended; or of what follows in the stream.
    fn plain(&mut self, stream: &[u8], start: usize, end: usize) -> usize {
        let room = self.page.room();
        let most = start + self.limits.page_bytes.saturating_sub(self.page.plain_bytes());
        let (mut at, mut count) = (start, 0);
        while at < end && at < most && count < room {
            let length = number_at(stream, at);
            if length == NULLS {
                break;
            }
            let behind = at + LENGTH_BYTES + length as usize;
            self.page.bounds.add(stream, at + LENGTH_BYTES, behind);
            (at, count) = (behind, count + 1);
        }
        self.text_bytes += at - start - count * LENGTH_BYTES;
        self.page.plain(&stream[start..at], count);
        at
    }

    /// Appends the last text at most this many times, if it is in the dictionary and its page has room.
    fn repeat_last(&mut self, most: usize, length: usize) {
        let page = &mut self.page;
        let Some(place) = page.places.last().copied() else { return };
        let count = most.min(page.room());
        page.places.resize(page.places.len() + count, place);
        page.present += count;
        page.rows += count;
        page.values += count;
        self.looked_up += count;
        self.text_bytes += count * length;
    }

    /// The dictionary gets no further texts.
    #[cold]
    fn leave_dictionary(&mut self, tools: &mut Tools) -> Result<()> {
        if self.page.rows > 0 {
            self.end_page(tools)?;
        }
        (self.is_plain, self.has_left_dictionary) = (true, false);
        Ok(())
    }

    #[inline]
    fn is_page_full(&self) -> bool {
        let page = &self.page;
        let is_full = page.values >= MAX_PAGE_VALUES || page.rows >= MAX_PAGE_ROWS;
        // Indices take at most two bytes, so they reach their maximum number first.
        is_full || page.plain_bytes() >= self.limits.page_bytes
    }

    #[cold]
    fn end_page(&mut self, tools: &mut Tools) -> Result<()> {
        let values = if self.is_plain { Values::Plain } else { Values::Places };
        let width = self.dictionary.width();
        debug_assert!(width <= MAX_WIDTH);
        let rows = self.page.rows;
        if values == Values::Places {
            self.bound_places(&mut tools.is_used);
        }
        self.index.add(&self.page.bounds, self.page.nulls);
        self.bounds.take(&mut self.page.bounds);
        let body = self.page.body(&mut tools.body, width, values);
        let body_bytes = body.len();
        if values == Values::Plain && self.search.is_none() {
            self.search = tools.compressor.best_search(body);
        }
        let search = self.search.unwrap_or(Search::Four);
        let page = tools.compressor.data_page(body, rows, values, search)?;
        self.page.clear();
        self.count(&page, body_bytes);
        self.pages.push(DataPage { parts: vec![page.bytes.into()], rows });
        self.rows += rows;
        self.dictionary_pages += usize::from(values == Values::Places);
        Ok(())
    }

    /// Determines the bounds of the open page's texts by their places in the dictionary.
    fn bound_places(&mut self, is_used: &mut IsUsed) {
        let is_used = &mut **is_used;
        // The first page has all values so far.
        is_used[..self.dictionary.len()].fill(self.pages.is_empty());
        if !self.pages.is_empty() {
            for place in &self.page.places {
                is_used[usize::from(*place)] = true;
            }
        }
        for ((start, end), _) in self.dictionary.values().zip(is_used).filter(|(_, is_used)| **is_used) {
            self.page.bounds.add(self.dictionary.page(), start, end);
        }
    }

    fn count(&mut self, page: &Page, body_bytes: usize) {
        self.uncompressed_bytes += page.header_bytes + body_bytes;
        self.compressed_bytes += page.bytes.len();
    }

    /// What the footer says of the column, but the places and lengths of its pages.
    fn metadata(&self, dictionaries: usize) -> Result<ColumnChunkMetaData> {
        let pages = [
            (PageType::DICTIONARY_PAGE, Encoding::PLAIN, dictionaries),
            (PageType::DATA_PAGE, Encoding::RLE_DICTIONARY, self.dictionary_pages),
            (PageType::DATA_PAGE, Encoding::PLAIN, self.pages.len() - self.dictionary_pages),
        ];
        let present: Vec<_> = pages.into_iter().filter(|(_, _, count)| *count > 0).collect();
        let encodings: Vec<Encoding> =
            [Encoding::RLE].into_iter().chain(present.iter().map(|(_, encoding, _)| *encoding)).collect();
        let stats = present.into_iter().map(|(page_type, encoding, count)| PageEncodingStats {
            page_type,
            encoding,
            count: i32::try_from(count).unwrap_or(i32::MAX),
        });
        ColumnChunkMetaData::builder(self.descr.clone())
            .set_compression(self.compression)
            .set_encodings_mask(EncodingMask::new_from_encodings(encodings.iter()))
            .set_page_encoding_stats(stats.collect())
            .set_num_values(signed(self.rows))
            .set_statistics(Statistics::ByteArray(self.bounds.statistics(self.nulls as u64)))
            .set_unencoded_byte_array_data_bytes(Some(signed(self.text_bytes)))
            .build()
    }
}
