//! Strings of JSON, and the keys among them.

use super::{Stop, Written, behind_blanks, bytes_for};
use crate::memory::room;
use crate::strings::hex4;

const SHORT_STRING: u8 = 1;
const SHORT_STRING_BYTES: usize = 63;
const STRING: u8 = 16;

/// A string has its kind and its length before it.
const HEAD_BYTES: usize = 5;

const VERSION: u8 = 1;
const SORTED: u8 = 1 << 4;

/// The keys of a text.
#[derive(Debug, Default)]
pub struct Keys {
    bytes: Vec<u8>,
    /// Each key of the text, in its order.
    found: Vec<Found>,
    /// The places in `found` of keys that differ, sorted by the keys.
    sorted: Vec<u32>,
}

#[derive(Clone, Copy, Debug)]
struct Found {
    start: u32,
    end: u32,
    /// Where its quotes begin in the text, and where the text goes on behind them.
    open: u32,
    behind: u32,
    /// The place among the sorted keys.
    id: u32,
}

impl Keys {
    /// Finds all keys of a text: the strings that a colon follows.
    pub fn find(&mut self, text: &[u8]) -> Written {
        self.bytes.clear();
        self.found.clear();
        self.sorted.clear();
        let mut at = 0;
        while let Some(quote) = memchr::memchr(b'"', &text[at..]) {
            let open = at + quote;
            let close = closing_quote(text, open)?;
            at = close + 1;
            if text.get(behind_blanks(text, at)) == Some(&b':') {
                let start = self.bytes.len();
                room(&mut self.bytes, close - open)?;
                unescape(&text[open + 1..close], &mut self.bytes)?;
                room(&mut self.found, 1)?;
                self.found.push(Found {
                    start: small(start)?,
                    end: small(self.bytes.len())?,
                    open: small(open)?,
                    behind: small(at)?,
                    id: 0,
                });
            }
        }
        self.sort()
    }

    /// The id of a key of the text by its number, and where the text goes on behind it.
    ///
    /// # Arguments
    ///
    /// * `open` - Where its quotes have to begin: a string that no colon follows is none of the keys.
    pub fn of(&self, number: usize, open: usize) -> Option<(u32, usize)> {
        let found = self.found.get(number).filter(|found| found.open as usize == open)?;
        Some((found.id, found.behind as usize))
    }

    /// Appends the metadata.
    pub fn write(&self, out: &mut Vec<u8>) -> Written {
        let keys = || self.sorted.iter().map(|&place| self.text(place));
        let size = keys().map(<[u8]>::len).sum::<usize>();
        let number_bytes = bytes_for(size.max(self.sorted.len()));
        room(out, 1 + (self.sorted.len() + 2) * number_bytes + size)?;
        out.push(VERSION | SORTED | header_bits(number_bytes));
        let mut put = |number: usize| out.extend_from_slice(&number.to_le_bytes()[..number_bytes]);
        put(self.sorted.len());
        put(0);
        keys().fold(0, |start, key| {
            put(start + key.len());
            start + key.len()
        });
        keys().for_each(|key| out.extend_from_slice(key));
        Ok(())
    }

    /// Gives equal keys one id, in the order of the keys.
    fn sort(&mut self) -> Written {
        let Self { bytes, found, sorted } = self;
        let text = |found: &Found| &bytes[found.start as usize..found.end as usize];
        room(sorted, found.len())?;
        sorted.extend(0..small(found.len())?);
        sorted.sort_unstable_by(|left, right| text(&found[*left as usize]).cmp(text(&found[*right as usize])));
        let mut ids = 0;
        let mut last = None;
        sorted.retain(|&place| {
            let this = found[place as usize];
            let is_new = last.is_none_or(|last| text(&last) != text(&this));
            ids += u32::from(is_new);
            found[place as usize].id = ids - 1;
            last = Some(this);
            is_new
        });
        Ok(())
    }

