//! Finds the bytes that end the plain part of a JSON string, sixteen at once.
//!
//! The only module that may contain `unsafe`: calls of two functions for processors with SSE2. They would be undefined
//! on a processor without it. They are compiled only for `x86_64`, which always has it. Both get sixteen bytes by value
//! and access no memory by address.

#![allow(unsafe_code)]

/// The first byte from `start` on that is a quote, a backslash or a control character.
///
/// # Panics
///
/// If no such byte follows. A block of lines ends with a line feed, so there is one.
#[inline]
#[must_use]
pub fn find_special(block: &[u8], start: usize) -> usize {
    #[cfg_attr(not(target_arch = "x86_64"), allow(unused_mut))]
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

/// How many bytes [`specials_ahead`] examines.
pub const AHEAD: usize = 32;

/// The places of the special bytes among the next [`AHEAD`] ones: the lowest bit is for the first byte.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Ahead {
    pub quotes: u32,
    pub backslashes: u32,
    pub controls: u32,
}

impl Ahead {
    /// The bytes escaped by a backslash, except other backslashes: each directly follows an odd number of them.
    ///
    /// # Arguments
    ///
    /// * `is_first_escaped` - Whether a backslash before the first byte escapes it.
    ///
    /// # Returns
    ///
    /// Those bytes, and whether the byte after the last one is escaped.
    #[inline]
    #[must_use]
    pub const fn escaped(self, is_first_escaped: bool) -> (u32, bool) {
        const EVEN: u32 = 0x5555_5555;
        let first = is_first_escaped as u32;
        let backslashes = self.backslashes & !first;
        let starts = backslashes & !(backslashes << 1);
        // The start of a run, added to the run, carries to the byte after it. From an even place it carries to an odd
        // one for an odd number of backslashes, and vice versa.
        let behind_even = backslashes.wrapping_add(starts & EVEN) & !backslashes & !EVEN;
        let behind_odd = backslashes.wrapping_add(starts & !EVEN) & !backslashes & EVEN;
        let escaped = behind_even | behind_odd | first & !self.backslashes;
        (escaped, backslashes.leading_ones() % 2 == 1)
    }
}

/// Examines the next [`AHEAD`] bytes.
///
/// # Returns
///
/// None if fewer bytes follow, or if the processor has no vectors.
///
/// # Panics
///
/// If `start` is after the end of the block.
#[inline]
#[must_use]
pub fn specials_ahead(block: &[u8], start: usize) -> Option<Ahead> {
    #[cfg(target_arch = "x86_64")]
    if let Some((first, rest)) = block[start..].split_first_chunk::<16>()
        && let Some(second) = rest.first_chunk::<16>()
    {
        // SAFETY: SSE2 is part of every x86_64.
        let (low, high) = unsafe { (places_by_kind(*first), places_by_kind(*second)) };
        let both = |low: i32, high: i32| low.cast_unsigned() | high.cast_unsigned() << 16;
        return Some(Ahead {
            quotes: both(low[0], high[0]),
            backslashes: both(low[1], high[1]),
            controls: both(low[2], high[2]),
        });
    }
    let _ = (block, start);
    None
}

/// The places of the brackets of objects and arrays among the next [`AHEAD`] bytes: of opening and of closing ones.
///
/// # Returns
///
/// None where [`specials_ahead`] gives None.
///
/// # Panics
///
/// If `start` is after the end of the block.
#[inline]
#[must_use]
pub fn brackets_ahead(block: &[u8], start: usize) -> Option<(u32, u32)> {
    #[cfg(target_arch = "x86_64")]
    if let Some((first, rest)) = block[start..].split_first_chunk::<16>()
        && let Some(second) = rest.first_chunk::<16>()
    {
        // SAFETY: SSE2 is part of every x86_64.
        let (low, high) = unsafe { (brackets(*first), brackets(*second)) };
        let both = |low: i32, high: i32| low.cast_unsigned() | high.cast_unsigned() << 16;
        return Some((both(low[0], high[0]), both(low[1], high[1])));
    }
    let _ = (block, start);
    None
}

/// The first special byte a few bytes before the end of the block, or if the processor has no vectors.
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

/// One bit per byte, set if that byte is special.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "sse2")]
#[inline]
fn special_places(chunk: [u8; 16]) -> i32 {
    use std::arch::x86_64::{_mm_movemask_epi8, _mm_or_si128};
    let [quotes, backslashes, controls] = special_bytes_by_kind(chunk);
    _mm_movemask_epi8(_mm_or_si128(controls, _mm_or_si128(quotes, backslashes)))
}

/// The same for quotes, backslashes and control characters separately.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "sse2")]
#[inline]
fn places_by_kind(chunk: [u8; 16]) -> [i32; 3] {
    special_bytes_by_kind(chunk).map(|bytes| std::arch::x86_64::_mm_movemask_epi8(bytes))
}

