//! The values of a column, each once, as Parquet writes them.

use std::hash::{BuildHasher, Hasher};

use hashbrown::{DefaultHashBuilder, HashTable};

use crate::strings::is_same;

const LENGTH_BYTES: usize = 4;

/// Places are numbers of 16 bits.
const MAX_VALUES: usize = 1 << 16;

#[derive(Debug, Default)]
pub struct Dictionary {
    /// Each value behind its length.
    page: Vec<u8>,
    /// Where each value begins, behind its length, and where it ends.
    spans: Vec<(u32, u32)>,
    places: HashTable<u16>,
    hasher: DefaultHashBuilder,
}

/// What became of a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Placed {
    Known(u16),
    New(u16),
    /// It is new, and there is no room for it.
    NoRoom,
}

impl Dictionary {
    pub fn len(&self) -> usize {
        self.spans.len()
    }

    /// Bits of the highest place.
    pub fn width(&self) -> u32 {
        usize::BITS - self.len().saturating_sub(1).leading_zeros()
    }

    /// All values, each behind its length.
    pub fn page(&self) -> &[u8] {
        &self.page
    }

    /// The value at a place, behind its length.
    pub fn entry(&self, place: u16) -> &[u8] {
        let (start, end) = self.spans[usize::from(place)];
        &self.page[start as usize - LENGTH_BYTES..end as usize]
    }

    pub fn memory_bytes(&self) -> usize {
        self.page.capacity() + self.spans.capacity() * size_of::<(u32, u32)>() + self.places.capacity() * 2
    }

    /// The place of a value, which is added if it is new.
    ///
    /// # Arguments
    ///
    /// * `max_bytes` - The longest page of values.
    #[inline]
    pub fn place(&mut self, value: &[u8], max_bytes: usize) -> Placed {
        let hash = hash_of(&self.hasher, value);
        let found = self.places.find(hash, |place| {
            let (start, end) = self.spans[usize::from(*place)];
            is_same(&self.page[start as usize..end as usize], value)
        });
        match found {
            Some(place) => Placed::Known(*place),
            None => self.add(value, hash, max_bytes),
        }
    }

    #[cold]
    fn add(&mut self, value: &[u8], hash: u64, max_bytes: usize) -> Placed {
        let start = self.page.len() + LENGTH_BYTES;
        let (Ok(length), Ok(place)) = (u32::try_from(value.len()), u16::try_from(self.len())) else {
            return Placed::NoRoom;
        };
        let span = u32::try_from(start).ok().and_then(|start| Some((start, start.checked_add(length)?)));
        let Some(span) = span.filter(|_| start + value.len() <= max_bytes && self.len() < MAX_VALUES) else {
            return Placed::NoRoom;
        };
        self.page.extend_from_slice(&length.to_le_bytes());
        self.page.extend_from_slice(value);
        self.spans.push(span);
        let Self { page, spans, places, hasher } = self;
        places.insert_unique(hash, place, |place| {
            let (start, end) = spans[usize::from(*place)];
            hash_of(hasher, &page[start as usize..end as usize])
        });
        Placed::New(place)
    }
}

#[inline]
fn hash_of(hasher: &DefaultHashBuilder, value: &[u8]) -> u64 {
    let mut hasher = hasher.build_hasher();
    hasher.write(value);
    hasher.finish()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_once() {
        let mut dictionary = Dictionary::default();
        let placed: Vec<Placed> = ["a", "", "a", "bc", ""].map(|value| dictionary.place(value.as_bytes(), 100)).into();
        let (new, known) = (Placed::New, Placed::Known);
        assert_eq!(placed, [new(0), new(1), known(0), new(2), known(1)]);
        assert_eq!(dictionary.page(), b"\x01\0\0\0a\0\0\0\0\x02\0\0\0bc");
        assert_eq!((dictionary.entry(0), dictionary.entry(1)), (&b"\x01\0\0\0a"[..], &b"\0\0\0\0"[..]));
        assert_eq!((dictionary.len(), dictionary.width()), (3, 2));
    }

    /// No value is added beyond the limit of bytes, or the highest place; known ones are still found.
    #[test]
    fn limits() {
        let mut dictionary = Dictionary::default();
        assert_eq!(dictionary.place(b"12345", 9), Placed::New(0));
        assert_eq!(dictionary.place(b"", 9), Placed::NoRoom);
        assert_eq!(dictionary.place(b"12345", 9), Placed::Known(0));
        let mut dictionary = Dictionary::default();
        for number in 0..=u16::MAX {
            assert_eq!(dictionary.place(&number.to_le_bytes(), usize::MAX), Placed::New(number));
        }
        assert_eq!((dictionary.place(b"abc", usize::MAX), dictionary.width()), (Placed::NoRoom, 16));
        assert_eq!(dictionary.place(&[1, 0], usize::MAX), Placed::Known(1));
    }

    #[test]
    fn widths() {
        let mut dictionary = Dictionary::default();
        let mut widths = vec![dictionary.width()];
        for number in 0..9_u8 {
            dictionary.place(&[number], 1000);
            widths.push(dictionary.width());
        }
        assert_eq!(widths, [0, 0, 1, 2, 2, 3, 3, 3, 3, 4]);
    }
}
