//! One column of texts of a row group in the making.

use parquet::basic::{Compression, Encoding, EncodingMask, PageType};
use parquet::column::writer::ColumnCloseResult;
use parquet::errors::Result;
use parquet::file::metadata::{ColumnChunkMetaData, PageEncodingStats};
use parquet::file::statistics::Statistics;
use parquet::file::writer::SerializedRowGroupWriter;
use parquet::schema::types::ColumnDescPtr;

use super::bounds::Bounds;
use super::dictionary::{Dictionary, Placed};
use super::hybrid::{Hybrid, MAX_WIDTH};
use super::pages::{Page, PagesInOrder, Values};
use super::rows::{Piece, TextRows};
use crate::open_columns::Tools;
use crate::sparse::TextRuns;
use crate::strings::append;

/// Texts and single nulls of a page.
const MAX_PAGE_VALUES: usize = 20_000;

/// Rows of a page. Nearly all are null then.
const MAX_PAGE_ROWS: usize = 1024 * 1024;

const LENGTH_BYTES: usize = 4;

/// How large pages may get.
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
    /// Whether it gets no further texts.
    is_plain: bool,
    bounds: Bounds,
    /// Bytes of all texts.
    text_bytes: usize,
    rows: usize,
    nulls: usize,
    page: OpenPage,
    pages: Vec<Vec<u8>>,
    /// How many of them have places in the dictionary. They are the first ones.
    dictionary_pages: usize,
    uncompressed_bytes: usize,
    compressed_bytes: usize,
}

/// The page in the making.
#[derive(Debug, Default)]
struct OpenPage {
    rows: usize,
    /// Texts and single nulls.
    values: usize,
    /// Texts one behind the other, which the levels do not tell yet.
    present: usize,
    levels: Hybrid,
    /// Of each text, if it goes to the dictionary.
    places: Vec<u16>,
    /// Each text behind its length otherwise.
    plain: Vec<u8>,
}

impl OpenPage {
    fn new() -> Self {
        let mut page = Self::default();
        page.levels.begin(1);
        page
    }

    fn nulls(&mut self, nulls: usize) {
        self.levels.put_run(1, self.present);
        self.levels.put_run(0, nulls);
        self.present = 0;
        self.rows += nulls;
        self.values += 1;
    }

    /// Levels and values, for [`OpenPage::clear`] to follow.
    fn write_to(&mut self, body: &mut Vec<u8>, width: u32, values: Values) {
        self.levels.put_run(1, self.present);
        let levels = self.levels.finish();
        body.clear();
        body.extend_from_slice(&u32::try_from(levels.len()).unwrap_or(u32::MAX).to_le_bytes());
        body.extend_from_slice(levels);
        if values == Values::Plain {
            body.extend_from_slice(&self.plain);
            return;
        }
        body.push(width.to_le_bytes()[0]);
        self.levels.begin(width);
        self.levels.put_all(&self.places);
        body.extend_from_slice(self.levels.finish());
    }

    fn clear(&mut self) {
        self.levels.begin(1);
        self.places.clear();
        self.plain.clear();
        (self.rows, self.values, self.present) = (0, 0, 0);
    }

    fn bytes(&self, width: u32) -> usize {
        self.levels.bytes() + self.plain.len() + (self.places.len() * width as usize).div_ceil(8)
    }
}

/// A column of a row group, whole.
pub struct TextChunk {
    pages: PagesInOrder,
    close: ColumnCloseResult,
}

impl TextChunk {
    pub fn append_to_row_group(self, row_group: &mut SerializedRowGroupWriter<'_, Vec<u8>>) -> Result<()> {
        row_group.append_column(&self.pages, self.close)
    }
}

