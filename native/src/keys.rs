//! The keys of records: those that have a column, and those that have none.

use hashbrown::HashMap;

use crate::memory::{NoRoom, room};
use crate::strings::{begins_with, characters};

/// What happens to keys without a column.
#[derive(Clone, Debug, Default)]
pub struct KeyRules {
    /// They all go to the rescued data; otherwise a new one that could be a column ends the building of rows.
    pub rescues_unknown: bool,
    /// Keys that go to the rescued data in any case.
    pub refused: Vec<Vec<u8>>,
    /// The most new keys to collect. Further ones go to the rescued data and are not remembered.
    pub max_keys: usize,
    /// A longer key goes to the rescued data and is not remembered, unless it has a column.
    pub max_key_characters: usize,
}

/// Keys by number: first those of the columns, then the refused ones, then new ones as they are seen.
#[derive(Debug)]
pub struct Keys {
    numbers: HashMap<Box<[u8]>, u32>,
    /// Each key, decoded, with [`KEY_END`] behind it.
    texts: Vec<Box<[u8]>>,
    /// Whether lines contain it literally: it needs no escapes.
    is_plain: Vec<bool>,
    /// The number of keys of columns and refused ones.
    known: usize,
    max_new: usize,
    max_characters: usize,
    /// The key that stood at each place of the last records.
    order: Vec<Expected>,
}

/// A key that is expected, so that most of them are told by one comparison of what is here.
#[derive(Clone, Copy, Debug)]
struct Expected {
    number: u32,
    /// Of the key with [`KEY_END`] behind it.
    length: u32,
    /// Its first bytes, and which bits of them count.
    start: u128,
    mask: u128,
}

/// The bytes that are compared at once.
const START_BYTES: usize = size_of::<u128>();

/// No bytes begin with it.
const NO_KEY: Expected = Expected { number: u32::MAX, length: 0, start: 1, mask: 0 };

/// What usually stands behind a key.
pub const KEY_END: &[u8] = b"\":";

impl Keys {
    pub fn new(columns: impl Iterator<Item = Vec<u8>>, rules: &KeyRules) -> Self {
        let mut keys = Self {
            numbers: HashMap::new(),
            texts: Vec::new(),
            is_plain: Vec::new(),
            known: 0,
            max_new: rules.max_keys,
            max_characters: rules.max_key_characters,
            order: Vec::new(),
        };
        for key in columns {
            keys.add(&key);
        }
        keys.order = (0..keys.len()).map(|number| keys.expectable(number)).collect();
        for key in &rules.refused {
            keys.add(key);
        }
        keys.known = keys.len();
        keys
    }

    /// The number of a key; a new one for a key that is seen for the first time. None if it is not to be remembered.
    pub fn number(&mut self, key: &[u8]) -> Option<usize> {
        match self.numbers.get(key) {
            Some(number) => Some(*number as usize),
            None if self.is_collected(key) => Some(self.add(key)),
            None => None,
        }
    }

    /// The number of keys of columns and refused ones.
    pub fn known(&self) -> usize {
        self.known
    }

    /// The key of a number, decoded.
    pub fn text(&self, number: usize) -> &[u8] {
        let text = &self.texts[number];
        &text[..text.len() - KEY_END.len()]
    }

    pub fn len(&self) -> usize {
        self.texts.len()
    }

    /// Forgets all keys from this number on.
    pub fn truncate(&mut self, len: usize) {
        for text in self.texts.drain(len..) {
            self.numbers.remove(&text[..text.len() - KEY_END.len()]);
        }
        self.is_plain.truncate(len);
        for expected in &mut self.order {
            if expected.number as usize >= len {
                *expected = NO_KEY;
            }
        }
    }

    /// The key to be expected at a place of a record, with [`KEY_END`] behind it.
    #[inline]
    pub fn expected(&self, place: usize) -> Option<(u32, &[u8])> {
        let number = self.order.get(place)?.number;
        self.texts.get(number as usize).map(|text| (number, &**text))
    }

    /// Whether the key to be expected at a place stands here, with [`KEY_END`] behind it.
    ///
    /// # Returns
    ///
    /// Its number, and the length of both. None also a few bytes before the end of the block.
    #[inline]
    pub fn found(&self, place: usize, block: &[u8], at: usize) -> Option<(u32, usize)> {
        let expected = self.order.get(place)?;
        let start = block[at..].first_chunk::<START_BYTES>()?;
        if u128::from_le_bytes(*start) & expected.mask != expected.start {
            return None;
        }
        let length = expected.length as usize;
        let is_found = length <= START_BYTES || {
            let rest = &self.texts[expected.number as usize][START_BYTES..];
            begins_with(&block[at + START_BYTES..], rest)
        };
        is_found.then_some((expected.number, length))
    }

    /// Remembers which key stood at a place.
    ///
    /// # Errors
    ///
    /// There is no memory for so many places.
    pub fn expect(&mut self, place: usize, number: usize) -> Result<(), NoRoom> {
        if place >= self.order.len() {
            let missing = place + 1 - self.order.len();
            room(&mut self.order, missing)?;
            self.order.resize(place + 1, NO_KEY);
        }
        self.order[place] = self.expectable(number);
        Ok(())
    }

    /// `NO_KEY` for a key that must be escaped, because lines never contain it literally.
    fn expectable(&self, number: usize) -> Expected {
        let text = &self.texts[number];
        let (Ok(number), Ok(length), true) = (u32::try_from(number), u32::try_from(text.len()), self.is_plain[number])
        else {
            return NO_KEY;
        };
        let mut start = [0; START_BYTES];
        let count = text.len().min(START_BYTES);
        start[..count].copy_from_slice(&text[..count]);
        let mask = u128::MAX >> (8 * (START_BYTES - count));
        Expected { number, length, start: u128::from_le_bytes(start), mask }
    }

    /// Whether there is room for a new key, and it is short enough for a column.
    fn is_collected(&self, key: &[u8]) -> bool {
        self.len() - self.known < self.max_new
            && (key.len() <= self.max_characters || characters(key) <= self.max_characters)
    }

    fn add(&mut self, key: &[u8]) -> usize {
        let number = self.texts.len();
        self.numbers.insert(key.into(), u32::try_from(number).expect("keys are below 2^32"));
        self.texts.push([key, KEY_END].concat().into());
        self.is_plain.push(key.iter().all(|byte| !matches!(byte, b'"' | b'\\' | 0..0x20)));
        number
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Keys of all lengths around what is compared at once: the expected one is found, and no other that is nearly it.
    #[test]
    fn expected_keys() {
        for length in 0..40 {
            let key = vec![b'k'; length];
            let mut keys = Keys::new([key.clone()].into_iter(), &KeyRules::default());
            let block = [&key, KEY_END, b"1,                "].concat();
            let all = length + KEY_END.len();
            assert_eq!(keys.found(0, &block, 0), Some((0, all)));
            assert_eq!((keys.found(1, &block, 0), keys.found(0, &block, block.len() - 9)), (None, None));
            for at in 0..all {
                let mut other = block.clone();
                other[at] = b'x';
                assert_eq!(keys.found(0, &other, 0), None, "byte {at} of {length}");
            }
            keys.truncate(0);
            assert_eq!(keys.found(0, &block, 0), None);
        }
    }
}
