//! The texts of a column in the rows of a batch, as Parquet writes them: each behind its length.

use crate::memory::{NoRoom, room};
use crate::strings::SHORT;

/// In the place of the length of a text: nulls, whose number follows. No text is so long.
pub const NULLS: u32 = u32::MAX;

const UNKNOWN: usize = usize::MAX;

/// The bytes of a length, and of a number of nulls.
pub const LENGTH_BYTES: usize = 4;

/// The bytes of some nulls one behind the other.
pub const NULLS_BYTES: usize = 2 * LENGTH_BYTES;

/// A short text behind its length, with what is copied beside it.
const SHORT_BYTES: usize = LENGTH_BYTES + SHORT;

/// Buffers that are empty again keep so much, whatever they held last.
const KEPT_BYTES: usize = 4096;

/// Texts and nulls, one behind the other.
#[derive(Debug)]
pub struct TextRows {
    /// What is behind `used` is of no meaning: room for texts to come, so that they need no call that makes it.
    stream: Vec<u8>,
    used: usize,
    rows: usize,
    /// Where the last text or the last nulls begin, or `UNKNOWN`: rows that replace their last text need no search for it.
    last: usize,
    /// How many bytes were set to 0 to make room, ever.
    #[cfg(test)]
    pub zeroed_bytes: usize,
}

impl Default for TextRows {
    fn default() -> Self {
        Self {
            stream: Vec::new(),
            used: 0,
            rows: 0,
            last: UNKNOWN,
            #[cfg(test)]
            zeroed_bytes: 0,
        }
    }
}

impl TextRows {
    #[inline]
    pub fn len(&self) -> usize {
        self.rows
    }

    /// Each text behind its length; nulls one behind the other as [`NULLS`] with their number. Bytes of no meaning may
    /// follow, so that readers may read a few bytes behind a text.
    #[inline]
    pub fn stream(&self) -> &[u8] {
        &self.stream
    }

    /// The bytes of the stream that have a meaning.
    #[inline]
    pub fn used(&self) -> usize {
        self.used
    }

    /// Appends a text of so many bytes at most.
    ///
    /// # Arguments
    ///
    /// * `write` - Writes it to the beginning of so many bytes, and returns its length.
    ///
    /// # Errors
    ///
    /// There is no memory for it.
    ///
    /// # Panics
    ///
    /// It has 4 GiB, which no block of lines can hold.
    pub fn push_with(&mut self, max_bytes: usize, write: impl FnOnce(&mut [u8]) -> usize) -> Result<(), NoRoom> {
        let start = self.used + LENGTH_BYTES;
        self.make_room(LENGTH_BYTES + max_bytes)?;
        let length = write(&mut self.stream[start..start + max_bytes]);
        self.stream[self.used..start].copy_from_slice(&length_of(length));
        self.close(start + length);
        Ok(())
    }

    /// Appends a part of a block: from the first place up to the second one.
    ///
    /// # Errors
    ///
    /// As those of [`Self::push_with`].
    ///
    /// # Panics
    ///
    /// As [`Self::push_with`].
    #[inline]
    pub fn push(&mut self, block: &[u8], (from, to): (usize, usize)) -> Result<(), NoRoom> {
        // A short one is copied with what is behind it: copies of a known length need no call.
        if to - from <= SHORT {
            let slot = self.stream.get_mut(self.used..).and_then(|rest| rest.first_chunk_mut::<SHORT_BYTES>());
            if let (Some(slot), Some(chunk)) = (slot, block[from..].first_chunk::<SHORT>()) {
                slot[..LENGTH_BYTES].copy_from_slice(&length_of(to - from));
                slot[LENGTH_BYTES..].copy_from_slice(chunk);
                self.close(self.used + LENGTH_BYTES + (to - from));
                return Ok(());
            }
        }
        self.push_slowly(&block[from..to])
    }

