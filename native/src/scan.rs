//! Reads one line of NDJSON: decides whether it is a record, and finds its top-level keys and values.
//!
//! A record is one JSON object by RFC 8259, at most [`MAX_DEPTH`] levels deep, surrounded only by spaces, tabs and
//! carriage returns. Numbers are judged only by their grammar, because their value is text. Nothing here is recursive,
//! so no nesting can exhaust the stack.
//!
//! Lines are scanned in place in their block: a line feed is a control character, which no JSON token may contain, so
//! every token ends at the end of its line at the latest.

use crate::keys::{KEY_END, Keys, Place};
use crate::memory::room;
use crate::special;
use crate::strings;

/// Levels of arrays and objects, including the record itself. The limit of orjson, which judges lines elsewhere.
pub const MAX_DEPTH: usize = 1024;

/// A top-level value, as written in the line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Value<'a> {
    Null,
    /// A number, a boolean, an array or an object: the source text with its inner white space.
    Source(&'a [u8]),
    /// The part of a string between the quotes, with or without escapes.
    Text {
        inner: &'a [u8],
        escaped: bool,
    },
}

impl Value<'_> {
    /// Its length in the line.
    pub fn len(&self) -> usize {
        match self {
            Self::Null => 0,
            Self::Source(text) | Self::Text { inner: text, .. } => text.len(),
        }
    }
}

/// A top-level key with its value, as places in their block: a line may have millions of them.
#[derive(Clone, Copy, Debug)]
pub struct Field {
    key: Span,
    value: Span,
    /// Or `UNSEEN`.
    number: u32,
    is_expected: bool,
    key_escaped: bool,
    kind: Kind,
}

#[derive(Clone, Copy, Debug)]
struct Span {
    start: u32,
    end: u32,
}

#[derive(Clone, Copy, Debug)]
enum Kind {
    Null,
    Source,
    Text { escaped: bool },
}

impl Span {
    /// Blocks are shorter than 4 GiB, as their reader ensures.
    #[allow(clippy::cast_possible_truncation)]
    fn new(start: usize, end: usize) -> Self {
        Self { start: start as u32, end: end as u32 }
    }

    fn of(self, block: &[u8]) -> &[u8] {
        &block[self.start as usize..self.end as usize]
    }
}

impl Field {
    /// The part of the key between the quotes.
    pub fn key<'a>(&self, block: &'a [u8]) -> &'a [u8] {
        self.key.of(block)
    }

    /// Its place.
    #[inline]
    pub fn key_place(&self) -> (usize, usize) {
        (self.key.start as usize, self.key.end as usize)
    }

    pub fn key_is_escaped(&self) -> bool {
        self.key_escaped
    }

    /// The key's number, if it was seen before and has no escapes here.
    #[inline]
    pub fn number(&self) -> Option<usize> {
        (self.number != UNSEEN).then_some(self.number as usize)
    }

    /// Whether the key was expected at its position.
    #[inline]
    pub fn is_expected(&self) -> bool {
        self.is_expected
    }

    /// The place of its value's bytes.
    #[inline]
    pub fn value_place(&self) -> (usize, usize) {
        (self.value.start as usize, self.value.end as usize)
    }

    #[inline]
    pub fn value<'a>(&self, block: &'a [u8]) -> Value<'a> {
        match self.kind {
            Kind::Null => Value::Null,
            Kind::Source => Value::Source(self.value.of(block)),
            Kind::Text { escaped } => Value::Text { inner: self.value.of(block), escaped },
        }
    }
}

const UNSEEN: u32 = u32::MAX;

/// Why a line is not a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NoRecord {
    /// Not UTF-8 text.
    NoText,
    /// Not exactly one JSON value.
    Malformed,
    /// A JSON value, but not an object.
    OtherValue,
    /// Too many levels, or a different fault after them.
    TooDeep,
    /// So many fields that they do not fit into memory.
    NoRoom,
}

