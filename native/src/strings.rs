//! JSON strings: decoding their escapes.

use crate::memory::{NoRoom, room};
use crate::special::{AHEAD, places_of, specials_ahead};

/// Texts up to this length are handled without a library call.
pub const SHORT: usize = 32;

/// Whether a text starts with a short one. Faster than a call of `memcmp`, as most keys are a word or two long.
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

/// The number of characters in a decoded text.
pub fn characters(text: &[u8]) -> usize {
    text.iter().filter(|byte| !matches!(byte, 0x80..=0xBF)).count()
}

/// From this many stretches without an escape on, a library call pays off, which copies all bytes before the next one.
const FAR: u32 = 2;

/// The meaning of a byte after a backslash. `u` is followed by digits, and is handled elsewhere.
const MEANT: [u8; 256] = {
    let mut meant = [0; 256];
    let mut byte = 0;
    while byte < meant.len() {
        #[allow(clippy::cast_possible_truncation)] // it is an index of 256
        let itself = byte as u8;
        meant[byte] = match itself {
            b'b' => 8,
            b'f' => 12,
            b'n' => b'\n',
            b'r' => b'\r',
            b't' => b'\t',
            other => other,
        };
        byte += 1;
    }
    meant
};

/// Writes the decoded inside of a string to the start of a target.
///
/// # Arguments
///
/// * `inner` - The part of a valid JSON string between the quotes.
/// * `target` - At least as long as `inner`: an escape is never shorter than its meaning. The bytes after the text are
///   undefined.
///
/// # Returns
///
/// The length of the text.
pub fn unescape(inner: &[u8], target: &mut [u8]) -> usize {
    let (mut at, mut end) = unescape_stretches(inner, target);
    loop {
        let length = copy_plain(&inner[at..], &mut target[end..]);
        (at, end) = (at + length, end + length);
        let Some(escape) = inner.get(at + 1) else { return end };
        at += 2;
        if *escape == b'u' {
            let (character, digits) = unicode(&inner[at..]);
            end += character.encode_utf8(&mut target[end..]).len();
            at += digits;
        } else {
            target[end] = MEANT[usize::from(*escape)];
            end += 1;
        }
    }
}

/// The decoded inside of a string with escapes.
///
/// # Errors
///
/// Not enough memory.
pub fn unescaped(inner: &[u8]) -> Result<Vec<u8>, NoRoom> {
    let mut text = Vec::new();
    room(&mut text, inner.len())?;
    unescape_into(inner, &mut text);
    Ok(text)
}

/// Appends the decoded inside of a string, as [`unescape`] does.
pub fn unescape_into(inner: &[u8], target: &mut Vec<u8>) {
    let start = target.len();
    target.resize(start + inner.len(), 0);
    let length = unescape(inner, &mut target[start..]);
    target.truncate(start + length);
}

/// The same for the start of a long text; returns the start of its short rest, and its target.
///
/// Escapes often follow each other closely, as in JSON within a string: a stretch is searched for all of them at once.
fn unescape_stretches(inner: &[u8], target: &mut [u8]) -> (usize, usize) {
    let (mut at, mut end, mut plain) = (0, 0, 0);
    // A stretch may be copied from any of its bytes, and an escape may end up to 11 bytes after it, so two stretches
    // must be readable and writable.
    while let (Some(text), Some(ahead)) = (inner[at..].get(..2 * AHEAD), specials_ahead(inner, at)) {
        plain = if ahead.backslashes == 0 { plain + 1 } else { 0 };
        if plain == FAR {
            let length = memchr::memchr(b'\\', &inner[at..]).unwrap_or(inner.len() - at);
            target[end..end + length].copy_from_slice(&inner[at..at + length]);
            (at, end, plain) = (at + length, end + length, 0);
            continue;
        }
        let (mut from, mut places) = (0, ahead.backslashes);
        while from < AHEAD {
            target[end..end + AHEAD].copy_from_slice(&text[from..from + AHEAD]);
            if places == 0 {
                end += AHEAD - from;
                from = AHEAD;
                break;
            }
            let backslash = places.trailing_zeros() as usize;
            end += backslash - from;
            let escape = text[backslash + 1];
            from = backslash + 2;
            if escape == b'u' {
                let (character, digits) = unicode(&text[from..]);
                end += character.encode_utf8(&mut target[end..end + 4]).len();
                from += digits;
            } else {
                target[end] = MEANT[usize::from(escape)];
                end += 1;
            }
            places &= if from < AHEAD { u32::MAX << from } else { 0 };
        }
        at += from;
    }
    (at, end)
}

