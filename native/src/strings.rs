//! JSON strings: what their escapes stand for.

use crate::special::{AHEAD, places_of, specials_ahead};

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

/// Bytes by which the target of a long text grows at once: few enough that its zeros are still in the processor's cache
/// when they are overwritten.
const WINDOW: usize = 4096;

/// So many stretches without an escape are worth a call of the library, which copies all bytes before the next one.
const FAR: u32 = 2;

/// What a byte behind a backslash stands for. `u` has digits behind it, and is handled elsewhere.
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

/// Appends what the inside of a string stands for.
///
/// # Arguments
///
/// * `inner` - What is between the quotes of a valid JSON string.
pub fn unescape_into(inner: &[u8], target: &mut Vec<u8>) {
    let mut rest = unescape_stretches_into(inner, target);
    loop {
        let behind = plain_into(rest, target);
        let Some(escape) = rest.get(behind + 1..) else { return };
        rest = if escape[0] == b'u' {
            let (character, digits) = unicode(&escape[1..]);
            target.extend_from_slice(character.encode_utf8(&mut [0; 4]).as_bytes());
            &escape[1 + digits..]
        } else {
            target.push(MEANT[usize::from(escape[0])]);
            &escape[1..]
        };
    }
}

/// The same for the beginning of a long text; returns the rest, which is short.
///
/// Escapes often follow each other closely, as in JSON within a string: a stretch is looked at once for all of them.
fn unescape_stretches_into<'a>(inner: &'a [u8], target: &mut Vec<u8>) -> &'a [u8] {
    let mut rest = inner;
    let (mut end, mut plain) = (target.len(), 0);
    // An escape is never shorter than what it stands for, so no more room is needed than the text takes.
    let most = end + inner.len();
    // A copy of a stretch may begin at any of its bytes, and an escape may end up to 11 bytes behind it, so there must be
    // two of them to read and to write.
    while let (Some(text), Some(ahead)) = (rest.get(..2 * AHEAD), specials_ahead(rest, 0)) {
        if target.len() < end + 2 * AHEAD {
            target.resize(most.min(end + WINDOW), 0);
        }
        plain = if ahead.backslashes == 0 { plain + 1 } else { 0 };
        if plain == FAR {
            target.truncate(end);
            let length = memchr::memchr(b'\\', rest).unwrap_or(rest.len());
            target.extend_from_slice(&rest[..length]);
            (rest, end, plain) = (&rest[length..], target.len(), 0);
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
        rest = &rest[from..];
    }
    target.truncate(end);
    rest
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

/// The character behind `\u`, and the number of bytes that stand for it there.
fn unicode(digits: &[u8]) -> (char, usize) {
    let first = hex4(&digits[..4]).unwrap_or_default();
    let (code, length) = match first {
        // The scan has seen that a low surrogate follows.
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

    fn unescaped(inner: &str) -> String {
        let mut target = Vec::with_capacity(6 + inner.len());
        target.extend_from_slice(b"before");
        let room = target.capacity();
        unescape_into(inner.as_bytes(), &mut target);
        assert_eq!(target.capacity(), room, "it needs more room than the text takes");
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
            for length in 0..140 {
                let plain = "ä".repeat(length / 2) + &"x".repeat(length % 2);
                let written = format!("{plain}{escape}{escape}{plain}{escape}");
                assert_eq!(unescaped(&written), format!("{plain}{meant}{meant}{plain}{meant}"), "{written}");
                assert_eq!(unescaped(&format!("{escape}{plain}")), format!("{meant}{plain}"));
                assert_eq!(unescaped(&plain), plain);
            }
        }
    }

    /// Texts far longer than a window, of all escapes at changing distances.
    #[test]
    fn long_texts() {
        let escapes = ["\\\"", "\\\\", "\\n", "\\u0041", "\\ud83d\\ude00", "\\t\\t\\t"];
        let meant = ["\"", "\\", "\n", "A", "😀", "\t\t\t"];
        for shift in 0..AHEAD {
            let (mut written, mut expected) = ("x".repeat(shift), "x".repeat(shift));
            while written.len() < 3 * WINDOW {
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