type Scanned<T> = Result<T, NoRecord>;

/// Scans the line that starts at `start`.
///
/// # Arguments
///
/// * `block` - Ends with a line feed; the line is valid UTF-8.
/// * `keys` - Which key probably follows which other one.
/// * `fields` - Emptied, then filled with the record's fields, in order, including repeated keys.
///
/// # Returns
///
/// The place of the line feed after the record.
pub fn record(block: &[u8], start: usize, keys: &Keys, fields: &mut Vec<Field>) -> Scanned<usize> {
    fields.clear();
    let mut at = expect(block, skip_space(block, start), b'{')?;
    at = skip_space(block, at);
    if block[at] == b'}' {
        return end_of_line(block, at + 1);
    }
    let mut place = Place::FIRST;
    loop {
        let (field, behind, next) = field(block, at, place, keys)?;
        place = next;
        room(fields, 1).map_err(|_| NoRecord::NoRoom)?;
        fields.push(field);
        at = skip_space(block, behind);
        match block[at] {
            b',' => at = skip_space(block, at + 1),
            b'}' => return end_of_line(block, at + 1),
            _ => return Err(NoRecord::Malformed),
        }
    }
}

/// Why a non-blank line of text is not a record.
///
/// # Arguments
///
/// * `found` - The result of [`record`].
pub fn fault(block: &[u8], start: usize, found: NoRecord) -> NoRecord {
    let at = skip_space(block, start);
    if block[at] == b'{' {
        return found;
    }
    let end = if block[at] == b'"' { string(block, at + 1).map(|(end, _)| end) } else { other_value(block, at) };
    end.and_then(|end| end_of_line(block, end)).err().unwrap_or(NoRecord::OtherValue)
}

/// Whether the line that starts at `start` has only white space; if so, the place of its line feed.
pub fn blank(block: &[u8], start: usize) -> Option<usize> {
    let at = skip_space(block, start);
    (block[at] == b'\n').then_some(at)
}

/// Whether a line is one valid JSON value without white space around it. It ends with a line feed.
pub fn is_value(line: &[u8]) -> bool {
    let end = match line.first() {
        Some(b'"') => string(line, 1).map(|(end, _)| end),
        Some(_) => other_value(line, 0),
        None => return false,
    };
    simdutf8::basic::from_utf8(line).is_ok() && end == Ok(line.len() - 1)
}

/// Calls for each element of the array, or member of the object, that starts at a place in a valid text; each call
/// returns the end of that element.
///
/// # Returns
///
/// The end of the array or object.
pub fn elements<E>(text: &[u8], at: usize, mut each: impl FnMut(usize) -> Result<usize, E>) -> Result<usize, E> {
    let close = text[at] + 2; // `{}` and `[]` are two apart
    let mut at = skip_space(text, at + 1);
    while text[at] != close {
        at = skip_space(text, each(at)?);
        if text[at] == b',' {
            at = skip_space(text, at + 1);
        }
    }
    Ok(at + 1)
}

/// The value at a place within a valid array or object, and its end.
pub fn value_within(text: &[u8], at: usize) -> (Value<'_>, usize) {
    if text[at] == b'"' {
        let (end, escaped) = string(text, at + 1).expect("a valid string");
        return (Value::Text { inner: &text[at + 1..end - 1], escaped }, end);
    }
    let end = other_value(text, at).expect("a valid value");
    (if text[at] == b'n' { Value::Null } else { Value::Source(&text[at..end]) }, end)
}

/// The key at a place within a valid object, as written; whether it has escapes; and the start of its value.
pub fn key_within(text: &[u8], at: usize) -> (&[u8], bool, usize) {
    let (end, is_escaped) = string(text, at + 1).expect("a valid key");
    (&text[at + 1..end - 1], is_escaped, behind_colon(text, end).expect("a colon"))
}

