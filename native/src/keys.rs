//! Keys of records, with and without a column.

use std::hash::{BuildHasher, Hasher};

use hashbrown::{DefaultHashBuilder, HashTable};

use crate::memory::{NoRoom, room};
use crate::strings::{begins_with, characters};

/// How to handle keys without a column.
#[derive(Clone, Debug, Default)]
pub struct KeyRules {
    /// They all go to the rescued data; otherwise a new key that could be a column stops the building of rows.
    pub rescues_unknown: bool,
    /// Keys that always go to the rescued data.
    pub refused: Vec<Vec<u8>>,
    /// The most new keys to collect. Further ones go to the rescued data and are not remembered.
    pub max_keys: usize,
    /// A longer key goes to the rescued data and is not remembered, unless it has a column.
    pub max_key_characters: usize,
}

/// Keys by number: first those of the columns, then the refused ones, then new ones as seen.
#[derive(Debug)]
pub struct Keys {
    numbers: HashTable<Numbered>,
    hasher: DefaultHashBuilder,
    /// Each key, decoded, followed by [`KEY_END`].
    texts: Vec<Box<[u8]>>,
    /// Whether lines contain it literally, because it needs no escapes.
    is_plain: Vec<bool>,
    /// The number of column keys and refused ones.
    known: usize,
    max_new: usize,
    max_characters: usize,
    /// The keys expected at the start of a record, and after each key.
    after: Vec<Followers>,
}

/// A position in a record: at its start, or after a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place(usize);

impl Place {
    pub const FIRST: Self = Self(0);
    /// After a key without a number.
    pub const UNKNOWN: Self = Self(usize::MAX);

    /// After the key with this number.
    #[inline]
    pub fn behind(number: usize) -> Self {
        Self(number + 1)
    }

    /// After the key that is here in records with all column keys in order.
    #[inline]
    fn next(self) -> Self {
        Self(self.0 + 1)
    }
}

/// The keys expected at a position, the first one before the second one: most lines that lack a key, or have their keys
/// in a different order, are recognised by at most two comparisons.
#[derive(Clone, Copy, Debug)]
struct Followers {
    first: Expected,
    second: Expected,
    /// Whether the first one is the key after which [`Place::next`] comes.
    is_next: bool,
}

/// No key is expected.
const NO_FOLLOWERS: Followers = Followers { first: NO_KEY, second: NO_KEY, is_next: false };

/// A key with its number; a short one is identified by these fields alone.
#[derive(Clone, Copy, Debug)]
struct Numbered {
    /// Its first bytes, padded with zeros if shorter.
    start: u128,
    length: u32,
    number: u32,
}

/// An expected key; most are identified by one comparison of these fields.
#[derive(Clone, Copy, Debug)]
struct Expected {
    number: u32,
    /// Of the key followed by [`KEY_END`].
    length: u32,
    /// Its first bytes, and a mask of the relevant bits.
    start: u128,
    mask: u128,
}

/// The bytes compared at once.
const START_BYTES: usize = size_of::<u128>();

/// No bytes begin with it.
const NO_KEY: Expected = Expected { number: u32::MAX, length: 0, start: 1, mask: 0 };

/// What usually follows a key.
pub const KEY_END: &[u8] = b"\":";

impl Keys {
    pub fn new(columns: impl Iterator<Item = Vec<u8>>, rules: &KeyRules) -> Self {
        let mut keys = Self {
            numbers: HashTable::new(),
            hasher: DefaultHashBuilder::default(),
            texts: Vec::new(),
            is_plain: Vec::new(),
            known: 0,
            max_new: rules.max_keys,
            max_characters: rules.max_key_characters,
            after: Vec::new(),
        };
        for key in columns {
            keys.add(&key);
        }
        keys.after = (0..keys.len()).map(|number| keys.followers(number)).collect();
        for key in &rules.refused {
            keys.add(key);
        }
        keys.known = keys.len();
        keys
    }

    /// A key's number; a new one for a key seen for the first time. None if it is not to be remembered.
    pub fn number(&mut self, key: &[u8]) -> Option<usize> {
        self.number_in(key, (0, key.len()))
    }

    /// The same for a key in a block, from the first place to the second.
    pub fn number_in(&mut self, block: &[u8], (from, to): (usize, usize)) -> Option<usize> {
        let key = &block[from..to];
        match self.known_number(block, (from, to)) {
            Some(number) => Some(number as usize),
            None if self.is_collected(key) => Some(self.add(key)),
            None => None,
        }
    }

