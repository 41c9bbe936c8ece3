//! Objects and arrays: their heads, which are put before what they hold.

use super::{Stop, Written, bytes_for};
use crate::memory::room;

/// Elements whose number takes one byte; more take four.
const FEW: usize = 255;

const OBJECT: u8 = 2;
const ARRAY: u8 = 3;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    Object,
    Array,
}

impl Kind {
    pub fn close_byte(self) -> u8 {
        if self == Self::Object { b'}' } else { b']' }
    }
}

/// An element of a container.
#[derive(Clone, Copy, Debug)]
pub struct Field {
    /// The id of its key; 0 in an array.
    pub key: u32,
    /// Where it begins, counted from the first element of the container.
    pub offset: u32,
}

/// Ends a container: puts its head before its elements, which are written.
///
/// # Arguments
///
/// * `fields` - Its elements are those from `first_field` on, which this call takes away.
/// * `out` - Its elements begin at `start`, and are all behind it.
pub fn close(kind: Kind, fields: &mut Vec<Field>, first_field: usize, out: &mut Vec<u8>, start: usize) -> Written {
    let own = &mut fields[first_field..];
    let size = out.len() - start;
    let offset_bytes = bytes_for(size);
    let is_large = own.len() > FEW;
    let count_bytes = if is_large { 4 } else { 1 };
    let mut key_bytes = 0;
    if kind == Kind::Object {
        own.sort_unstable_by_key(|field| field.key);
        if own.windows(2).any(|pair| pair[0].key == pair[1].key) {
            return Err(Stop::Misfit);
        }
        key_bytes = bytes_for(own.last().map_or(0, |field| field.key as usize));
    }
    let head_bytes = 1 + count_bytes + own.len() * key_bytes + (own.len() + 1) * offset_bytes;
    room(out, head_bytes)?;
    out.resize(start + size + head_bytes, 0);
    out.copy_within(start..start + size, start + head_bytes);
    let mut head = Head { bytes: &mut out[start..start + head_bytes], at: 0 };
    head.put(usize::from(header(kind, is_large, key_bytes, offset_bytes)), 1);
    head.put(own.len(), count_bytes);
    if kind == Kind::Object {
        for field in own.iter() {
            head.put(field.key as usize, key_bytes);
        }
    }
    for field in own.iter() {
        head.put(field.offset as usize, offset_bytes);
    }
    head.put(size, offset_bytes);
    fields.truncate(first_field);
    Ok(())
}

#[allow(clippy::cast_possible_truncation)] // sizes of 1 to 4 bytes
fn header(kind: Kind, is_large: bool, key_bytes: usize, offset_bytes: usize) -> u8 {
    let (is_large, offset) = (u8::from(is_large), offset_bytes as u8 - 1);
    match kind {
        Kind::Object => (is_large << 4 | (key_bytes as u8 - 1) << 2 | offset) << 2 | OBJECT,
        Kind::Array => (is_large << 2 | offset) << 2 | ARRAY,
    }
}

struct Head<'a> {
    bytes: &'a mut [u8],
    at: usize,
}

impl Head<'_> {
    /// Writes a number in so many bytes, the lowest first.
    fn put(&mut self, number: usize, size: usize) {
        self.bytes[self.at..self.at + size].copy_from_slice(&number.to_le_bytes()[..size]);
        self.at += size;
    }
}
