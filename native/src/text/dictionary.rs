//! A column's values, each once, as written in Parquet.

use std::hash::{BuildHasher, Hasher};

use hashbrown::DefaultHashBuilder;

const LENGTH_BYTES: usize = 4;

/// Indices are 16-bit numbers.
pub const MAX_VALUES: usize = 1 << 16;

const FEWEST_SLOTS: usize = 64;

#[derive(Debug, Default)]
pub struct Dictionary {
    /// Each value after its length.
    page: Vec<u8>,
    /// The start of each value, including its length.
    starts: Vec<u32>,
    /// A power of two, at most two thirds used; a value is in the slot given by its hash, or after it.
    slots: Vec<Slot>,
    hasher: DefaultHashBuilder,
}

/// A slot for a value.
#[derive(Clone, Copy, Debug, Default)]
struct Slot {
    /// Its start after its length, which is never 0; 0 for an empty slot.
    start: u32,
    place: u16,
    /// Some bits of its hash, so that others are seldom compared with it.
    tag: u16,
}

/// A value being looked up.
#[derive(Clone, Copy, Debug, Default)]
pub struct Sought {
    hash: u64,
    /// The first slot that may be its own, as of then.
    slot: Slot,
}

/// The result for a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Placed {
    Known(u16),
    New(u16),
    /// It is new, but there is no room for it.
    NoRoom,
}

impl Dictionary {
    pub fn len(&self) -> usize {
        self.starts.len()
    }

    /// Bits of the highest index.
    pub fn width(&self) -> u32 {
        usize::BITS - self.len().saturating_sub(1).leading_zeros()
    }

    /// All values, each after its length.
    pub fn page(&self) -> &[u8] {
        &self.page
    }

    /// The start and the end of each value in the page, without its length.
    pub fn values(&self) -> impl Iterator<Item = (usize, usize)> {
        let ends = self.starts.iter().skip(1).map(|start| *start as usize).chain([self.page.len()]);
        self.starts.iter().map(|start| *start as usize + LENGTH_BYTES).zip(ends)
    }

    pub fn memory_bytes(&self) -> usize {
        self.page.capacity() + self.starts.capacity() * size_of::<u32>() + self.slots.capacity() * size_of::<Slot>()
    }

    /// Counts how many of the next values equal the only one so far. Many columns have no other.
    ///
    /// # Arguments
    ///
    /// * `values` - Each after its length.
    /// * `most` - Where to stop counting.
    ///
    /// # Returns
    ///
    /// Their number, 0 if there is not exactly one value so far; and the length of each in the page.
    pub fn same_as_only(&self, values: &[u8], most: usize) -> (usize, usize) {
        if self.len() != 1 {
            return (0, 0);
        }
        let same = values.chunks_exact(self.page.len()).take(most).take_while(|value| begins_with(&self.page, value));
        (same.count(), self.page.len())
    }

    /// Starts to look up a value. The reads of several lookups should be issued together: then the processor waits for
    /// memory once, and not for each of them.
    ///
    /// # Arguments
    ///
    /// * `value` - Without its length.
    #[inline]
    pub fn look_up(&self, value: &[u8]) -> Sought {
        let hash = hash_of(&self.hasher, value);
        let at = slot_of(hash) & self.slots.len().wrapping_sub(1);
        Sought { hash, slot: self.slots.get(at).copied().unwrap_or_default() }
    }

    /// A value's index; it is added if new.
    ///
    /// # Arguments
    ///
    /// * `value` - After its length, as in the page.
    /// * `sought` - The result of [`Self::look_up`]. It may predate the latest values: a value keeps its index.
    /// * `max_bytes` - The maximum size of the value page.
    #[inline]
    pub fn place(&mut self, value: &[u8], sought: Sought, max_bytes: usize) -> Placed {
        if self.is_in(sought.slot, value, sought.hash) {
            return Placed::Known(sought.slot.place);
        }
        self.find_or_add(value, sought.hash, max_bytes)
    }

    /// Whether a slot belongs to a value.
    #[inline]
    fn is_in(&self, slot: Slot, value: &[u8], hash: u64) -> bool {
        let has_tag = slot.tag == tag_of(hash) && slot.start != 0;
        has_tag && begins_with(&self.page[slot.start as usize - LENGTH_BYTES..], value)
    }

