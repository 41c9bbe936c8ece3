//! Reads one line of NDJSON to compare it with its row.
//!
//! It shares no code with `scan`, which it verifies: here a line is read byte by byte. Anything that is not clearly a
//! record is left to the caller, which has a third parser.

use std::ops::Range;

/// Levels of arrays and objects within a value; deeper lines are left to the caller.
const MAX_DEPTH: u32 = 64;

/// A top-level key with its value, as places in the line.
#[derive(Clone, Debug)]
pub struct Field {
    pub key: Range<usize>,
    pub is_key_escaped: bool,
    pub value: Value,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Value {
    Null,
    /// A number, a boolean, an array or an object, unchanged.
    Source(Range<usize>),
    /// The part of a string between the quotes.
    Text {
        inner: Range<usize>,
        is_escaped: bool,
    },
}

/// The line is not clearly a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Doubtful;

pub type Read<T> = Result<T, Doubtful>;

/// Reads a line.
///
/// # Arguments
///
/// * `line` - Valid UTF-8, without its line feed.
/// * `fields` - Emptied, then filled with all fields of the record, in order.
///
/// # Errors
///
/// It is not a record, or only the caller can decide.
pub fn record(line: &[u8], fields: &mut Vec<Field>) -> Read<()> {
    fields.clear();
    let mut reader = Reader { line, at: 0 };
    reader.skip_space();
    reader.take(b'{')?;
    reader.skip_space();
    if reader.next() == b'}' {
        reader.at += 1;
        return reader.end();
    }
    loop {
        let (key, is_key_escaped) = reader.string()?;
        reader.colon()?;
        let start = reader.at;
        let value = match reader.next() {
            b'"' => {
                let (inner, is_escaped) = reader.string()?;
                Value::Text { inner, is_escaped }
            }
            b'n' => {
                reader.word(b"null")?;
                Value::Null
            }
            _ => {
                reader.value()?;
                Value::Source(start..reader.at)
            }
        };
        fields.push(Field { key, is_key_escaped, value });
        reader.skip_space();
        match reader.next() {
            b',' => {
                reader.at += 1;
                reader.skip_space();
            }
            b'}' => {
                reader.at += 1;
                return reader.end();
            }
            _ => return Err(Doubtful),
        }
    }
}

/// Whether a line is empty, or only white space.
pub fn is_blank(line: &[u8]) -> bool {
    line.iter().all(|byte| matches!(byte, b' ' | b'\t' | b'\r'))
}

/// Appends the decoded inside of a string that [`record`] has read.
pub fn decode(inner: &[u8], target: &mut Vec<u8>) {
    let mut at = 0;
    while let Some(byte) = inner.get(at) {
        if *byte != b'\\' {
            target.push(*byte);
            at += 1;
            continue;
        }
        let plain = match inner.get(at + 1) {
            Some(b'b') => 8,
            Some(b'f') => 12,
            Some(b'n') => b'\n',
            Some(b'r') => b'\r',
            Some(b't') => b'\t',
            Some(b'u') => {
                let (character, length) = character(&inner[at..]).unwrap_or((char::REPLACEMENT_CHARACTER, 6));
                target.extend_from_slice(character.encode_utf8(&mut [0; 4]).as_bytes());
                at += length;
                continue;
            }
            Some(itself) => *itself,
            None => return,
        };
        target.push(plain);
        at += 2;
    }
}

/// The character of an escape such as `\u00e9`, or of two that form a surrogate pair; and the length of both. None for
/// half a pair.
fn character(escape: &[u8]) -> Option<(char, usize)> {
    let unit = |at: usize| {
        let digits = escape.get(at + 2..at + 6).filter(|_| escape[at..].starts_with(b"\\u"))?;
        let digits = digits.iter().all(u8::is_ascii_hexdigit).then_some(digits)?;
        u16::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok()
    };
    let first = unit(0)?;
    if let Some(character) = char::from_u32(u32::from(first)) {
        return Some((character, 6));
    }
    let pair = char::decode_utf16([first, unit(6)?]).next()?.ok()?;
    Some((pair, 12))
}

/// Reads tokens of a text.
pub struct Reader<'a> {
    pub line: &'a [u8],
    pub at: usize,
}