/// One bit per byte for opening and for closing brackets.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "sse2")]
#[inline]
#[allow(clippy::cast_possible_truncation, clippy::cast_possible_wrap)] // as below
fn brackets(chunk: [u8; 16]) -> [i32; 2] {
    use std::arch::x86_64::{_mm_cmpeq_epi8, _mm_movemask_epi8, _mm_or_si128, _mm_set_epi64x, _mm_set1_epi8};
    let word = u128::from_le_bytes(chunk);
    let bytes = _mm_set_epi64x((word >> 64) as i64, word as i64);
    // The codes of `[` and `{`, and of `]` and `}`, differ in this bit alone.
    let bytes = _mm_or_si128(bytes, _mm_set1_epi8(0x20));
    [b'{', b'}'].map(|bracket| _mm_movemask_epi8(_mm_cmpeq_epi8(bytes, _mm_set1_epi8(bracket as i8))))
}

/// Sets all bits of each byte that is a quote, a backslash or a control character.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "sse2")]
#[inline]
#[allow(clippy::cast_possible_truncation, clippy::cast_possible_wrap)] // halves of a word, and bytes as signed ones
fn special_bytes_by_kind(chunk: [u8; 16]) -> [std::arch::x86_64::__m128i; 3] {
    use std::arch::x86_64::{_mm_cmpeq_epi8, _mm_min_epu8, _mm_set_epi64x, _mm_set1_epi8};
    let word = u128::from_le_bytes(chunk);
    let bytes = _mm_set_epi64x((word >> 64) as i64, word as i64);
    let controls = _mm_cmpeq_epi8(_mm_min_epu8(bytes, _mm_set1_epi8(0x1F)), bytes);
    let quotes = _mm_cmpeq_epi8(bytes, _mm_set1_epi8(b'"' as i8));
    let backslashes = _mm_cmpeq_epi8(bytes, _mm_set1_epi8(b'\\' as i8));
    [quotes, backslashes, controls]
}

const ONES: u64 = 0x0101_0101_0101_0101;
const HIGHS: u64 = 0x8080_8080_8080_8080;

/// The high bit of the lowest special byte is set; higher bytes may be wrong, as borrows run upwards.
#[inline]
const fn special_bytes(word: u64) -> u64 {
    let control = word.wrapping_sub(ONES * 0x20);
    control & !word & HIGHS | places_of(b'"', word) | places_of(b'\\', word)
}

/// The high bit of the lowest byte with this value is set; higher bytes may be wrong, as borrows run upwards.
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

    /// All bytes; under Miri, which is a thousand times slower, a few that include one of each kind.
    fn bytes() -> impl Iterator<Item = u8> {
        (0..=u8::MAX).filter(|byte| !cfg!(miri) || byte % 29 == 5)
    }

    /// Each byte at each place of a block, followed by each other byte, from each place before it: by vectors, by words
    /// and byte by byte.
    #[test]
    fn each_byte_at_each_place() {
        for byte in bytes() {
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

    /// Each byte at each place sets only its own bit; if fewer bytes follow, there is no answer.
    #[test]
    #[cfg(target_arch = "x86_64")]
    fn each_byte_ahead() {
        for byte in bytes() {
            for at in 0..AHEAD {
                let mut block = vec![b'a'; AHEAD + 3];
                block[3 + at] = byte;
                let place = |is_so: bool| u32::from(is_so) << at;
                let expected = Ahead {
                    quotes: place(byte == b'"'),
                    backslashes: place(byte == b'\\'),
                    controls: place(byte < b' '),
                };
                assert_eq!(specials_ahead(&block, 3), Some(expected), "byte {byte} at {at}");
                assert_eq!(specials_ahead(&block, 4), None);
                let expected = (place(matches!(byte, b'[' | b'{')), place(matches!(byte, b']' | b'}')));
                assert_eq!(brackets_ahead(&block, 3), Some(expected), "byte {byte} at {at}");
                assert_eq!(brackets_ahead(&block, 4), None);
            }
        }
    }

    /// Runs of backslashes of each length at each place, two of them with each gap between, compared with escaping one
    /// by one.
    #[test]
    fn each_run_of_backslashes() {
        for start in 0..AHEAD {
            for length in 0..=AHEAD - start {
                for gap in 1..=8 {
                    let run = u32::try_from((1_u64 << length) - 1).unwrap() << start;
                    let other = u32::try_from(0b111_u64 << (start + length + gap) & u64::from(u32::MAX)).unwrap();
                    for is_first in [false, true] {
                        let ahead = Ahead { backslashes: run | other, ..Ahead::default() };
                        assert_eq!(ahead.escaped(is_first), one_by_one(ahead, is_first), "{ahead:?} {is_first}");
                    }
                }
            }
        }
    }

    fn one_by_one(ahead: Ahead, is_first: bool) -> (u32, bool) {
        let (mut escaped, mut is_escaped) = (0, is_first);
        for at in 0..AHEAD {
            let is_backslash = ahead.backslashes >> at & 1 == 1;
            escaped |= u32::from(is_escaped && !is_backslash) << at;
            is_escaped = is_backslash && !is_escaped;
        }
        (escaped, is_escaped)
    }

    /// A borrow from a special byte neither hides an earlier one nor creates one.
    #[test]
    fn pairs_of_bytes() {
        for (first, second) in bytes().flat_map(|first| bytes().map(move |second| (first, second))) {
            let block = [b"abc".as_slice(), &[first, second], b"defghijk\n"].concat();
            let expected = block.iter().position(|byte| is_special(*byte)).unwrap();
            assert_eq!((find_near_end(&block, 0), find_special(&block, 0)), (expected, expected), "{first} {second}");
        }
    }
}