    fn find_or_add(&mut self, value: &[u8], hash: u64, max_bytes: usize) -> Placed {
        if self.slots.is_empty() {
            return self.add(value, hash, max_bytes);
        }
        let mask = self.slots.len() - 1;
        let mut at = slot_of(hash);
        loop {
            let slot = self.slots[at & mask];
            if slot.start == 0 {
                return self.add(value, hash, max_bytes);
            }
            if self.is_in(slot, value, hash) {
                return Placed::Known(slot.place);
            }
            at += 1;
        }
    }

    #[cold]
    fn add(&mut self, value: &[u8], hash: u64, max_bytes: usize) -> Placed {
        let begin = self.page.len();
        let (Ok(place), Ok(start)) = (u16::try_from(self.len()), u32::try_from(begin)) else {
            return Placed::NoRoom;
        };
        let end = begin + value.len();
        if end > max_bytes || u32::try_from(end).is_err() || self.len() >= MAX_VALUES {
            return Placed::NoRoom;
        }
        self.page.extend_from_slice(value);
        self.starts.push(start);
        if 3 * self.len() > 2 * self.slots.len() {
            self.spread();
        } else {
            insert(&mut self.slots, Slot { start: start + HEAD, place, tag: tag_of(hash) }, hash);
        }
        Placed::New(place)
    }

    /// Moves all values to twice as many slots.
    fn spread(&mut self) {
        let count = (2 * self.slots.len()).max(FEWEST_SLOTS);
        self.slots.clear();
        self.slots.resize(count, Slot::default());
        let ends = self.starts.iter().skip(1).copied().chain([u32::try_from(self.page.len()).unwrap_or(u32::MAX)]);
        for (place, (begin, end)) in self.starts.iter().zip(ends).enumerate() {
            let start = begin + HEAD;
            let hash = hash_of(&self.hasher, &self.page[start as usize..end as usize]);
            let place = u16::try_from(place).expect("there are 2^16 values at most");
            insert(&mut self.slots, Slot { start, place, tag: tag_of(hash) }, hash);
        }
    }
}

/// The bytes of a length.
#[allow(clippy::cast_possible_truncation)] // they are four
const HEAD: u32 = LENGTH_BYTES as u32;

/// The start of the search for a slot, limited by the number of slots.
#[inline]
#[allow(clippy::cast_possible_truncation)] // its low bits count
fn slot_of(hash: u64) -> usize {
    hash as usize
}

#[inline]
#[allow(clippy::cast_possible_truncation)] // its highest bits count, which are no others than these
fn tag_of(hash: u64) -> u16 {
    (hash >> 48) as u16
}

/// Puts a slot in its place; there is an empty one.
fn insert(slots: &mut [Slot], slot: Slot, hash: u64) {
    let mask = slots.len() - 1;
    let mut at = slot_of(hash);
    while slots[at & mask].start != 0 {
        at += 1;
    }
    slots[at & mask] = slot;
}

/// Whether some bytes start with others, which are at least as many as in a length.
///
/// Overlapping words cover all of them: so short ones take two comparisons, and no call.
#[inline]
fn begins_with(bytes: &[u8], start: &[u8]) -> bool {
    let Some(bytes) = bytes.get(..start.len()) else { return false };
    let (Some(left), Some(right)) = (bytes.last_chunk::<8>(), start.last_chunk::<8>()) else {
        return bytes.first_chunk::<LENGTH_BYTES>() == start.first_chunk::<LENGTH_BYTES>()
            && bytes.last_chunk::<LENGTH_BYTES>() == start.last_chunk::<LENGTH_BYTES>();
    };
    if left != right {
        return false;
    }
    if start.len() > MAX_WORDS_BYTES {
        return bytes == start;
    }
    let (left, _) = bytes.as_chunks::<8>();
    let (right, _) = start.as_chunks::<8>();
    left.iter().zip(right).all(|(left, right)| left == right)
}

/// Longer ones are compared by the library.
const MAX_WORDS_BYTES: usize = 40;

