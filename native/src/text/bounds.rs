//! The minimum and maximum text of a column.

use parquet::data_type::ByteArray;
use parquet::file::statistics::ValueStatistics;

use crate::statistics::MAX_BOUND_BYTES;

/// Memory that cleared bounds keep.
const KEPT_BYTES: usize = 4 * 1024;

#[derive(Debug, Default)]
pub struct Bounds {
    /// Whether there was a text.
    is_set: bool,
    min: Vec<u8>,
    max: Vec<u8>,
    min_prefix: u64,
    max_prefix: u64,
}

impl Bounds {
    /// Takes one text into account. Most lie between the bounds by their first bytes.
    ///
    /// # Arguments
    ///
    /// * `texts` - Contains it from the first place to the second; the rest is ignored.
    #[inline]
    pub fn add(&mut self, texts: &[u8], start: usize, end: usize) {
        let prefix = prefix(texts, start, end);
        if !(self.min_prefix < prefix && prefix < self.max_prefix) {
            self.compare(&texts[start..end], prefix);
        }
    }

    /// Takes the texts of other bounds into account, and clears these others.
    pub fn take(&mut self, other: &mut Self) {
        if other.is_set {
            self.compare(&other.min, other.min_prefix);
            self.compare(&other.max, other.max_prefix);
        }
        (other.is_set, other.min_prefix, other.max_prefix) = (false, 0, 0);
        for bound in [&mut other.min, &mut other.max] {
            bound.clear();
            bound.shrink_to(KEPT_BYTES);
        }
    }

    /// The minimum and the maximum for readers: long ones are truncated, and a maximum is then rounded up. None without
    /// a text; a maximum that cannot be rounded up is missing.
    pub fn short(&self) -> Option<(&[u8], Option<Vec<u8>>)> {
        self.is_set.then(|| (cut(&self.min), rounded_up(&self.max)))
    }

    /// The footer's statistics.
    pub fn statistics(&self, nulls: u64) -> ValueStatistics<ByteArray> {
        let Some((min, max)) = self.short() else {
            return ValueStatistics::new(None, None, None, Some(nulls), false);
        };
        let (min_is_exact, max_is_exact) = (min.len() == self.min.len(), max.as_ref() == Some(&self.max));
        ValueStatistics::new(Some(min.to_vec().into()), max.map(ByteArray::from), None, Some(nulls), false)
            .with_min_is_exact(min_is_exact)
            .with_max_is_exact(max_is_exact)
    }

    pub fn memory_bytes(&self) -> usize {
        self.min.capacity() + self.max.capacity()
    }

    fn compare(&mut self, text: &[u8], prefix: u64) {
        if !self.is_set || is_less(&self.max, text) {
            replace(&mut self.max, text);
            self.max_prefix = prefix;
            if self.is_set {
                return; // texts in order, such as times, are compared once
            }
        }
        if !self.is_set || is_less(text, &self.min) {
            replace(&mut self.min, text);
            self.min_prefix = prefix;
        }
        self.is_set = true;
    }
}

/// Whether one text precedes another, word by word: most of these are short, and start alike.
#[inline]
fn is_less(left: &[u8], right: &[u8]) -> bool {
    let words = left.as_chunks::<8>().0.iter().zip(right.as_chunks::<8>().0);
    match words.into_iter().find(|(left, right)| left != right) {
        Some((left, right)) => u64::from_be_bytes(*left) < u64::from_be_bytes(*right),
        None => left < right,
    }
}

fn replace(bound: &mut Vec<u8>, text: &[u8]) {
    bound.clear();
    bound.extend_from_slice(text);
}

/// The first eight bytes as a number that sorts like the texts; a shorter text is padded with zeros.
#[inline]
fn prefix(texts: &[u8], start: usize, end: usize) -> u64 {
    if let Some(first) = texts[start..].first_chunk::<8>() {
        return u64::from_be_bytes(*first) & OF_LENGTH[(end - start).min(8)];
    }
    texts[start..end].iter().rev().fold(0, |prefix, byte| prefix >> 8 | u64::from(*byte) << 56)
}