#[inline]
fn field(block: &[u8], at: usize, place: Place, keys: &Keys) -> Scanned<(Field, usize, Place)> {
    let at = expect(block, at, b'"')?;
    let (Key { span: key, number, is_expected, is_escaped: key_escaped }, start, next) =
        match keys.found(place, block, at) {
            // Most records have the same keys as the last one: a comparison is cheaper than finding the end of the key.
            Some((number, length, next)) => {
                let span = Span::new(at, at + length - KEY_END.len());
                (Key { span, number, is_expected: true, is_escaped: false }, at + length, next)
            }
            None => unlike_key(block, at, place, keys)?,
        };
    let start = skip_space(block, start);
    // Most values are strings, and their parts need not go through memory.
    if block[start] == b'"' {
        let (behind, escaped) = string(block, start + 1)?;
        let value = Span::new(start + 1, behind - 1);
        return Ok((
            Field { key, value, number, is_expected, key_escaped, kind: Kind::Text { escaped } },
            behind,
            next,
        ));
    }
    let kind = if block[start] == b'n' { Kind::Null } else { Kind::Source };
    let behind = other_value(block, start)?;
    Ok((Field { key, value: Span::new(start, behind), number, is_expected, key_escaped, kind }, behind, next))
}

/// A key without its value; the parts are those of a [`Field`].
struct Key {
    span: Span,
    number: u32,
    is_expected: bool,
    is_escaped: bool,
}

/// An unexpected key, or one without a colon directly after it; the start of what follows the colon; and the position
/// after the key.
#[inline(never)]
fn unlike_key(block: &[u8], at: usize, place: Place, keys: &Keys) -> Scanned<(Key, usize, Place)> {
    let (end, is_escaped) = string(block, at)?;
    let seen = if is_escaped { None } else { keys.known_number(block, (at, end - 1)) };
    let behind = expect(block, skip_space(block, end), b':')?;
    let is_expected = seen.is_some_and(|number| keys.expects(place, number));
    let next = seen.map_or(Place::UNKNOWN, |number| Place::behind(number as usize));
    Ok((Key { span: Span::new(at, end - 1), number: seen.unwrap_or(UNSEEN), is_expected, is_escaped }, behind, next))
}

fn behind_colon(block: &[u8], at: usize) -> Scanned<usize> {
    Ok(skip_space(block, expect(block, skip_space(block, at), b':')?))
}

/// Scans a value that is not a string; returns its end.
#[inline]
fn other_value(block: &[u8], at: usize) -> Scanned<usize> {
    match block[at] {
        b'{' | b'[' => container(block, at),
        _ => scalar(block, at),
    }
}

/// A number, `true`, `false` or `null`.
fn scalar(block: &[u8], at: usize) -> Scanned<usize> {
    match block[at] {
        b't' => word(block, at, b"true"),
        b'f' => word(block, at, b"false"),
        b'n' => word(block, at, b"null"),
        _ => number(block, at),
    }
}

fn word(block: &[u8], at: usize, text: &[u8]) -> Scanned<usize> {
    if block[at..].starts_with(text) { Ok(at + text.len()) } else { Err(NoRecord::Malformed) }
}

fn number(block: &[u8], start: usize) -> Scanned<usize> {
    let at = start + usize::from(block[start] == b'-');
    let mut at = match block[at] {
        b'0' => at + 1,
        b'1'..=b'9' => skip_digits(block, at + 1),
        _ => return Err(NoRecord::Malformed),
    };
    if block[at] == b'.' {
        at = some_digits(block, at + 1)?;
    }
    if matches!(block[at], b'e' | b'E') {
        at += 1;
        at = some_digits(block, at + usize::from(matches!(block[at], b'+' | b'-')))?;
    }
    Ok(at)
}

fn some_digits(block: &[u8], at: usize) -> Scanned<usize> {
    let end = skip_digits(block, at);
    if end > at { Ok(end) } else { Err(NoRecord::Malformed) }
}