    /// Appends nulls, which are one or more.
    ///
    /// # Errors
    ///
    /// There is no memory for them.
    ///
    /// # Panics
    ///
    /// A batch has 2^32 rows.
    #[inline]
    pub fn push_nulls(&mut self, nulls: usize) -> Result<(), NoRoom> {
        self.make_room(NULLS_BYTES)?;
        let count = u32::try_from(nulls).expect("batches have less than 2^32 rows");
        let slot = &mut self.stream[self.used..self.used + NULLS_BYTES];
        slot[..LENGTH_BYTES].copy_from_slice(&NULLS.to_le_bytes());
        slot[LENGTH_BYTES..].copy_from_slice(&count.to_le_bytes());
        self.close(self.used + NULLS_BYTES);
        self.rows += nulls - 1;
        Ok(())
    }

    /// Makes it so many rows, if it has less: what its stream does not tell is null.
    pub fn fill_to(&mut self, rows: usize) {
        self.rows = self.rows.max(rows);
    }

    /// Forgets all rows from this one on.
    pub fn truncate(&mut self, rows: usize) {
        if rows >= self.rows {
            return;
        }
        if rows + 1 == self.rows && self.last != UNKNOWN && self.at(self.last) != NULLS {
            (self.used, self.rows, self.last) = (self.last, rows, UNKNOWN);
            return;
        }
        let (mut at, mut left) = (0, rows);
        while left > 0 && at < self.used {
            let head = self.at(at);
            if head != NULLS {
                at += LENGTH_BYTES + head as usize;
                left -= 1;
                continue;
            }
            let nulls = self.at(at + LENGTH_BYTES);
            at += NULLS_BYTES;
            if nulls as usize > left {
                let kept = u32::try_from(left).unwrap_or(nulls);
                self.stream[at - LENGTH_BYTES..at].copy_from_slice(&kept.to_le_bytes());
                break;
            }
            left -= nulls as usize;
        }
        (self.used, self.rows, self.last) = (at, rows, UNKNOWN);
    }

    /// Forgets all rows, and keeps the memory that as many rows will need again.
    pub fn clear(&mut self) {
        let kept = (2 * self.used).max(KEPT_BYTES);
        self.stream.truncate(kept);
        self.stream.shrink_to(kept);
        (self.used, self.rows, self.last) = (0, 0, UNKNOWN);
    }

    #[inline(never)]
    fn push_slowly(&mut self, text: &[u8]) -> Result<(), NoRoom> {
        self.push_with(text.len(), |target| {
            target.copy_from_slice(text);
            text.len()
        })
    }

    /// Makes sure that so many bytes can be written behind the last row.
    #[inline]
    fn make_room(&mut self, bytes: usize) -> Result<(), NoRoom> {
        if self.stream.len() - self.used < bytes { self.grow(bytes) } else { Ok(()) }
    }

    /// Makes room for so many bytes, which it has not, and for as many as it has: what is written once per row must not
    /// depend on all rows before it.
    #[cold]
    fn grow(&mut self, bytes: usize) -> Result<(), NoRoom> {
        self.stream.truncate(self.used);
        room(&mut self.stream, bytes.max(SHORT_BYTES))?;
        self.stream.resize(self.stream.capacity(), 0);
        #[cfg(test)]
        {
            self.zeroed_bytes += self.stream.len() - self.used;
        }
        Ok(())
    }

    /// The length of a text, or of nulls, that begins here.
    #[inline]
    fn at(&self, at: usize) -> u32 {
        number_at(&self.stream, at)
    }

    #[inline]
    fn close(&mut self, end: usize) {
        (self.last, self.used) = (self.used, end);
        self.rows += 1;
    }
}

/// The length, or the number of nulls, at this place of a stream.
#[inline]
pub fn number_at(stream: &[u8], at: usize) -> u32 {
    u32::from_le_bytes(*stream[at..].first_chunk().expect("streams end behind a text or behind nulls"))
}

/// How a stream has the length of a text.
#[inline]
fn length_of(bytes: usize) -> [u8; LENGTH_BYTES] {
    let length = u32::try_from(bytes).ok().filter(|length| *length != NULLS).expect("texts are below 4 GiB");
    length.to_le_bytes()
}