/// For each length up to eight, a mask of the text's bits.
const OF_LENGTH: [u64; 9] = {
    let mut masks = [u64::MAX; 9];
    let mut length = 0;
    while length < 8 {
        masks[length] = !(u64::MAX >> (8 * length));
        length += 1;
    }
    masks
};

/// The first characters that fit into a bound.
fn cut(text: &[u8]) -> &[u8] {
    if text.len() <= MAX_BOUND_BYTES {
        return text;
    }
    let end = (0..=MAX_BOUND_BYTES).rfind(|end| !matches!(text[*end], 0x80..=0xBF)).unwrap_or_default();
    &text[..end]
}

/// A short text that is not less; None if there is none.
fn rounded_up(text: &[u8]) -> Option<Vec<u8>> {
    if text.len() <= MAX_BOUND_BYTES {
        return Some(text.to_vec());
    }
    let start = std::str::from_utf8(cut(text)).ok()?;
    start.char_indices().rev().find_map(|(at, character)| {
        let next = char::from_u32(u32::from(character) + 1)?;
        // A longer character might exceed the limit.
        (next.len_utf8() == character.len_utf8()).then(|| format!("{}{next}", &start[..at]).into_bytes())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bounds(texts: &[&str]) -> (Option<Vec<u8>>, Option<Vec<u8>>, bool, bool) {
        let mut bounds = Bounds::default();
        for text in texts {
            // Alone, and before others.
            bounds.add(text.as_bytes(), 0, text.len());
            bounds.add(format!("{text}zzzzzzzzz").as_bytes(), 0, text.len());
        }
        let found = bounds.statistics(0);
        let bytes = |bound: Option<&ByteArray>| bound.map(|bound| bound.data().to_vec());
        (bytes(found.min_opt()), bytes(found.max_opt()), found.min_is_exact(), found.max_is_exact())
    }

    fn short(min: &str, max: &str) -> (Option<Vec<u8>>, Option<Vec<u8>>, bool, bool) {
        (Some(min.as_bytes().to_vec()), Some(max.as_bytes().to_vec()), true, true)
    }

    /// Also if the first eight bytes are the same, or shorter texts end in zeros.
    #[test]
    fn order() {
        assert_eq!(bounds(&["b", "a", "c"]), short("a", "c"));
        assert_eq!(bounds(&["", "a"]), short("", "a"));
        assert_eq!(bounds(&[""]), short("", ""));
        assert_eq!(bounds(&["a\0", "a", "a\0\0"]), short("a", "a\0\0"));
        assert_eq!(bounds(&["\0", "", "\0\0\0\0\0\0\0\0\0"]), short("", "\0\0\0\0\0\0\0\0\0"));
        assert_eq!(bounds(&["12345678b", "12345678", "12345678a"]), short("12345678", "12345678b"));
        let long = ["b", "a", "c"].map(|end| format!("1234567812345678{end}"));
        assert_eq!(bounds(&[&long[0], &long[1], &long[2], "12345678y", "12345678x"]), short(&long[1], "12345678y"));
        assert_eq!(bounds(&["\u{10FFFF}", "\u{E000}", "é", "z"]), short("z", "\u{10FFFF}"));
    }

    #[test]
    fn nothing() {
        assert_eq!((bounds(&[]).0, bounds(&[]).1), (None, None));
    }

    /// A minimum is truncated between two characters, as is a maximum, in which the last possible character is
    /// incremented.
    #[test]
    fn long() {
        let long = format!("{}é", "a".repeat(63));
        let cut = ("a".repeat(63).into_bytes(), format!("{}b", "a".repeat(62)).into_bytes());
        assert_eq!(bounds(&[&long]), (Some(cut.0), Some(cut.1), false, false));
        let most = "\u{10FFFF}".repeat(17);
        assert_eq!(bounds(&[&most]), (Some("\u{10FFFF}".repeat(16).into_bytes()), None, false, false));
        let last = format!("x{}", "\u{10FFFF}".repeat(17));
        assert_eq!(bounds(&[&last]).1, Some(b"y".to_vec()));
        assert_eq!(bounds(&[&"é".repeat(40)]).1, Some(format!("{}ê", "é".repeat(31)).into_bytes()));
        assert_eq!(bounds(&[&format!("a{}", "\u{7F}".repeat(64))]).1, Some(b"b".to_vec()));
    }
}