#[inline]
fn hash_of(hasher: &DefaultHashBuilder, value: &[u8]) -> u64 {
    let mut hasher = hasher.build_hasher();
    hasher.write(value);
    hasher.finish()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn place(dictionary: &mut Dictionary, value: &[u8], max_bytes: usize) -> Placed {
        let length = u32::try_from(value.len()).unwrap().to_le_bytes();
        let sought = dictionary.look_up(value);
        dictionary.place(&[&length, value].concat(), sought, max_bytes)
    }

    #[test]
    fn values_once() {
        let mut dictionary = Dictionary::default();
        let values = ["a", "", "a", "bc", ""];
        let placed: Vec<Placed> = values.map(|value| place(&mut dictionary, value.as_bytes(), 100)).into();
        let (new, known) = (Placed::New, Placed::Known);
        assert_eq!(placed, [new(0), new(1), known(0), new(2), known(1)]);
        assert_eq!(dictionary.page(), b"\x01\0\0\0a\0\0\0\0\x02\0\0\0bc");
        assert_eq!((dictionary.len(), dictionary.width()), (3, 2));
    }

    /// Values that differ in one byte only, of all lengths around the limits of what is compared at once.
    #[test]
    fn nearly_the_same() {
        let mut dictionary = Dictionary::default();
        let mut values = Vec::new();
        for length in 0..80 {
            values.push(vec![b'a'; length]);
            for differing in 0..length {
                let mut value = vec![b'a'; length];
                value[differing] = b'b';
                values.push(value);
            }
        }
        for round in [Placed::New, Placed::Known] {
            for (number, value) in (0_u16..).zip(&values) {
                assert_eq!(place(&mut dictionary, value, usize::MAX), round(number), "{value:?}");
            }
        }
    }

    /// No value is added beyond the limit of bytes, or the highest index; known ones are still found.
    #[test]
    fn limits() {
        let mut dictionary = Dictionary::default();
        assert_eq!(place(&mut dictionary, b"12345", 9), Placed::New(0));
        assert_eq!(place(&mut dictionary, b"", 9), Placed::NoRoom);
        assert_eq!(place(&mut dictionary, b"12345", 9), Placed::Known(0));
        let mut dictionary = Dictionary::default();
        for number in 0..=u16::MAX {
            assert_eq!(place(&mut dictionary, &number.to_le_bytes(), usize::MAX), Placed::New(number));
        }
        assert_eq!((place(&mut dictionary, b"abc", usize::MAX), dictionary.width()), (Placed::NoRoom, 16));
        assert_eq!(place(&mut dictionary, &[1, 0], usize::MAX), Placed::Known(1));
    }

    /// A value looked up before others were added, and before all were moved to new slots, is found once it exists.
    #[test]
    fn looked_up_early() {
        let mut dictionary = Dictionary::default();
        let values: Vec<Vec<u8>> =
            (0..500_u16).map(|number| [&[2, 0, 0, 0], &number.to_le_bytes()[..]].concat()).collect();
        let sought: Vec<Sought> = values.iter().map(|value| dictionary.look_up(&value[LENGTH_BYTES..])).collect();
        for placed in [Placed::New, Placed::Known] {
            for (number, (value, sought)) in (0_u16..).zip(values.iter().zip(&sought)) {
                assert_eq!(dictionary.place(value, *sought, usize::MAX), placed(number));
            }
        }
    }

    #[test]
    fn the_only_value() {
        let mut dictionary = Dictionary::default();
        let value = b"\x01\0\0\0a";
        assert_eq!(dictionary.same_as_only(value, 9), (0, 0));
        place(&mut dictionary, b"a", 100);
        let values = [&value[..], value, value, b"\x01\0\0\0b", value].concat();
        let counts = [0, 1, 2, 3, 9].map(|most| dictionary.same_as_only(&values, most));
        assert_eq!(counts, [(0, 5), (1, 5), (2, 5), (3, 5), (3, 5)]);
        assert_eq!(dictionary.same_as_only(&[255; 8], 9), (0, 5));
        place(&mut dictionary, b"b", 100);
        assert_eq!(dictionary.same_as_only(&values, 9), (0, 0));
    }

    #[test]
    fn widths() {
        let mut dictionary = Dictionary::default();
        let mut widths = vec![dictionary.width()];
        for number in 0..9_u8 {
            place(&mut dictionary, &[number], 1000);
            widths.push(dictionary.width());
        }
        assert_eq!(widths, [0, 0, 1, 2, 2, 3, 3, 3, 3, 4]);
    }
}