/// Copies everything before the first backslash; returns its length.
#[inline]
fn copy_plain(text: &[u8], target: &mut [u8]) -> usize {
    let mut at = 0;
    // Escapes often follow each other closely, as in JSON within a string: eight bytes at once need no library call.
    while at < SHORT
        && let Some(chunk) = text[at..].first_chunk::<8>()
    {
        target[at..at + chunk.len()].copy_from_slice(chunk);
        let places = places_of(b'\\', u64::from_le_bytes(*chunk));
        if places != 0 {
            return at + (places.trailing_zeros() / 8) as usize;
        }
        at += chunk.len();
    }
    let length = memchr::memchr(b'\\', &text[at..]).unwrap_or(text.len() - at);
    target[at..at + length].copy_from_slice(&text[at..at + length]);
    at + length
}

/// The character after `\u`, and the number of bytes encoding it there.
fn unicode(digits: &[u8]) -> (char, usize) {
    let first = hex4(&digits[..4]).unwrap_or_default();
    let (code, length) = match first {
        // The scan has verified that a low surrogate follows.
        0xD800..=0xDBFF => {
            let second = hex4(&digits[6..10]).unwrap_or_default();
            (0x10000 + ((first - 0xD800) << 10) + (second - 0xDC00), 10)
        }
        _ => (first, 4),
    };
    (char::from_u32(code).unwrap_or(char::REPLACEMENT_CHARACTER), length)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The target is exactly as long as the written text.
    fn unescaped(inner: &str) -> String {
        let mut appended = b"before".to_vec();
        unescape_into(inner.as_bytes(), &mut appended);
        let mut target = vec![b'?'; inner.len()];
        let length = unescape(inner.as_bytes(), &mut target);
        assert_eq!(&appended[6..], &target[..length]);
        String::from_utf8(appended.split_off(6)).unwrap()
    }

    /// Each escape after and before plain texts of each length: next to each other, a few bytes apart, and far apart.
    #[test]
    fn each_escape_at_each_place() {
        let escapes = [
            ("\\\"", "\""),
            ("\\\\", "\\"),
            ("\\/", "/"),
            ("\\b", "\u{8}"),
            ("\\f", "\u{c}"),
            ("\\n", "\n"),
            ("\\r", "\r"),
            ("\\t", "\t"),
            ("\\u00e9", "é"),
            ("\\uD83D\\uDE00", "😀"),
        ];
        for (escape, meant) in escapes {
            for length in 0..140 {
                let plain = "ä".repeat(length / 2) + &"x".repeat(length % 2);
                let written = format!("{plain}{escape}{escape}{plain}{escape}");
                assert_eq!(unescaped(&written), format!("{plain}{meant}{meant}{plain}{meant}"), "{written}");
                assert_eq!(unescaped(&format!("{escape}{plain}")), format!("{meant}{plain}"));
                assert_eq!(unescaped(&plain), plain);
            }
        }
    }

    /// Long texts with all escapes at varying distances.
    #[test]
    fn long_texts() {
        let escapes = ["\\\"", "\\\\", "\\n", "\\u0041", "\\ud83d\\ude00", "\\t\\t\\t"];
        let meant = ["\"", "\\", "\n", "A", "😀", "\t\t\t"];
        for shift in 0..AHEAD {
            let (mut written, mut expected) = ("x".repeat(shift), "x".repeat(shift));
            while written.len() < 12_000 {
                let number = written.len() % escapes.len();
                written += escapes[number];
                expected += meant[number];
                let plain = "ö".repeat(written.len() % 97);
                written += &plain;
                expected += &plain;
            }
            assert_eq!(unescaped(&written), expected);
        }
    }
}