    /// The number of a key in a block, if it was seen before.
    pub fn known_number(&self, block: &[u8], (from, to): (usize, usize)) -> Option<u32> {
        let key = &block[from..to];
        let (hash, start) = (hash_of(&self.hasher, key), start_in(block, from, to));
        let found = self.numbers.find(hash, |known| {
            known.start == start
                && known.length as usize == key.len()
                && (key.len() <= START_BYTES
                    || self.texts[known.number as usize][START_BYTES..key.len()] == key[START_BYTES..])
        });
        found.map(|known| known.number)
    }

    /// The number of column keys and refused ones.
    pub fn known(&self) -> usize {
        self.known
    }

    /// The key with a number, decoded.
    pub fn text(&self, number: usize) -> &[u8] {
        let text = &self.texts[number];
        &text[..text.len() - KEY_END.len()]
    }

    pub fn len(&self) -> usize {
        self.texts.len()
    }

    /// Drops all keys from this number on.
    pub fn truncate(&mut self, len: usize) {
        for (number, text) in (len..).zip(self.texts.drain(len..)) {
            let hash = hash_of(&self.hasher, &text[..text.len() - KEY_END.len()]);
            if let Ok(entry) = self.numbers.find_entry(hash, |known| known.number as usize == number) {
                entry.remove();
            }
        }
        self.is_plain.truncate(len);
        self.after.truncate(len + 1);
        for Followers { first, second, .. } in &mut self.after {
            for expected in [first, second] {
                if expected.number as usize >= len {
                    *expected = NO_KEY;
                }
            }
        }
    }

    /// Whether this key is expected at a position.
    pub fn expects(&self, place: Place, number: u32) -> bool {
        self.after.get(place.0).is_some_and(|after| after.first.number == number || after.second.number == number)
    }

    /// Whether one of the keys expected at a position is here, followed by [`KEY_END`].
    ///
    /// # Returns
    ///
    /// Its number, the length of both, and the position after it. None also a few bytes before the end of the block.
    #[inline]
    pub fn found(&self, place: Place, block: &[u8], at: usize) -> Option<(u32, usize, Place)> {
        let after = self.after.get(place.0)?;
        let start = u128::from_le_bytes(*block[at..].first_chunk::<START_BYTES>()?);
        let (expected, behind) = if start & after.first.mask == after.first.start {
            // A position that is not read from memory is known sooner.
            let behind = if after.is_next { place.next() } else { Place::behind(after.first.number as usize) };
            (&after.first, behind)
        } else if start & after.second.mask == after.second.start {
            (&after.second, Place::behind(after.second.number as usize))
        } else {
            return None;
        };
        let length = expected.length as usize;
        let is_found = length <= START_BYTES || {
            let rest = &self.texts[expected.number as usize][START_BYTES..];
            begins_with(&block[at + START_BYTES..], rest)
        };
        is_found.then_some((expected.number, length, behind))
    }

    /// Remembers a key that was not expected at its position. It replaces the second expected one.
    ///
    /// # Errors
    ///
    /// Not enough memory for so many positions.
    pub fn expect(&mut self, place: Place, number: usize) -> Result<(), NoRoom> {
        if place == Place::UNKNOWN {
            return Ok(());
        }
        if place.0 >= self.after.len() {
            let missing = place.0 + 1 - self.after.len();
            room(&mut self.after, missing)?;
            self.after.resize(place.0 + 1, NO_FOLLOWERS);
        }
        let expected = self.expectable(number);
        let after = &mut self.after[place.0];
        if after.first.mask == 0 {
            (after.first, after.is_next) = (expected, number == place.0);
        } else {
            after.second = expected;
        }
        Ok(())
    }

    fn followers(&self, number: usize) -> Followers {
        Followers { first: self.expectable(number), is_next: true, ..NO_FOLLOWERS }
    }

    /// `NO_KEY` for a key that must be escaped, because lines never contain it literally.
    fn expectable(&self, number: usize) -> Expected {
        let text = &self.texts[number];
        let (Ok(number), Ok(length), true) = (u32::try_from(number), u32::try_from(text.len()), self.is_plain[number])
        else {
            return NO_KEY;
        };
        let mask = first_bytes(text.len().min(START_BYTES));
        Expected { number, length, start: start_in(text, 0, text.len()), mask }
    }

    /// Whether there is room for a new key, and it is short enough for a column.
    fn is_collected(&self, key: &[u8]) -> bool {
        self.len() - self.known < self.max_new
            && (key.len() <= self.max_characters || characters(key) <= self.max_characters)
    }

    fn add(&mut self, key: &[u8]) -> usize {
        let number = self.texts.len();
        let numbered = Numbered {
            start: start_in(key, 0, key.len()),
            length: u32::try_from(key.len()).expect("blocks of lines are below 4 GiB"),
            number: u32::try_from(number).expect("keys are below 2^32"),
        };
        self.texts.push([key, KEY_END].concat().into());
        self.is_plain.push(key.iter().all(|byte| !matches!(byte, b'"' | b'\\' | 0..0x20)));
        let Self { numbers, texts, hasher, .. } = self;
        numbers.insert_unique(hash_of(hasher, key), numbered, |known| {
            let text = &texts[known.number as usize];
            hash_of(hasher, &text[..text.len() - KEY_END.len()])
        });
        number
    }
}

