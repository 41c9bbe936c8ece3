//! A column's texts in the rows of a batch, as written in Parquet: each after its length.

use crate::memory::{NoRoom, room};
use crate::strings::SHORT;

/// Used instead of a text's length: nulls, followed by their number. No text is that long.
pub const NULLS: u32 = u32::MAX;

const UNKNOWN: usize = usize::MAX;

/// The bytes of a length, and of a number of nulls.
pub const LENGTH_BYTES: usize = 4;

/// The bytes of consecutive nulls.
pub const NULLS_BYTES: usize = 2 * LENGTH_BYTES;

/// A short text after its length, with the bytes copied along with it.
const SHORT_BYTES: usize = LENGTH_BYTES + SHORT;

/// Empty buffers keep this much, whatever they held last.
const KEPT_BYTES: usize = 4096;

/// Consecutive texts and nulls.
#[derive(Debug)]
pub struct TextRows {
    /// The bytes after `used` are undefined: space for further texts, so that they need no call to reserve it.
    stream: Vec<u8>,
    used: usize,
    rows: usize,
    /// The start of the last text or nulls, or `UNKNOWN`: rows that replace their last text need no search for it.
    last: usize,
    /// How many bytes were ever zeroed to make space.
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

    /// Each text after its length; consecutive nulls as [`NULLS`] with their number. Undefined bytes may follow, so
    /// that readers may read a few bytes past a text.
    #[inline]
    pub fn stream(&self) -> &[u8] {
        &self.stream
    }

    /// The defined bytes of the stream.
    #[inline]
    pub fn used(&self) -> usize {
        self.used
    }

    /// Appends a text of at most this many bytes.
    ///
    /// # Arguments
    ///
    /// * `write` - Writes it to the start of this many bytes, and returns its length.
    ///
    /// # Errors
    ///
    /// Not enough memory.
    ///
    /// # Panics
    ///
    /// It has 4 GiB, which no block of lines can contain.
    pub fn push_with(&mut self, max_bytes: usize, write: impl FnOnce(&mut [u8]) -> usize) -> Result<(), NoRoom> {
        let start = self.used + LENGTH_BYTES;
        self.make_room(LENGTH_BYTES + max_bytes)?;
        let length = write(&mut self.stream[start..start + max_bytes]);
        self.stream[self.used..start].copy_from_slice(&length_of(length));
        self.close(start + length);
        Ok(())
    }

    /// Appends part of a block: from the first place to the second.
    ///
    /// # Errors
    ///
    /// As for [`Self::push_with`].
    ///
    /// # Panics
    ///
    /// As for [`Self::push_with`].
    #[inline]
    pub fn push(&mut self, block: &[u8], (from, to): (usize, usize)) -> Result<(), NoRoom> {
        // A short one is copied with the bytes after it: copies of a fixed length need no call.
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

    /// Appends one or more nulls.
    ///
    /// # Errors
    ///
    /// Not enough memory.
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

    /// Extends it to this many rows, if it has fewer: those missing from its stream are null.
    pub fn fill_to(&mut self, rows: usize) {
        self.rows = self.rows.max(rows);
    }

    /// Drops all rows from this one on.
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

    /// Drops all rows, and keeps the memory that as many rows will need again.
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

    /// Ensures that this many bytes can be written after the last row.
    #[inline]
    fn make_room(&mut self, bytes: usize) -> Result<(), NoRoom> {
        if self.stream.len() - self.used < bytes { self.grow(bytes) } else { Ok(()) }
    }

    /// Makes space for this many more bytes, and at least doubles: the cost per row must not depend on all rows before
    /// it.
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

    /// The length of a text, or of nulls, that starts here.
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

/// The length, or the number of nulls, at this place in a stream.
#[inline]
pub fn number_at(stream: &[u8], at: usize) -> u32 {
    u32::from_le_bytes(*stream[at..].first_chunk().expect("streams end behind a text or behind nulls"))
}

/// The encoding of a text's length in a stream.
#[inline]
fn length_of(bytes: usize) -> [u8; LENGTH_BYTES] {
    let length = u32::try_from(bytes).ok().filter(|length| *length != NULLS).expect("texts are below 4 GiB");
    length.to_le_bytes()
}