impl Reader<'_> {
    /// The next byte; 0 after the last one, which no token starts with or contains.
    #[inline]
    pub fn next(&self) -> u8 {
        self.line.get(self.at).copied().unwrap_or(0)
    }

    #[inline]
    pub fn skip_space(&mut self) {
        while matches!(self.next(), b' ' | b'\t' | b'\r') {
            self.at += 1;
        }
    }

    #[inline]
    pub fn take(&mut self, byte: u8) -> Read<()> {
        if self.next() != byte {
            return Err(Doubtful);
        }
        self.at += 1;
        Ok(())
    }

    fn end(&mut self) -> Read<()> {
        self.skip_space();
        if self.at == self.line.len() { Ok(()) } else { Err(Doubtful) }
    }

    pub fn colon(&mut self) -> Read<()> {
        self.skip_space();
        self.take(b':')?;
        self.skip_space();
        Ok(())
    }

    pub fn word(&mut self, word: &[u8]) -> Read<()> {
        if !self.line[self.at..].starts_with(word) {
            return Err(Doubtful);
        }
        self.at += word.len();
        Ok(())
    }

    /// The part of a string between the quotes, and whether it has escapes.
    pub fn string(&mut self) -> Read<(Range<usize>, bool)> {
        self.take(b'"')?;
        let (start, mut is_escaped) = (self.at, false);
        loop {
            match self.next() {
                b'"' => {
                    self.at += 1;
                    return Ok((start..self.at - 1, is_escaped));
                }
                b'\\' => {
                    is_escaped = true;
                    self.at += match self.line.get(self.at + 1) {
                        Some(b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't') => 2,
                        Some(b'u') => character(&self.line[self.at..]).ok_or(Doubtful)?.1,
                        _ => return Err(Doubtful),
                    };
                }
                0..0x20 => return Err(Doubtful),
                _ => self.at += 1,
            }
        }
    }

    fn digits(&mut self) -> Read<()> {
        if !self.next().is_ascii_digit() {
            return Err(Doubtful);
        }
        while self.next().is_ascii_digit() {
            self.at += 1;
        }
        Ok(())
    }

    fn number(&mut self) -> Read<()> {
        self.at += usize::from(self.next() == b'-');
        if self.next() == b'0' {
            self.at += 1;
        } else {
            self.digits()?;
        }
        if self.next() == b'.' {
            self.at += 1;
            self.digits()?;
        }
        if matches!(self.next(), b'e' | b'E') {
            self.at += 1;
            self.at += usize::from(matches!(self.next(), b'+' | b'-'));
            self.digits()?;
        }
        Ok(())
    }

    pub fn scalar(&mut self) -> Read<()> {
        match self.next() {
            b'"' => self.string().map(|_| ()),
            b't' => self.word(b"true"),
            b'f' => self.word(b"false"),
            b'n' => self.word(b"null"),
            _ => self.number(),
        }
    }

    /// Skips a value of any kind.
    fn value(&mut self) -> Read<()> {
        // One bit per level: 1 for an object.
        let (mut objects, mut depth) = (0_u64, 0_u32);
        loop {
            // A value starts here.
            let opening = self.next();
            if matches!(opening, b'{' | b'[') {
                if depth == MAX_DEPTH {
                    return Err(Doubtful);
                }
                self.at += 1;
                (objects, depth) = (objects << 1 | u64::from(opening == b'{'), depth + 1);
                self.skip_space();
                let is_empty = self.next() == if opening == b'{' { b'}' } else { b']' };
                if !is_empty {
                    self.member(objects)?;
                    continue;
                }
            } else {
                self.scalar()?;
            }
            // A value has ended here, or an empty container is about to.
            loop {
                if depth == 0 {
                    return Ok(());
                }
                self.skip_space();
                match (self.next(), objects & 1) {
                    (b',', _) => {
                        self.at += 1;
                        self.skip_space();
                        self.member(objects)?;
                        break;
                    }
                    (b'}', 1) | (b']', 0) => {
                        self.at += 1;
                        (objects, depth) = (objects >> 1, depth - 1);
                    }
                    _ => return Err(Doubtful),
                }
            }
        }
    }

    /// Skips the key of the next value, if that is in an object.
    fn member(&mut self, objects: u64) -> Read<()> {
        if objects & 1 == 1 {
            self.string()?;
            self.colon()?;
        }
        Ok(())
    }
}
