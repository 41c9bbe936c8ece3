//! VARIANT: the JSON of an object or an array in the binary form of Parquet and Iceberg.
//!
//! The rules, and each byte, are those of `compactor/schema/variants`.

mod containers;
mod numbers;
mod texts;

use crate::memory::{NoRoom, room};
use containers::{Field, Kind, close};
use texts::{Keys, string};

/// How deep objects and arrays may be nested.
const MAX_DEPTH: usize = 100;

/// The most bytes of a text. It becomes about four times as many at most.
pub const MAX_TEXT_BYTES: usize = 1024 * 1024;

const NULL: u8 = 0;
const TRUE: u8 = 1;
const FALSE: u8 = 2;

/// Why a text has become no VARIANT.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stop {
    /// It has none.
    Misfit,
    /// There is no memory for it.
    Memory(NoRoom),
}

impl From<NoRoom> for Stop {
    fn from(no_room: NoRoom) -> Self {
        Self::Memory(no_room)
    }
}

type Written = Result<(), Stop>;

/// The metadata of a VARIANT, which has the keys, and its value.
pub type Halves<'a> = (&'a [u8], &'a [u8]);

/// Writes one VARIANT after the other, in the same memory.
#[derive(Debug, Default)]
pub struct VariantWriter {
    keys: Keys,
    /// The elements of all containers that are open.
    fields: Vec<Field>,
    metadata: Vec<u8>,
    value: Vec<u8>,
}

impl VariantWriter {
    /// Writes the VARIANT of a text.
    ///
    /// # Arguments
    ///
    /// * `text` - Any bytes.
    ///
    /// # Returns
    ///
    /// None if the text has no VARIANT.
    ///
    /// # Errors
    ///
    /// There is no memory for it.
    pub fn write(&mut self, text: &[u8]) -> Result<Option<Halves<'_>>, NoRoom> {
        match self.written(text) {
            Ok(()) => Ok(Some((&self.metadata, &self.value))),
            Err(Stop::Misfit) => Ok(None),
            Err(Stop::Memory(no_room)) => Err(no_room),
        }
    }

    fn written(&mut self, text: &[u8]) -> Written {
        let is_container = matches!(text, [b'{', .., b'}'] | [b'[', .., b']']);
        if !is_container || text.len() > MAX_TEXT_BYTES || simdutf8::basic::from_utf8(text).is_err() {
            return Err(Stop::Misfit);
        }
        self.metadata.clear();
        self.value.clear();
        self.fields.clear();
        self.keys.find(text)?;
        self.keys.write(&mut self.metadata)?;
        let Self { keys, fields, value: out, .. } = self;
        let mut walk = Walk { text, at: 0, keys, keys_read: 0, fields, out };
        walk.value(MAX_DEPTH)?;
        expect(walk.at == text.len())
    }
}

/// Goes through a text once, and appends what it stands for.
struct Walk<'a> {
    text: &'a [u8],
    at: usize,
    keys: &'a Keys,
    /// Keys of the text so far: the next one is the one of this number.
    keys_read: usize,
    fields: &'a mut Vec<Field>,
    out: &'a mut Vec<u8>,
}

impl Walk<'_> {
    fn value(&mut self, depth: usize) -> Written {
        match self.next()? {
            b'{' => self.container(Kind::Object, depth),
            b'[' => self.container(Kind::Array, depth),
            b'"' => {
                self.at = string(self.text, self.at, self.out)?;
                Ok(())
            }
            b'n' => self.constant(b"null", NULL),
            b't' => self.constant(b"true", TRUE),
            b'f' => self.constant(b"false", FALSE),
            _ => {
                let rest = &self.text[self.at..];
                let end = rest.iter().position(|byte| !matches!(byte, b'0'..=b'9' | b'+' | b'-' | b'.' | b'e' | b'E'));
                let number = &rest[..end.unwrap_or(rest.len())];
                self.at += number.len();
                numbers::write(number, self.out)
            }
        }
    }

    fn container(&mut self, kind: Kind, depth: usize) -> Written {
        expect(depth > 0)?;
        let (first_field, start, close_byte) = (self.fields.len(), self.out.len(), kind.close_byte());
        self.at += 1;
        if self.next()? == close_byte {
            self.at += 1;
            return close(kind, self.fields, first_field, self.out, start);
        }
        loop {
            let key = if kind == Kind::Object { self.key()? } else { 0 };
            let offset = u32::try_from(self.out.len() - start).map_err(|_| Stop::Misfit)?;
            room(self.fields, 1)?;
            self.fields.push(Field { key, offset });
            self.value(depth - 1)?;
            let byte = self.next()?;
            self.at += 1;
            if byte == close_byte {
                return close(kind, self.fields, first_field, self.out, start);
            }
            expect(byte == b',')?;
        }
    }

    /// Passes over a key and its colon.
    fn key(&mut self) -> Result<u32, Stop> {
        self.next()?;
        let (key, end) = self.keys.of(self.keys_read, self.at).ok_or(Stop::Misfit)?;
        self.keys_read += 1;
        self.at = end;
        self.next()?;
        self.at += 1; // behind the colon
        Ok(key)
    }

    fn constant(&mut self, word: &[u8], kind: u8) -> Written {
        expect(self.text[self.at..].starts_with(word))?;
        self.at += word.len();
        room(self.out, 1)?;
        self.out.push(kind << 2);
        Ok(())
    }

    /// The next byte that is no blank.
    fn next(&mut self) -> Result<u8, Stop> {
        self.at = behind_blanks(self.text, self.at);
        self.text.get(self.at).copied().ok_or(Stop::Misfit)
    }
}

fn expect(is_so: bool) -> Written {
    if is_so { Ok(()) } else { Err(Stop::Misfit) }
}

/// Where the next byte is that is no blank of JSON.
fn behind_blanks(text: &[u8], at: usize) -> usize {
    let blanks = text[at..].iter().position(|byte| !matches!(byte, b' ' | b'\t' | b'\n' | b'\r'));
    blanks.map_or(text.len(), |blanks| at + blanks)
}

/// The fewest bytes that hold a number.
fn bytes_for(number: usize) -> usize {
    let bits = usize::BITS - number.leading_zeros();
    usize::try_from(bits.div_ceil(8)).map_or(1, |bytes| bytes.max(1))
}