impl TextWriter {
    pub fn new(descr: ColumnDescPtr, compression: Compression, limits: Limits) -> Self {
        Self {
            descr,
            compression,
            limits,
            dictionary: Dictionary::default(),
            is_plain: false,
            bounds: Bounds::default(),
            text_bytes: 0,
            rows: 0,
            nulls: 0,
            page: OpenPage::new(),
            pages: Vec::new(),
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
        rows.try_each(|piece| {
            match piece {
                Piece::Text(texts, start, end) => self.text(texts, start, end, tools)?,
                Piece::Nulls(nulls) => {
                    self.nulls += nulls;
                    self.page.nulls(nulls);
                }
            }
            if self.is_page_full() { self.end_page(tools) } else { Ok(()) }
        })
    }

    /// Appends rows that have the same text as many before and after them.
    ///
    /// # Errors
    ///
    /// As those of [`Self::write`].
    pub fn write_runs(&mut self, runs: &TextRuns, tools: &mut Tools) -> Result<()> {
        for (text, rows) in runs {
            let mut left = *rows;
            while left > 0 {
                self.text(text, 0, text.len(), tools)?;
                left -= 1;
                left -= self.repeat_last(left);
                if self.is_page_full() {
                    self.end_page(tools)?;
                }
            }
        }
        Ok(())
    }

    /// The bytes of all pages, the one in the making and the dictionary included.
    pub fn encoded_bytes(&self) -> usize {
        let width = self.dictionary.width();
        self.compressed_bytes + self.dictionary.page().len() + self.page.bytes(width)
    }

    pub fn memory_bytes(&self) -> usize {
        let page = self.page.plain.capacity() + 2 * self.page.places.capacity() + self.page.levels.memory_bytes();
        self.compressed_bytes + self.dictionary.memory_bytes() + self.bounds.memory_bytes() + page
    }

    /// # Errors
    ///
    /// As those of [`Self::write`].
    pub fn close(mut self, tools: &mut Tools) -> Result<TextChunk> {
        if self.page.rows > 0 {
            self.end_page(tools)?;
        }
        let dictionary = tools.compressor.dictionary_page(self.dictionary.page(), self.dictionary.len())?;
        self.count(&dictionary, self.dictionary.page().len());
        let metadata = self.metadata(dictionary.bytes.len())?;
        self.pages.insert(0, dictionary.bytes);
        let close = ColumnCloseResult {
            bytes_written: self.compressed_bytes as u64,
            rows_written: self.rows as u64,
            metadata,
            bloom_filter: None,
            column_index: None,
            offset_index: None,
        };
        Ok(TextChunk { pages: PagesInOrder::new(self.pages), close })
    }

    #[inline]
    fn text(&mut self, texts: &[u8], start: usize, end: usize, tools: &mut Tools) -> Result<()> {
        let text = &texts[start..end];
        self.text_bytes += text.len();
        if self.is_plain {
            self.plain(texts, start, end);
        } else {
            match self.dictionary.place(text, self.limits.dictionary_bytes) {
                Placed::Known(place) => self.page.places.push(place),
                Placed::New(place) => {
                    self.bounds.add(text);
                    self.page.places.push(place);
                }
                Placed::NoRoom => {
                    self.leave_dictionary(tools)?;
                    self.plain(texts, start, end);
                }
            }
        }
        self.page.present += 1;
        self.page.rows += 1;
        self.page.values += 1;
        Ok(())
    }

    /// Appends the last text so many times at most, if it is in the dictionary and its page has room for them.
    ///
    /// # Returns
    ///
    /// How many times.
    fn repeat_last(&mut self, most: usize) -> usize {
        let page = &mut self.page;
        let Some(place) = page.places.last().copied() else { return 0 };
        let count = most.min(MAX_PAGE_VALUES.saturating_sub(page.values));
        page.places.resize(page.places.len() + count, place);
        page.present += count;
        page.rows += count;
        page.values += count;
        self.text_bytes += count * (self.dictionary.entry(place).len() - LENGTH_BYTES);
        count
    }

    #[inline]
    fn plain(&mut self, texts: &[u8], start: usize, end: usize) {
        self.bounds.add(&texts[start..end]);
        // The rows have seen that it is short enough.
        let length = u32::try_from(end - start).unwrap_or(u32::MAX);
        self.page.plain.extend_from_slice(&length.to_le_bytes());
        append(&mut self.page.plain, texts, start, end);
    }

    /// The dictionary gets no further texts.
    #[cold]
    fn leave_dictionary(&mut self, tools: &mut Tools) -> Result<()> {
        if self.page.rows > 0 {
            self.end_page(tools)?;
        }
        self.is_plain = true;
        Ok(())
    }

    #[inline]
    fn is_page_full(&self) -> bool {
        let page = &self.page;
        let is_full = page.values >= MAX_PAGE_VALUES || page.rows >= MAX_PAGE_ROWS;
        // Places take two bytes at most, so that they reach their number first.
        is_full || page.plain.len() >= self.limits.page_bytes
    }

    #[cold]
    fn end_page(&mut self, tools: &mut Tools) -> Result<()> {
        let values = if self.is_plain { Values::Plain } else { Values::Places };
        let width = self.dictionary.width();
        debug_assert!(width <= MAX_WIDTH);
        let rows = self.page.rows;
        self.page.write_to(&mut tools.body, width, values);
        self.page.clear();
        let page = tools.compressor.data_page(&tools.body, rows, values)?;
        self.count(&page, tools.body.len());
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
    /// * `first` - The length of the dictionary's page.
    fn metadata(&self, first: usize) -> Result<ColumnChunkMetaData> {
        let pages = [
            (PageType::DICTIONARY_PAGE, Encoding::PLAIN, 1),
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
            .set_total_compressed_size(signed(self.compressed_bytes))
            .set_total_uncompressed_size(signed(self.uncompressed_bytes))
            .set_num_values(signed(self.rows))
            .set_data_page_offset(signed(first))
            .set_dictionary_page_offset(Some(0))
            .set_statistics(Statistics::ByteArray(self.bounds.statistics(self.nulls as u64)))
            .set_unencoded_byte_array_data_bytes(Some(signed(self.text_bytes)))
            .build()
    }
}

/// Sizes of what memory holds.
fn signed(size: usize) -> i64 {
    i64::try_from(size).unwrap_or(i64::MAX)
}
