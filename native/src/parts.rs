//! Written bytes, in parts that are taken one by one. Parts have one size and are never moved, so that the allocator
//! reuses their memory: with glibc's, one long buffer for a row group cost 2 % of the job, in page faults.

use std::collections::VecDeque;
use std::io::{self, Write};

/// The maximum length of a part.
pub const MAX_PART_BYTES: usize = 1024 * 1024;

/// Written bytes not yet taken.
#[derive(Debug, Default)]
pub struct Parts {
    /// None of them is empty. The last one grows.
    parts: VecDeque<Vec<u8>>,
}

impl Parts {
    pub fn is_empty(&self) -> bool {
        self.parts.is_empty()
    }

    /// Moves all parts of another one to the end of these.
    pub fn append(&mut self, other: &mut Self) {
        self.parts.append(&mut other.parts);
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

impl Write for Parts {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if bytes.is_empty() {
            return Ok(0);
        }
        if self.parts.back().is_none_or(|part| part.len() == MAX_PART_BYTES) {
            self.parts.push_back(Vec::with_capacity(MAX_PART_BYTES));
        }
        let Some(part) = self.parts.back_mut() else { return Ok(0) };
        let length = bytes.len().min(MAX_PART_BYTES - part.len());
        part.extend_from_slice(&bytes[..length]);
        Ok(length)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Whatever is written at once, no part is longer, and none is empty.
    #[test]
    fn lengths() {
        let (mut parts, mut others) = (Parts::default(), Parts::default());
        parts.write_all(&[]).unwrap();
        assert!(parts.is_empty());
        parts.write_all(&[1; 10]).unwrap();
        others.write_all(&vec![2; MAX_PART_BYTES - 1]).unwrap();
        others.write_all(&vec![3; MAX_PART_BYTES + 2]).unwrap();
        parts.append(&mut others);
        assert!(others.is_empty());
        parts.write_all(&[4]).unwrap();
        let taken: Vec<Vec<u8>> = std::iter::from_fn(|| parts.take()).collect();
        assert_eq!(taken.iter().map(Vec::len).collect::<Vec<_>>(), [10, MAX_PART_BYTES, MAX_PART_BYTES, 2]);
        assert_eq!(taken.concat()[MAX_PART_BYTES + 8..][..3], [2, 3, 3]);
        assert_eq!(taken[3], [3, 4]);
    }

    #[test]
    fn together() {
        let mut parts = Parts::default();
        parts.write_all(&vec![1; MAX_PART_BYTES + 1]).unwrap();
        assert_eq!(parts.into_bytes(), vec![1; MAX_PART_BYTES + 1]);
    }
}