#[inline]
fn hash_of(hasher: &DefaultHashBuilder, key: &[u8]) -> u64 {
    let mut hasher = hasher.build_hasher();
    hasher.write(key);
    hasher.finish()
}

/// The first bytes of a key in a block, padded with zeros if shorter.
#[inline]
fn start_in(block: &[u8], from: usize, to: usize) -> u128 {
    let length = (to - from).min(START_BYTES);
    let start = block[from..].first_chunk::<START_BYTES>().copied().unwrap_or_else(|| {
        let mut start = [0; START_BYTES];
        start[..length].copy_from_slice(&block[from..from + length]);
        start
    });
    u128::from_le_bytes(start) & first_bytes(length)
}

/// A mask of this many leading bits.
#[inline]
fn first_bytes(count: usize) -> u128 {
    if count == 0 { 0 } else { u128::MAX >> (8 * (START_BYTES - count)) }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    /// Keys of all lengths around the size compared at once: the expected one is found, and no near miss.
    #[test]
    fn expected_keys() {
        for length in 0..40 {
            let key = vec![b'k'; length];
            let mut keys = Keys::new([key.clone()].into_iter(), &KeyRules::default());
            let block = [&key, KEY_END, b"1,                "].concat();
            let all = length + KEY_END.len();
            assert_eq!(keys.found(Place::FIRST, &block, 0), Some((0, all, Place::behind(0))));
            assert_eq!(keys.found(Place::behind(0), &block, 0), None);
            assert_eq!(keys.found(Place::FIRST, &block, block.len() - 9), None);
            for at in 0..all {
                let mut other = block.clone();
                other[at] = b'x';
                assert_eq!(keys.found(Place::FIRST, &other, 0), None, "byte {at} of {length}");
            }
            keys.expect(Place::behind(0), 0).unwrap();
            assert_eq!(keys.found(Place::behind(0), &block, 0), Some((0, all, Place::behind(0))));
            keys.truncate(0);
            assert_eq!((keys.found(Place::FIRST, &block, 0), keys.found(Place::behind(0), &block, 0)), (None, None));
        }
    }

    /// Keys of all lengths around the size compared at once, each with its number, alone and followed by others in a
    /// block; dropped ones are new again.
    #[test]
    fn numbers() {
        let rules = KeyRules { max_keys: 1_000, max_key_characters: 100, ..KeyRules::default() };
        let mut keys = Keys::new([b"id".to_vec(), Vec::new()].into_iter(), &rules);
        let texts: Vec<Vec<u8>> = (1..40)
            .flat_map(|length| {
                let first = [vec![0; length], vec![b'k'; length]];
                let last = |text: &Vec<u8>| [&text[..length - 1], b"x"].concat();
                [last(&first[0]), last(&first[1]), first[1].clone(), first[0].clone()]
            })
            .collect::<BTreeSet<_>>()
            .into_iter()
            .collect();
        for _ in 0..2 {
            for (number, text) in (2..).zip(&texts) {
                let block = [text.as_slice(), b"\": \"and what is behind it\"}\n"].concat();
                assert_eq!(keys.number_in(&block, (0, text.len())), Some(number));
                assert_eq!((keys.number(text), keys.text(number)), (Some(number), text.as_slice()));
            }
            assert_eq!((keys.number(b"id"), keys.number(b""), keys.len()), (Some(0), Some(1), texts.len() + 2));
            keys.truncate(70);
            assert_eq!((keys.number(&texts[67]), keys.len()), (Some(69), 70));
            keys.truncate(2);
        }
    }

    /// After each key the next column is expected, as well as the last other key that was there.
    #[test]
    fn other_keys() {
        let mut keys = Keys::new([b"a".to_vec(), b"b".to_vec(), b"c".to_vec()].into_iter(), &KeyRules::default());
        let mut expected = |place, number| {
            keys.expect(place, number).unwrap();
            (0..3).filter(|number| keys.expects(place, *number)).collect::<Vec<_>>()
        };
        let (first, last) = (Place::FIRST, Place::behind(2));
        let found =
            [(first, 1), (first, 2), (last, 1), (last, 0), (last, 2)].map(|(place, number)| expected(place, number));
        assert_eq!(found, [vec![0, 1], vec![0, 2], vec![1], vec![0, 1], vec![1, 2]]);
        assert!(expected(Place::UNKNOWN, 0).is_empty());
    }
}
