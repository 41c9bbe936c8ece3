//! JSON strings: where they end, and what their escapes stand for.

/// Texts up to this length are handled without a call of the library.
pub const SHORT: usize = 32;

/// The first byte at or behind `start` that is a quote, a backslash or a control character.
///
/// The block ends with a line feed, so there always is one.
#[inline]
pub fn find_special(block: &[u8], start: usize) -> usize {
    let mut at = start;
    #[cfg(target_arch = "x86_64")]
    while let Some(chunk) = block[at..].first_chunk::<16>() {
        // SAFETY: SSE2 is part of every x86_64.
        #[allow(unsafe_code)]
        let found = unsafe { special_places(chunk) };
        if found != 0 {
            return at + found.trailing_zeros() as usize;
        }
        at += 16;
    }
    find_near_end(block, at)
}

/// The same a few bytes before the end of the block, or where the processor knows no vectors.
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
fn special_places(chunk: &[u8; 16]) -> i32 {
    use std::arch::x86_64::{
        _mm_cmpeq_epi8, _mm_min_epu8, _mm_movemask_epi8, _mm_or_si128, _mm_set_epi64x, _mm_set1_epi8,
    };
    let word = u128::from_le_bytes(*chunk);
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
    let quote = (word ^ (ONES * b'"' as u64)).wrapping_sub(ONES);
    let backslash = (word ^ (ONES * b'\\' as u64)).wrapping_sub(ONES);
    (control | quote | backslash) & !word & HIGHS
}

const fn is_special(byte: u8) -> bool {
    matches!(byte, b'"' | b'\\' | 0..0x20)
}

/// Whether a text begins with a short one. Faster than a call of `memcmp`, as most keys are a word or two long.
#[inline]
pub fn begins_with(text: &[u8], start: &[u8]) -> bool {
    let Some(mut text) = text.get(..start.len()) else { return false };
    let mut start = start;
    while let (Some((left, more_text)), Some((right, more_start))) =
        (text.split_first_chunk::<8>(), start.split_first_chunk::<8>())
    {
        if left != right {
            return false;
        }
        (text, start) = (more_text, more_start);
    }
    if let (Some((left, more_text)), Some((right, more_start))) =
        (text.split_first_chunk::<4>(), start.split_first_chunk::<4>())
    {
        if left != right {
            return false;
        }
        (text, start) = (more_text, more_start);
    }
    text.iter().zip(start).all(|(left, right)| left == right)
}

/// The value of four hexadecimal digits.
pub fn hex4(digits: &[u8]) -> Option<u32> {
    digits.iter().try_fold(0, |value, &digit| Some(value << 4 | char::from(digit).to_digit(16)?))
}

/// The number of characters of a decoded text.
pub fn characters(text: &[u8]) -> usize {
    text.iter().filter(|byte| !matches!(byte, 0x80..=0xBF)).count()
}

/// Appends what the inside of a string stands for.
///
/// # Arguments
///
/// * `inner` - What is between the quotes of a valid JSON string.
pub fn unescape_into(inner: &[u8], target: &mut Vec<u8>) {
    let mut rest = inner;
    while let Some(at) = memchr::memchr(b'\\', rest) {
        target.extend_from_slice(&rest[..at]);
        rest = escape_into(&rest[at + 1..], target);
    }
    target.extend_from_slice(rest);
}

/// Appends what an escape stands for; returns what is behind it.
fn escape_into<'a>(escape: &'a [u8], target: &mut Vec<u8>) -> &'a [u8] {
    let byte = match escape[0] {
        b'b' => 8,
        b'f' => 12,
        b'n' => b'\n',
        b'r' => b'\r',
        b't' => b'\t',
        b'u' => return unicode_into(&escape[1..], target),
        other => other,
    };
    target.push(byte);
    &escape[1..]
}

fn unicode_into<'a>(digits: &'a [u8], target: &mut Vec<u8>) -> &'a [u8] {
    let first = hex4(&digits[..4]).unwrap_or_default();
    let (code, rest) = match first {
        // The scan has seen that a low surrogate follows.
        0xD800..=0xDBFF => {
            let second = hex4(&digits[6..10]).unwrap_or_default();
            (0x10000 + ((first - 0xD800) << 10) + (second - 0xDC00), &digits[10..])
        }
        _ => (first, &digits[4..]),
    };
    let character = char::from_u32(code).unwrap_or(char::REPLACEMENT_CHARACTER);
    target.extend_from_slice(character.encode_utf8(&mut [0; 4]).as_bytes());
    rest
}
