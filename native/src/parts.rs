//! Bytes that were written, in parts that are taken one by one: none is moved when more follow, and none needs room that
//! allocators ask the kernel for each time.

use std::collections::VecDeque;
use std::io::{self, Write};

/// The length of a part, except for the last one of a row group.
pub const PART_BYTES: usize = 1024 * 1024;

/// Written bytes that were not taken yet.
#[derive(Debug, Default)]
pub struct Parts {
    /// None of them is empty. The last one grows up to [`PART_BYTES`].
    parts: VecDeque<Vec<u8>>,
}

impl Parts {
    /// Appends others, which are none then.
    pub fn append(&mut self, others: &mut Self) {
        self.parts.append(&mut others.parts);
    }

    /// The first part; None if all bytes were taken.
    pub fn take(&mut self) -> Option<Vec<u8>> {
        self.parts.pop_front()
    }

    /// All bytes in one piece.
    pub fn into_bytes(self) -> Vec<u8> {
        Vec::from(self.parts).concat()
    }
}

impl From<Vec<u8>> for Parts {
    fn from(bytes: Vec<u8>) -> Self {
        let parts = if bytes.is_empty() { VecDeque::new() } else { VecDeque::from([bytes]) };
        Self { parts }
    }
}

impl Write for Parts {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.parts.back().is_none_or(|part| part.len() >= PART_BYTES) && !bytes.is_empty() {
            self.parts.push_back(Vec::with_capacity(PART_BYTES));
        }
        let Some(part) = self.parts.back_mut() else { return Ok(0) };
        let length = bytes.len().min(PART_BYTES - part.len());
        part.extend_from_slice(&bytes[..length]);
        Ok(length)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
