//! The keys of records: those that have a column, and those that have none.

use hashbrown::HashMap;

use crate::memory::{NoRoom, room};
use crate::strings::characters;

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
    /// The number of the key that stood at each place of the last records.
    order: Vec<u32>,
}

const NO_KEY: u32 = u32::MAX;

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
        for number in &mut self.order {
            if *number as usize >= len {
                *number = NO_KEY;
            }
        }
    }

    /// The key to be expected at a place of a record, with [`KEY_END`] behind it.
    #[inline]
    pub fn expected(&self, place: usize) -> Option<(u32, &[u8])> {
        let number = *self.order.get(place)?;
        self.texts.get(number as usize).map(|text| (number, &**text))
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
    fn expectable(&self, number: usize) -> u32 {
        if self.is_plain[number] { u32::try_from(number).unwrap_or(NO_KEY) } else { NO_KEY }
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
