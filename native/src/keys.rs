//! The keys of records: those that have a column, and those that have none.

use hashbrown::HashMap;

use crate::scan::MAX_KEY_CHARACTERS;

/// Keys by number: first those of the columns, then others as they are seen.
#[derive(Debug)]
pub struct Keys {
    numbers: HashMap<Box<[u8]>, u32>,
    /// Each key, decoded, with a quote behind it.
    texts: Vec<Box<[u8]>>,
    columns: usize,
    /// The number of the key that stood at each place of the last records.
    order: Vec<u32>,
}

const NOBODY: u32 = u32::MAX;

impl Keys {
    pub fn new(columns: impl Iterator<Item = Vec<u8>>) -> Self {
        let mut keys = Self { numbers: HashMap::new(), texts: Vec::new(), columns: 0, order: Vec::new() };
        for key in columns {
            keys.add(&key);
        }
        keys.columns = keys.texts.len();
        keys.order = (0..keys.columns).map(|number| keys.expectable(number)).collect();
        keys
    }

    /// The number of a key; a new one for a key that was never seen.
    pub fn number(&mut self, key: &[u8]) -> usize {
        match self.numbers.get(key) {
            Some(number) => *number as usize,
            None => self.add(key),
        }
    }

    /// The key of a number, decoded.
    pub fn text(&self, number: usize) -> &[u8] {
        let text = &self.texts[number];
        &text[..text.len() - 1]
    }

    pub fn len(&self) -> usize {
        self.texts.len()
    }

    /// Forgets all keys from this number on.
    pub fn truncate(&mut self, len: usize) {
        for text in self.texts.drain(len..) {
            self.numbers.remove(&text[..text.len() - 1]);
        }
        for number in &mut self.order {
            if *number as usize >= len {
                *number = NOBODY;
            }
        }
    }

    /// The key to be expected at a place of a record, with the quote behind it.
    #[inline]
    pub fn expected(&self, place: usize) -> Option<(u32, &[u8])> {
        let number = *self.order.get(place)?;
        self.texts.get(number as usize).map(|text| (number, &**text))
    }

    /// Remembers which key stood at a place.
    pub fn expect(&mut self, place: usize, number: usize) {
        if place >= self.order.len() {
            self.order.resize(place + 1, NOBODY);
        }
        self.order[place] = self.expectable(number);
    }

    /// `None` for a key that must be escaped, because lines never contain it literally, and for a key that may be too
    /// long for a record, which the scan has to check.
    fn expectable(&self, number: usize) -> u32 {
        let text = self.text(number);
        let is_plain = text.iter().all(|byte| !matches!(byte, b'"' | b'\\' | 0..0x20));
        if is_plain && text.len() <= MAX_KEY_CHARACTERS { u32::try_from(number).unwrap_or(NOBODY) } else { NOBODY }
    }

    fn add(&mut self, key: &[u8]) -> usize {
        let number = self.texts.len();
        self.numbers.insert(key.into(), u32::try_from(number).expect("keys are below 2^32"));
        self.texts.push([key, b"\""].concat().into());
        number
    }
}