    fn text(&self, place: u32) -> &[u8] {
        let found = self.found[place as usize];
        &self.bytes[found.start as usize..found.end as usize]
    }
}

/// Appends the string that begins with the quotes at a place.
///
/// # Returns
///
/// Where the text goes on behind it.
pub fn string(text: &[u8], open: usize, out: &mut Vec<u8>) -> Result<usize, Stop> {
    let close = closing_quote(text, open)?;
    let inner = &text[open + 1..close];
    let start = out.len();
    room(out, HEAD_BYTES + inner.len())?;
    // How long the head is depends on what the escapes stand for.
    out.extend_from_slice(&[0; HEAD_BYTES]);
    unescape(inner, out)?;
    let size = out.len() - start - HEAD_BYTES;
    if size <= SHORT_STRING_BYTES {
        out.copy_within(start + HEAD_BYTES.., start + 1);
        out.truncate(start + 1 + size);
        out[start] = u8::try_from(size << 2).map_err(|_| Stop::Misfit)? | SHORT_STRING;
    } else {
        out[start] = STRING << 2;
        out[start + 1..start + HEAD_BYTES].copy_from_slice(&small(size)?.to_le_bytes());
    }
    Ok(close + 1)
}

/// The place of the quotes that end the string which begins at a place.
fn closing_quote(text: &[u8], open: usize) -> Result<usize, Stop> {
    let mut at = open + 1;
    loop {
        let found = at + memchr::memchr2(b'"', b'\\', &text[at.min(text.len())..]).ok_or(Stop::Misfit)?;
        if text[found] == b'"' {
            return Ok(found);
        }
        at = found + 2;
    }
}

/// Appends what the inside of a string stands for; there is room for it.
fn unescape(inner: &[u8], out: &mut Vec<u8>) -> Written {
    if inner.iter().any(|&byte| byte < b' ') {
        return Err(Stop::Misfit);
    }
    let mut rest = inner;
    while let Some(at) = memchr::memchr(b'\\', rest) {
        out.extend_from_slice(&rest[..at]);
        rest = escape(&rest[at + 1..], out).ok_or(Stop::Misfit)?;
    }
    out.extend_from_slice(rest);
    Ok(())
}

/// Appends what an escape stands for; returns what is behind it.
fn escape<'a>(escape: &'a [u8], out: &mut Vec<u8>) -> Option<&'a [u8]> {
    let (byte, rest) = escape.split_first()?;
    out.push(match byte {
        b'b' => 8,
        b'f' => 12,
        b'n' => b'\n',
        b'r' => b'\r',
        b't' => b'\t',
        b'"' | b'\\' | b'/' => *byte,
        b'u' => return unicode(rest, out),
        _ => return None,
    });
    Some(rest)
}

/// The same of an escape of four digits, or of a pair of them; half a pair stands for nothing.
fn unicode<'a>(digits: &'a [u8], out: &mut Vec<u8>) -> Option<&'a [u8]> {
    let (first, rest) = code_unit(digits)?;
    let (code, rest) = match first {
        0xD800..=0xDBFF => {
            let (second, rest) = code_unit(rest.strip_prefix(b"\\u")?)?;
            (0x10000 + ((first - 0xD800) << 10) + second.checked_sub(0xDC00).filter(|low| *low < 0x400)?, rest)
        }
        _ => (first, rest),
    };
    out.extend_from_slice(char::from_u32(code)?.encode_utf8(&mut [0; 4]).as_bytes());
    Some(rest)
}

fn code_unit(digits: &[u8]) -> Option<(u32, &[u8])> {
    let (digits, rest) = digits.split_at_checked(4)?;
    Some((hex4(digits)?, rest))
}

/// Texts are short enough for 32 bits.
fn small(number: usize) -> Result<u32, Stop> {
    u32::try_from(number).map_err(|_| Stop::Misfit)
}

#[allow(clippy::cast_possible_truncation)] // 1 to 4
fn header_bits(number_bytes: usize) -> u8 {
    (number_bytes as u8 - 1) << 6
}
