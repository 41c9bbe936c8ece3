//! The texts of a column in the rows of a batch, as Parquet writes them: each behind its length.

use crate::memory::{NoRoom, room};
use crate::sparse::{MIN_RUN, Run, add_run, forget_runs};
use crate::strings::{append, room_to_append};

/// In the place of the length of a text: there is none. No text is so long.
const NULL: u32 = u32::MAX;

const UNKNOWN: usize = usize::MAX;

const LENGTH_BYTES: usize = 4;

/// Buffers that are empty again keep so much, whatever they held last.
const KEPT_BYTES: usize = 4096;

/// Texts and nulls, one behind the other. Long runs of nulls are counted, not stored.
#[derive(Debug, Default)]
pub struct TextRows {
    stream: Vec<u8>,
    /// Texts and nulls in the stream.
    stored: usize,
    /// Where the last of them begins, or `UNKNOWN`: rows that replace their last text need no search for it.
    last: usize,
    /// Long runs of nulls.
    runs: Vec<Run>,
    /// The rows in them.
    run_rows: usize,
}

/// Some rows one behind the other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Piece<'a> {
    /// The texts of the column, and where this one is in them, behind its length.
    Text(&'a [u8], usize, usize),
    Nulls(usize),
}

impl TextRows {
    #[inline]
    pub fn len(&self) -> usize {
        self.stored + self.run_rows
    }

    /// Appends a text of so many bytes at most.
    ///
    /// # Errors
    ///
    /// There is no memory for it.
    ///
    /// # Panics
    ///
    /// It has 4 GiB, which no block of lines can hold.
    #[inline]
    pub fn push_with(&mut self, max_bytes: usize, append: impl FnOnce(&mut Vec<u8>)) -> Result<(), NoRoom> {
        room(&mut self.stream, LENGTH_BYTES + max_bytes)?;
        let start = self.stream.len();
        self.stream.extend_from_slice(&[0; LENGTH_BYTES]);
        append(&mut self.stream);
        let length = self.stream.len() - start - LENGTH_BYTES;
        let length = u32::try_from(length).ok().filter(|length| *length != NULL).expect("texts are below 4 GiB");
        self.stream[start..start + LENGTH_BYTES].copy_from_slice(&length.to_le_bytes());
        self.close(start);
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
        room(&mut self.stream, LENGTH_BYTES + room_to_append(to - from))?;
        let start = self.stream.len();
        let length = u32::try_from(to - from).ok().filter(|length| *length != NULL).expect("texts are below 4 GiB");
        self.stream.extend_from_slice(&length.to_le_bytes());
        append(&mut self.stream, block, from, to);
        self.close(start);
        Ok(())
    }

    /// Appends nulls, which are one or more.
    ///
    /// # Returns
    ///
    /// How many of them take room.
    ///
    /// # Errors
    ///
    /// There is no memory for them.
    #[inline]
    pub fn push_nulls(&mut self, nulls: usize) -> Result<usize, NoRoom> {
        if nulls >= MIN_RUN || self.runs.last().is_some_and(|run| run.stored == self.stored) {
            room(&mut self.runs, 1)?;
            self.push_run(nulls);
            return Ok(0);
        }
        room(&mut self.stream, LENGTH_BYTES * nulls)?;
        for _ in 0..nulls {
            let start = self.stream.len();
            self.stream.extend_from_slice(&NULL.to_le_bytes());
            self.close(start);
        }
        Ok(nulls)
    }

    /// Appends nulls that take no room.
    #[cold]
    pub fn push_run(&mut self, nulls: usize) {
        add_run(&mut self.runs, self.stored, nulls);
        self.run_rows += nulls;
    }

    /// Forgets all rows from this one on.
    pub fn truncate(&mut self, rows: usize) {
        if rows >= self.len() {
            return;
        }
        self.run_rows -= forget_runs(&mut self.runs, self.run_rows, rows);
        let stored = rows - self.run_rows;
        if stored == self.stored {
            return;
        }
        let is_last = stored + 1 == self.stored && self.last != UNKNOWN;
        let end = if is_last { self.last } else { self.place(stored) };
        self.stream.truncate(end);
        (self.stored, self.last) = (stored, UNKNOWN);
    }

    /// Where a text begins, or would begin.
    fn place(&self, stored: usize) -> usize {
        (0..stored).fold(0, |at, _| at + LENGTH_BYTES + text_at(&self.stream, at).map_or(0, <[u8]>::len))
    }

    /// Shows all rows in their order.
    #[inline]
    pub fn try_each<E>(&self, mut visit: impl FnMut(Piece<'_>) -> Result<(), E>) -> Result<(), E> {
        let ends = self.runs.iter().map(|run| (run.stored, run.nulls)).chain([(self.stored, 0)]);
        let (mut at, mut stored) = (0, 0);
        for (end, nulls) in ends {
            while stored < end {
                let start = at + LENGTH_BYTES;
                let text = text_at(&self.stream, at);
                at = start + text.map_or(0, <[u8]>::len);
                let piece = if text.is_some() { Piece::Text(&self.stream, start, at) } else { Piece::Nulls(1) };
                stored += 1;
                visit(piece)?;
            }
            if nulls > 0 {
                visit(Piece::Nulls(nulls))?;
            }
        }
        Ok(())
    }

    /// Forgets all rows, and keeps the memory that as many rows will need again.
    pub fn clear(&mut self) {
        let kept = (2 * self.stream.len()).max(KEPT_BYTES);
        self.stream.clear();
        self.stream.shrink_to(kept);
        let kept = 2 * self.runs.len();
        self.runs.clear();
        self.runs.shrink_to(kept);
        (self.stored, self.last, self.run_rows) = (0, UNKNOWN, 0);
    }

    #[inline]
    fn close(&mut self, start: usize) {
        self.last = start;
        self.stored += 1;
    }
}

/// The text whose length stands at this place; None of a null.
#[inline]
fn text_at(stream: &[u8], at: usize) -> Option<&[u8]> {
    let (length, rest) = stream[at..].split_first_chunk::<LENGTH_BYTES>().expect("each text is behind its length");
    let length = u32::from_le_bytes(*length);
    (length != NULL).then(|| &rest[..length as usize])
}
