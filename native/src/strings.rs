//! JSON strings: what their escapes stand for.

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
