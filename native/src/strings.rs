//! JSON strings: what their escapes stand for.

use crate::special::places_of;

/// Texts up to this length are handled without a call of the library.
pub const SHORT: usize = 32;

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
    loop {
        let behind = plain_into(rest, target);
        let Some(escape) = rest.get(behind + 1..) else { return };
        rest = escape_into(escape, target);
    }
}

/// Appends what is before the first backslash; returns its length.
#[inline]
fn plain_into(text: &[u8], target: &mut Vec<u8>) -> usize {
    let mut at = 0;
    // Escapes often follow each other closely, as in JSON within a string: eight bytes at once need no call of the
    // library.
    while at < SHORT
        && let Some(chunk) = text[at..].first_chunk::<8>()
    {
        target.extend_from_slice(chunk);
        let places = places_of(b'\\', u64::from_le_bytes(*chunk));
        if places != 0 {
            let before = (places.trailing_zeros() / 8) as usize;
            target.truncate(target.len() - (chunk.len() - before));
            return at + before;
        }
        at += chunk.len();
    }
    let length = memchr::memchr(b'\\', &text[at..]).unwrap_or(text.len() - at);
    target.extend_from_slice(&text[at..at + length]);
    at + length
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

#[cfg(test)]
mod tests {
    use super::*;

    fn unescaped(inner: &str) -> String {
        let mut target = b"before".to_vec();
        unescape_into(inner.as_bytes(), &mut target);
        String::from_utf8(target.split_off(6)).unwrap()
    }

    /// Each escape behind and before plain texts of each length: next to each other, a few bytes apart, and far apart.
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
            for length in 0..70 {
                let plain = "ä".repeat(length / 2) + &"x".repeat(length % 2);
                let written = format!("{plain}{escape}{escape}{plain}{escape}");
                assert_eq!(unescaped(&written), format!("{plain}{meant}{meant}{plain}{meant}"), "{written}");
                assert_eq!(unescaped(&format!("{escape}{plain}")), format!("{meant}{plain}"));
                assert_eq!(unescaped(&plain), plain);
            }
        }
    }
}
