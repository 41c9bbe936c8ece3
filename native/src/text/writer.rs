//! One text column of an open row group.

use parquet::basic::{Compression, Encoding, EncodingMask, PageType};
use parquet::column::writer::ColumnCloseResult;
use parquet::errors::Result;
use parquet::file::metadata::{ColumnChunkMetaData, PageEncodingStats};
use parquet::file::statistics::Statistics;
use parquet::file::writer::SerializedRowGroupWriter;
use parquet::schema::types::ColumnDescPtr;

use super::bounds::Bounds;
use super::dictionary::{Dictionary, Placed, Sought};
use super::hybrid::{Hybrid, MAX_WIDTH};
use super::pages::{Page, PagesInOrder, Values};
use super::rows::{LENGTH_BYTES, NULLS, NULLS_BYTES, TextRows, number_at};
use super::snappy::Search;
use crate::open_columns::Tools;
use crate::parts::Parts;
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
    bounds: Bounds,
    /// Bytes of all texts.
    text_bytes: usize,
    rows: usize,
    nulls: usize,
    page: OpenPage,
    pages: Vec<Vec<u8>>,
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
    /// Consecutive texts not yet in the levels.
    present: usize,
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
        (self.rows, self.values, self.present) = (0, 0, 0);
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

/// A complete column of a row group.
pub struct TextChunk {
    pages: PagesInOrder,
    close: ColumnCloseResult,
    repeats_seldom: bool,
}

impl TextChunk {
    /// Whether the same column is better off without a dictionary in the next row group.
    pub fn repeats_seldom(&self) -> bool {
        self.repeats_seldom
    }

    pub fn append_to_row_group(self, row_group: &mut SerializedRowGroupWriter<'_, Parts>) -> Result<()> {
        row_group.append_column(&self.pages, self.close)
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
        self.compressed_bytes + self.dictionary.memory_bytes() + self.bounds.memory_bytes() + page
    }

    /// # Errors
    ///
    /// As for [`Self::write`].
    pub fn close(mut self, tools: &mut Tools) -> Result<TextChunk> {
        if self.page.rows > 0 {
            self.end_page(tools)?;
        }
        let mut first = None;
        if self.dictionary_pages > 0 {
            let dictionary = tools.compressor.dictionary_page(self.dictionary.page(), self.dictionary.len())?;
            self.count(&dictionary, self.dictionary.page().len());
            first = Some(dictionary.bytes.len());
            self.pages.insert(0, dictionary.bytes);
        }
        let metadata = self.metadata(first)?;
        let close = ColumnCloseResult {
            bytes_written: self.compressed_bytes as u64,
            rows_written: self.rows as u64,
            metadata,
            bloom_filter: None,
            column_index: None,
            offset_index: None,
        };
        let repeats_seldom = self.repeats_seldom();
        Ok(TextChunk { pages: PagesInOrder::new(self.pages), close, repeats_seldom })
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
                    Placed::Known(place) => self.page.places.push(place),
                    Placed::New(place) => {
                        self.bounds.add(stream, at + LENGTH_BYTES, *behind);
                        self.page.places.push(place);
                    }
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
            self.bounds.add(stream, at + LENGTH_BYTES, behind);
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
        let body = self.page.body(&mut tools.body, width, values);
        let body_bytes = body.len();
        if values == Values::Plain && self.search.is_none() {
            self.search = tools.compressor.best_search(body);
        }
        let search = self.search.unwrap_or(Search::Four);
        let page = tools.compressor.data_page(body, rows, values, search)?;
        self.page.clear();
        self.count(&page, body_bytes);
        self.pages.push(page.bytes);
        self.rows += rows;
        self.dictionary_pages += usize::from(values == Values::Places);
        Ok(())
    }

    fn count(&mut self, page: &Page, body_bytes: usize) {
        self.uncompressed_bytes += page.header_bytes + body_bytes;
        self.compressed_bytes += page.bytes.len();
    }

    /// # Arguments
    ///
    /// * `dictionary` - The length of the dictionary's page, if there is one.
    fn metadata(&self, dictionary: Option<usize>) -> Result<ColumnChunkMetaData> {
        let dictionaries = usize::from(dictionary.is_some());
        let pages = [
            (PageType::DICTIONARY_PAGE, Encoding::PLAIN, dictionaries),
            (PageType::DATA_PAGE, Encoding::RLE_DICTIONARY, self.dictionary_pages),
            (PageType::DATA_PAGE, Encoding::PLAIN, self.pages.len() - dictionaries - self.dictionary_pages),
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
            .set_total_compressed_size(signed(self.compressed_bytes))
            .set_total_uncompressed_size(signed(self.uncompressed_bytes))
            .set_num_values(signed(self.rows))
            .set_data_page_offset(signed(dictionary.unwrap_or_default()))
            .set_dictionary_page_offset(dictionary.map(|_| 0))
            .set_statistics(Statistics::ByteArray(self.bounds.statistics(self.nulls as u64)))
            .set_unencoded_byte_array_data_bytes(Some(signed(self.text_bytes)))
            .build()
    }
}

/// Sizes of things in memory.
fn signed(size: usize) -> i64 {
    i64::try_from(size).unwrap_or(i64::MAX)
}