#[inline]
fn skip_digits(block: &[u8], mut at: usize) -> usize {
    while block[at].is_ascii_digit() {
        at += 1;
    }
    at
}

/// The kind of the open container at each level.
struct Levels {
    /// One bit per level: set for an object.
    bits: [u64; MAX_DEPTH / 64],
    depth: usize,
}

impl Levels {
    /// The record itself is the first level.
    fn new() -> Self {
        Self { bits: [0; MAX_DEPTH / 64], depth: 1 }
    }

    fn open(&mut self, is_object: bool) -> Scanned<()> {
        if self.depth == MAX_DEPTH {
            return Err(NoRecord::TooDeep);
        }
        let (word, bit) = (self.depth / 64, 1 << (self.depth % 64));
        if is_object {
            self.bits[word] |= bit;
        } else {
            self.bits[word] &= !bit;
        }
        self.depth += 1;
        Ok(())
    }

    fn in_object(&self) -> bool {
        let level = self.depth - 1;
        self.bits[level / 64] >> (level % 64) & 1 == 1
    }

    /// Closes the innermost level; true if it was the outermost one within the record.
    fn close(&mut self) -> bool {
        self.depth -= 1;
        self.depth == 1
    }
}

/// Scans the container that starts at `at`; returns its end.
#[inline(never)]
fn container(block: &[u8], start: usize) -> Scanned<usize> {
    let mut levels = Levels::new();
    let mut at = start;
    loop {
        // A value starts here.
        match block[at] {
            b'"' => at = string(block, at + 1)?.0,
            opening @ (b'{' | b'[') => {
                let is_object = opening == b'{';
                levels.open(is_object)?;
                at = skip_space(block, at + 1);
                // The opening bracket's code plus one or two: `{}` and `[]` are two apart.
                if block[at] != opening + 2 {
                    if is_object {
                        at = nested_key(block, at)?;
                    }
                    continue;
                }
                at += 1;
                if levels.close() {
                    return Ok(at);
                }
            }
            _ => at = scalar(block, at)?,
        }
        // A value has ended here.
        loop {
            at = skip_space(block, at);
            match (block[at], levels.in_object()) {
                (b',', true) => at = nested_key(block, skip_space(block, at + 1))?,
                (b',', false) => at = skip_space(block, at + 1),
                (b'}', true) | (b']', false) => {
                    at += 1;
                    if levels.close() {
                        return Ok(at);
                    }
                    continue;
                }
                _ => return Err(NoRecord::Malformed),
            }
            break;
        }
    }
}

/// A key with its colon; returns the start of its value.
fn nested_key(block: &[u8], at: usize) -> Scanned<usize> {
    let (end, _) = string(block, expect(block, at, b'"')?)?;
    behind_colon(block, end)
}

/// Scans a string from after its first quote; returns its end, after its last quote, and whether it has escapes.
#[inline]
fn string(block: &[u8], start: usize) -> Scanned<(usize, bool)> {
    let at = special::find_special(block, start);
    if block[at] == b'"' { Ok((at + 1, false)) } else { escaped_string(block, at) }
}

/// The same from the first byte that is not a plain character.
///
/// Escapes often follow each other closely, as in JSON within a string: a stretch is searched for all of them at once.
#[inline(never)]
fn escaped_string(block: &[u8], special: usize) -> Scanned<(usize, bool)> {
    let (mut start, mut is_escaped) = (special, false);
    while let Some(ahead) = special::specials_ahead(block, start) {
        if ahead == special::Ahead::default() && !is_escaped {
            start = special::find_special(block, start + special::AHEAD);
            continue;
        }
        let (escaped, is_next_escaped) = ahead.escaped(is_escaped);
        let ends = ahead.quotes & !escaped;
        let inside = !ends & ends.wrapping_sub(1); // what is before the first of them; all if there are none
        if ahead.controls & inside != 0 {
            return Err(NoRecord::Malformed);
        }
        let end = start + special::AHEAD;
        let mut behind = end;
        let mut others = escaped & inside & !ahead.quotes;
        while others != 0 {
            let next = escape(block, start + others.trailing_zeros() as usize)?;
            // The second half of a surrogate pair has its own backslash, and may be in the next stretch.
            others &= if next < end { u32::MAX << (next - start) } else { 0 };
            behind = behind.max(next);
        }
        if ends != 0 {
            return Ok((start + ends.trailing_zeros() as usize + 1, true));
        }
        (start, is_escaped) = (behind, is_next_escaped && behind == end);
    }
    escaped_near_end(block, start, is_escaped)
}

