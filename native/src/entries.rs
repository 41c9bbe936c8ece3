//! One row's rescued data entries, as found in its record.

use std::hash::BuildHasher;

use hashbrown::{DefaultHashBuilder, HashTable};

use crate::memory::{NoRoom, room};
use crate::scan::Value;
use crate::strings::unescape_into;

/// A table that grew beyond this with a very wide record is dropped, so that it need not be cleared with each row.
const KEPT_CAPACITY: usize = 1024;

/// An entry's key.
#[derive(Clone, Copy, Debug)]
pub enum Key<'a> {
    /// A remembered key, by number.
    Numbered(usize),
    /// A key that is not remembered, decoded.
    Further(&'a [u8]),
}

type Span = (usize, usize);

#[derive(Clone, Copy, Debug)]
enum KeyPlace {
    Numbered(usize),
    Further(Span),
}

/// Keys with their values, decoded consecutively in `texts`.
#[derive(Debug, Default)]
pub struct Entries {
    /// There is no value if a later field of the record replaced it.
    found: Vec<(KeyPlace, Option<Span>)>,
    texts: Vec<u8>,
    /// The entries of unremembered keys, by key.
    further: HashTable<usize>,
    hasher: DefaultHashBuilder,
}

impl Entries {
    pub fn is_empty(&self) -> bool {
        self.found.is_empty()
    }

    pub fn clear(&mut self) {
        self.found.clear();
        self.texts.clear();
        if self.further.capacity() > KEPT_CAPACITY {
            self.further = HashTable::new();
        } else {
            self.further.clear();
        }
    }

    /// Adds the value of a remembered key without an entry; returns the entry's place.
    ///
    /// # Errors
    ///
    /// As for everything that adds or replaces a value: not enough memory.
    pub fn push(&mut self, number: usize, value: Value) -> Result<usize, NoRoom> {
        let value = self.write(value)?;
        room(&mut self.found, 1)?;
        self.found.push((KeyPlace::Numbered(number), value));
        Ok(self.found.len() - 1)
    }

    /// If a key occurs twice in a record, the last value counts.
    pub fn replace(&mut self, entry: usize, value: Value) -> Result<(), NoRoom> {
        self.found[entry].1 = self.write(value)?;
        Ok(())
    }

    /// Adds or replaces the value of an unremembered key, which the line has as `written`.
    pub fn rescue_further(&mut self, written: &[u8], is_escaped: bool, value: Value) -> Result<(), NoRoom> {
        let start = self.texts.len();
        room(&mut self.texts, written.len())?;
        if is_escaped {
            unescape_into(written, &mut self.texts);
        } else {
            self.texts.extend_from_slice(written);
        }
        let key = (start, self.texts.len());
        let hash = self.hasher.hash_one(&self.texts[key.0..key.1]);
        let earlier = self.further.find(hash, |entry| self.key_of(*entry) == &self.texts[key.0..key.1]).copied();
        if let Some(entry) = earlier {
            self.texts.truncate(start);
            self.replace(entry, value)?;
        } else if value == Value::Null {
            self.texts.truncate(start);
        } else {
            let value = self.write(value)?;
            room(&mut self.found, 1)?;
            self.found.push((KeyPlace::Further(key), value));
            let Self { found, texts, further, hasher } = self;
            let hash_of = |entry: &usize| hasher.hash_one(key_in(found, texts, *entry));
            further.try_reserve(1, hash_of).map_err(|_| NoRoom { bytes: found.len() * size_of::<usize>() })?;
            further.insert_unique(hash, found.len() - 1, hash_of);
        }
        Ok(())
    }

    /// The entries with a value, in the order in which their keys were found.
    pub fn present(&self) -> impl Iterator<Item = (Key<'_>, &[u8])> {
        self.found.iter().filter_map(|(key, value)| {
            let (start, end) = (*value)?;
            let key = match *key {
                KeyPlace::Numbered(number) => Key::Numbered(number),
                KeyPlace::Further((start, end)) => Key::Further(&self.texts[start..end]),
            };
            Some((key, &self.texts[start..end]))
        })
    }

    fn key_of(&self, entry: usize) -> &[u8] {
        key_in(&self.found, &self.texts, entry)
    }

    fn write(&mut self, value: Value) -> Result<Option<Span>, NoRoom> {
        let start = self.texts.len();
        // Escapes are never shorter than the decoded text.
        room(&mut self.texts, value.len())?;
        match value {
            Value::Null => return Ok(None),
            Value::Text { inner, escaped: true } => unescape_into(inner, &mut self.texts),
            Value::Source(text) | Value::Text { inner: text, .. } => self.texts.extend_from_slice(text),
        }
        Ok(Some((start, self.texts.len())))
    }
}

/// The key of an entry that is not remembered.
fn key_in<'a>(found: &[(KeyPlace, Option<Span>)], texts: &'a [u8], entry: usize) -> &'a [u8] {
    match found[entry].0 {
        KeyPlace::Further((start, end)) => &texts[start..end],
        KeyPlace::Numbered(_) => &[],
    }
}
