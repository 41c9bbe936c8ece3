//! Finds the bytes that end the plain part of a JSON string, sixteen at once.
//!
//! The only module that may contain `unsafe`: calls of one function for processors that have SSE2. They would be
//! undefined on a processor without it. They are compiled for `x86_64` alone, which always has it. The function itself
//! gets sixteen bytes by value and touches no memory by an address.

#![allow(unsafe_code)]

/// The first byte at or behind `start` that is a quote, a backslash or a control character.
///
/// # Panics
///
/// If no such byte follows. A block of lines ends with a line feed, so one does.
#[inline]
#[must_use]
pub fn find_special(block: &[u8], start: usize) -> usize {
    let mut at = start;
    #[cfg(target_arch = "x86_64")]
    while let Some(chunk) = block[at..].first_chunk::<16>() {
        // SAFETY: SSE2 is part of every x86_64.
        let found = unsafe { special_places(*chunk) };
        if found != 0 {
            return at + found.trailing_zeros() as usize;
        }
        at += 16;
    }
    find_near_end(block, at)
}

/// How many bytes [`specials_ahead`] looks at.
pub const AHEAD: usize = 32;

/// Which of the next [`AHEAD`] bytes are special: the lowest bit tells of the one at `start`.
///
/// # Returns
///
/// None if fewer bytes follow, or where the processor knows no vectors.
///
/// # Panics
///
/// If `start` is behind the end of the block.
#[inline]
#[must_use]
pub fn specials_ahead(block: &[u8], start: usize) -> Option<u32> {
    #[cfg(target_arch = "x86_64")]
    if let Some((first, rest)) = block[start..].split_first_chunk::<16>()
        && let Some(second) = rest.first_chunk::<16>()
    {
        // SAFETY: SSE2 is part of every x86_64.
        let (low, high) = unsafe { (special_places(*first), special_places(*second)) };
        return Some(low.cast_unsigned() | high.cast_unsigned() << 16);
    }
    let _ = (block, start);
    None
}

/// The first special byte a few bytes before the end of the block, or where the processor knows no vectors.
#[inline(never)]
fn find_near_end(block: &[u8], start: usize) -> usize {
    let mut at = start;
    while let Some(chunk) = block[at..].first_chunk::<8>() {
        let found = special_bytes(u64::from_le_bytes(*chunk));
        if found != 0 {
            return at + (found.trailing_zeros() / 8) as usize;
        }
        at += 8;
    }
    while !is_special(block[at]) {
        at += 1;
    }
    at
}

/// A bit for each byte, set if that byte is special.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "sse2")]
#[inline]
#[allow(clippy::cast_possible_truncation, clippy::cast_possible_wrap)] // halves of a word, and bytes as signed ones
fn special_places(chunk: [u8; 16]) -> i32 {
    use std::arch::x86_64::{
        _mm_cmpeq_epi8, _mm_min_epu8, _mm_movemask_epi8, _mm_or_si128, _mm_set_epi64x, _mm_set1_epi8,
    };
    let word = u128::from_le_bytes(chunk);
    let bytes = _mm_set_epi64x((word >> 64) as i64, word as i64);
    let control = _mm_cmpeq_epi8(_mm_min_epu8(bytes, _mm_set1_epi8(0x1F)), bytes);
    let quote = _mm_cmpeq_epi8(bytes, _mm_set1_epi8(b'"' as i8));
    let backslash = _mm_cmpeq_epi8(bytes, _mm_set1_epi8(b'\\' as i8));
    _mm_movemask_epi8(_mm_or_si128(control, _mm_or_si128(quote, backslash)))
}

const ONES: u64 = 0x0101_0101_0101_0101;
const HIGHS: u64 = 0x8080_8080_8080_8080;

/// The high bit of the lowest byte that is special is set; higher bytes may be wrong, as borrows run upwards.
#[inline]
const fn special_bytes(word: u64) -> u64 {
    let control = word.wrapping_sub(ONES * 0x20);
    control & !word & HIGHS | places_of(b'"', word) | places_of(b'\\', word)
}

/// The high bit of the lowest byte that is this one is set; higher bytes may be wrong, as borrows run upwards.
#[inline]
#[must_use]
pub const fn places_of(byte: u8, word: u64) -> u64 {
    let other = word ^ (ONES * byte as u64);
    other.wrapping_sub(ONES) & !other & HIGHS
}

const fn is_special(byte: u8) -> bool {
    matches!(byte, b'"' | b'\\' | 0..0x20)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Each byte at each place of a block, with each other byte behind it, from each place before it on: by vectors, by
    /// words and byte by byte.
    #[test]
    fn each_byte_at_each_place() {
        for byte in 0..=u8::MAX {
            for at in 0..40 {
                let mut block = vec![b'a'; 40];
                block.push(b'\n');
                block[at] = byte;
                let expected = if is_special(byte) { at } else { 40 };
                assert_eq!((0..=at).map(|start| find_special(&block, start)).find(|found| *found != expected), None);
                assert_eq!(find_near_end(&block, at % 8), expected, "byte {byte} at {at}");
            }
        }
    }

    /// Each byte at each place sets its own bit alone; where fewer bytes follow, there is no answer.
    #[test]
    #[cfg(target_arch = "x86_64")]
    fn each_byte_ahead() {
        for byte in 0..=u8::MAX {
            for at in 0..AHEAD {
                let mut block = vec![b'a'; AHEAD + 3];
                block[3 + at] = byte;
                assert_eq!(specials_ahead(&block, 3), Some(u32::from(is_special(byte)) << at), "byte {byte} at {at}");
                assert_eq!(specials_ahead(&block, 4), None);
            }
        }
    }

    /// A borrow of a byte that is special does not hide another one before it, nor make one of it.
    #[test]
    fn pairs_of_bytes() {
        for pair in 0..=u16::MAX {
            let [first, second] = pair.to_be_bytes();
            let block = [b"abc".as_slice(), &[first, second], b"defghijk\n"].concat();
            let expected = block.iter().position(|byte| is_special(*byte)).unwrap();
            assert_eq!((find_near_end(&block, 0), find_special(&block, 0)), (expected, expected), "{pair:#x}");
        }
    }
}