/// The same if few bytes remain, or if the processor has no vectors.
fn escaped_near_end(block: &[u8], start: usize, is_escaped: bool) -> Scanned<(usize, bool)> {
    let mut at = if is_escaped { escape(block, start)? } else { start };
    loop {
        at = special::find_special(block, at);
        match block[at] {
            b'"' => return Ok((at + 1, true)),
            b'\\' => at = escape(block, at + 1)?,
            _ => return Err(NoRecord::Malformed),
        }
    }
}

/// The rest of an escape after its backslash.
#[inline]
fn escape(block: &[u8], at: usize) -> Scanned<usize> {
    match block[at] {
        b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't' => Ok(at + 1),
        b'u' => unicode(block, at + 1),
        _ => Err(NoRecord::Malformed),
    }
}

/// The digits of an escape; a high surrogate must be followed by a low one.
#[inline(never)]
fn unicode(block: &[u8], at: usize) -> Scanned<usize> {
    match hex(block, at)? {
        0xD800..=0xDBFF => {
            let at = expect(block, expect(block, at + 4, b'\\')?, b'u')?;
            if matches!(hex(block, at)?, 0xDC00..=0xDFFF) { Ok(at + 4) } else { Err(NoRecord::Malformed) }
        }
        0xDC00..=0xDFFF => Err(NoRecord::Malformed),
        _ => Ok(at + 4),
    }
}

fn hex(block: &[u8], at: usize) -> Scanned<u32> {
    block.get(at..at + 4).and_then(strings::hex4).ok_or(NoRecord::Malformed)
}

fn end_of_line(block: &[u8], at: usize) -> Scanned<usize> {
    blank(block, at).ok_or(NoRecord::Malformed)
}

#[inline]
fn expect(block: &[u8], at: usize, byte: u8) -> Scanned<usize> {
    if block.get(at) == Some(&byte) { Ok(at + 1) } else { Err(NoRecord::Malformed) }
}

#[inline]
fn skip_space(block: &[u8], mut at: usize) -> usize {
    // A single comparison if there is none, as between most tokens.
    while block[at] <= b' ' && matches!(block[at], b' ' | b'\t' | b'\r') {
        at += 1;
    }
    at
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Each escape after plain texts of each length, also across the end of a stretch: its characters start no new
    /// escape, and end no string; whether much or nothing follows the string.
    #[test]
    fn each_escape_at_each_place() {
        for length in 0..70 {
            for behind in ["\n".to_owned(), format!(",\"{}\"}}\n", "y\\\\\"".repeat(30))] {
                let block = |escape: &str| format!("\\n{}{escape}\"{behind}", "x".repeat(length)).into_bytes();
                for escape in ["\\\\", "\\\"", "\\n", "\\u00e9", "\\ud83d\\ude00", "\\\\\\\"", "\\\"\\\\"] {
                    let end = 2 + length + escape.len() + 1;
                    assert_eq!(string(&block(escape), 0), Ok((end, true)), "{escape} behind {length}");
                }
                for fault in ["\\x", "\\u12g4", "\\ude00", "\\ud83d\\n", "\\ud83d\\u0041", "\t", "\\\\\n"] {
                    assert_eq!(string(&block(fault), 0), Err(NoRecord::Malformed), "{fault} behind {length}");
                }
            }
        }
    }
}
