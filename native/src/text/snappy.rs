//! Compresses pages in Snappy's format, described at
//! <https://github.com/google/snappy/blob/main/format_description.txt>.
//!
//! Blocks of 64 KiB are compressed independently. For each examined place, a table has the last place with the same
//! hash; if its bytes are the same, a copy of those replaces these. Other encoders find copies in the same way, but
//! only with hashes of four bytes. Texts with few different characters, such as hexadecimal digits, often have the same
//! four bytes by chance, which gains next to nothing, takes most of the time, and slows readers even more; so hashes
//! may cover five bytes. A copy also starts as early as its bytes match. Measured on the text columns of events,
//! against the crate `snap`: the same total size, a quarter less time to compress, and a third less to decompress.
#![allow(clippy::inline_always)] // measured: 7 % less time

use super::hybrid::push_varint;

/// Bytes that are compressed independently: places in them have 16 bits.
const BLOCK_BYTES: usize = 1 << 16;

/// A block with space to read a word at its last byte.
const ROOM_BYTES: usize = BLOCK_BYTES + size_of::<u64>();

type Block = [u8; ROOM_BYTES];

/// No copy starts in the last bytes, so that words can be read after each of its first ones.
const END_BYTES: usize = 16;

/// Shorter blocks are not worth a search.
const MIN_BLOCK_BYTES: usize = 2 * END_BYTES;

const MIN_BITS: u32 = 8;
const MAX_BITS: u32 = 14;
const MAX_SLOTS: usize = 1 << MAX_BITS;

/// The shortest copy.
const MIN_COPY_BYTES: usize = 4;
/// The longest copy in one element.
const MAX_COPY_BYTES: usize = 64;
/// A copy of at most this many bytes from at most this distance takes two bytes, others take three.
const MAX_NEAR_BYTES: usize = 11;
const NEAR: usize = 1 << 11;

/// After this many failed lookups, as a power of two, the search continues in steps of two, and larger ones while it
/// keeps failing.
const PATIENCE_BITS: u32 = 5;

/// Use five bytes if a page grows by at most this fraction. One of hexadecimal digits grows by 4 %, and is then
/// decompressed in a third of the time; one of ordered times would grow by 6 % for little gain.
const LOSS_DIVISOR: usize = 24;

/// How the places of copies are found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Search {
    /// With four bytes, the shortest copy.
    Four,
    /// With five bytes, which is faster for most texts.
    Five,
}

/// Compresses, reusing its memory.
pub struct Encoder {
    /// For each hash, the last place with it.
    table: Box<[u16; MAX_SLOTS]>,
    /// A copy of a block that is not followed by others.
    last: Box<Block>,
}

/// The maximum length of compressed bytes.
#[must_use]
pub fn max_compressed_bytes(bytes: usize) -> usize {
    // The bound of Snappy's own library, far from reached: the next element may be written as a whole word.
    bytes + bytes / 6 + 32
}

impl Default for Encoder {
    fn default() -> Self {
        Self { table: boxed(), last: boxed() }
    }
}

impl Encoder {
    /// The best search for copies in bytes like these, judged by their first block; None if they are fewer.
    ///
    /// # Arguments
    ///
    /// * `compressed` - Has space for a compressed block, and is overwritten.
    pub fn best_search(&mut self, bytes: &[u8], compressed: &mut [u8]) -> Option<Search> {
        let block = bytes.first_chunk::<ROOM_BYTES>()?;
        let four = block_of::<4>(&mut self.table, block, BLOCK_BYTES, compressed, 0);
        let five = block_of::<5>(&mut self.table, block, BLOCK_BYTES, compressed, 0);
        Some(if five <= four + four / LOSS_DIVISOR { Search::Five } else { Search::Four })
    }

    /// Compresses fewer than 4 GiB.
    ///
    /// # Arguments
    ///
    /// * `compressed` - Has space for as many bytes as [`max_compressed_bytes`] returns.
    ///
    /// # Returns
    ///
    /// The length of the compressed bytes.
    pub fn compress(&mut self, bytes: &[u8], search: Search, compressed: &mut [u8]) -> usize {
        let block_of = match search {
            Search::Four => block_of::<4>,
            Search::Five => block_of::<5>,
        };
        let mut head = Vec::new();
        push_varint(&mut head, bytes.len() as u64);
        let mut end = head.len();
        compressed[..end].copy_from_slice(&head);
        let mut rest = bytes;
        while let Some(block) = rest.first_chunk::<ROOM_BYTES>() {
            end = block_of(&mut self.table, block, BLOCK_BYTES, compressed, end);
            rest = &rest[BLOCK_BYTES..];
        }
        for block in rest.chunks(BLOCK_BYTES) {
            self.last[..block.len()].copy_from_slice(block);
            end = block_of(&mut self.table, &self.last, block.len(), compressed, end);
        }
        end
    }
}

/// Compresses a block.
///
/// # Arguments
///
/// * `HASHED` - Bytes per hash.
/// * `length` - Bytes after it are ignored.
/// * `end` - The start of the compressed bytes.
///
/// # Returns
///
/// Their end.
fn block_of<const HASHED: u32>(
    table: &mut [u16; MAX_SLOTS],
    block: &Block,
    length: usize,
    compressed: &mut [u8],
    mut end: usize,
) -> usize {
    if length < MIN_BLOCK_BYTES {
        return put_literal(block, 0, length, compressed, end);
    }
    let bits = length.next_power_of_two().ilog2().clamp(MIN_BITS, MAX_BITS);
    table[..1 << bits].fill(0);
    let hash = |word: u64| hash::<HASHED>(word, bits);
    let last = length - END_BYTES;
    let (mut at, mut done) = (1, 0);
    let mut next_hash = hash(word(block, at));
    'block: loop {
        let mut looked_at = 1 << PATIENCE_BITS;
        let mut next = at;
        let (mut from, mut differing);
        loop {
            at = next;
            let slot = next_hash;
            next += looked_at >> PATIENCE_BITS;
            looked_at += looked_at >> PATIENCE_BITS;
            if next > last {
                break 'block;
            }
            next_hash = hash(word(block, next));
            from = replace(table, slot, at);
            differing = word(block, at) ^ word(block, from);
            if has_copy(differing) {
                break;
            }
        }
        let before = same_before(block, done, from, at);
        end = put_literal(block, done, at - before, compressed, end);
        let mut start = at - before;
        loop {
            let copied = at - start + same_bytes(block, length, from, at, differing);
            end = put_copy(at - from, copied, compressed, end);
            at = start + copied;
            done = at;
            if at >= last {
                break 'block;
            }
            replace(table, hash(word(block, at - 1)), at - 1);
            let here = word(block, at);
            from = replace(table, hash(here), at);
            differing = here ^ word(block, from);
            start = at;
            if !has_copy(differing) {
                break;
            }
        }
        at += 1;
        next_hash = hash(word(block, at));
    }
    put_literal(block, done, length, compressed, end)
}

#[inline(always)]
fn word(block: &Block, at: usize) -> u64 {
    u64::from_le_bytes(*block[at..].first_chunk().expect("there is room for a word behind each place"))
}

/// The highest bits of a product, most affected by the last hashed byte.
#[inline(always)]
#[allow(clippy::cast_possible_truncation)] // there are 14 bits at most
fn hash<const HASHED: u32>(word: u64, bits: u32) -> usize {
    let hashed = word << (u64::BITS - u8::BITS * HASHED);
    (hashed.wrapping_mul(0x9E37_79B1_85EB_CA87) >> (u64::BITS - bits)) as usize % MAX_SLOTS
}

/// Notes a place; returns the previous one.
#[inline(always)]
#[allow(clippy::cast_possible_truncation)] // places in a block have 16 bits
fn replace(table: &mut [u16; MAX_SLOTS], slot: usize, at: usize) -> usize {
    usize::from(std::mem::replace(&mut table[slot], at as u16))
}

/// Whether enough bytes match for a copy.
#[inline(always)]
#[allow(clippy::cast_possible_truncation)] // they are the lower half
fn has_copy(differing: u64) -> bool {
    differing as u32 == 0
}

/// How many bytes before two places match, after those already compressed.
#[inline(always)]
fn same_before(block: &Block, done: usize, from: usize, at: usize) -> usize {
    let (before_from, before_at) = (&block[..from], &block[done..at]);
    before_from.iter().rev().zip(before_at.iter().rev()).take_while(|(left, right)| left == right).count()
}

/// How many bytes from two places on match.
///
/// # Arguments
///
/// * `differing` - The bits in which their first words differ.
#[inline(always)]
fn same_bytes(block: &Block, length: usize, from: usize, at: usize, differing: u64) -> usize {
    if differing != 0 {
        return differing.trailing_zeros() as usize / 8;
    }
    let mut same = size_of::<u64>();
    while at + same + size_of::<u64>() <= length {
        let differing = word(block, at + same) ^ word(block, from + same);
        if differing != 0 {
            return same + differing.trailing_zeros() as usize / 8;
        }
        same += size_of::<u64>();
    }
    while at + same < length && block[at + same] == block[from + same] {
        same += 1;
    }
    same
}

#[inline(always)]
#[allow(clippy::cast_possible_truncation)] // lengths are shorter than a block
fn put_literal(block: &Block, start: usize, end: usize, compressed: &mut [u8], mut to: usize) -> usize {
    let length = end - start;
    match length {
        0 => return to,
        1..=60 => {
            compressed[to] = ((length - 1) << 2) as u8;
            to += 1;
            // The next element overwrites the excess.
            if is_copied(block, start, compressed, to) {
                return to + length;
            }
        }
        61..=256 => {
            compressed[to..to + 2].copy_from_slice(&[60 << 2, (length - 1) as u8]);
            to += 2;
        }
        _ => {
            let [low, high] = ((length - 1) as u16).to_le_bytes();
            compressed[to..to + 3].copy_from_slice(&[61 << 2, low, high]);
            to += 3;
        }
    }
    compressed[to..to + length].copy_from_slice(&block[start..end]);
    to + length
}

/// Copies as many bytes as a short literal may have, if there are as many on both sides: a fixed number is faster than
/// copying fewer.
#[inline(always)]
fn is_copied(block: &Block, start: usize, compressed: &mut [u8], to: usize) -> bool {
    let (from, to) = (block[start..].first_chunk::<64>(), compressed[to..].first_chunk_mut::<64>());
    let (Some(from), Some(to)) = (from, to) else { return false };
    *to = *from;
    true
}

/// A copy from this distance before it.
#[inline(always)]
#[allow(clippy::cast_possible_truncation)] // the distance is shorter than a block, lengths are checked
fn put_copy(distance: usize, mut length: usize, compressed: &mut [u8], mut to: usize) -> usize {
    let far = |bytes: usize| (distance << 8 | (bytes - 1) << 2 | 2) as u32;
    while length > MAX_COPY_BYTES {
        // The rest is long enough for a copy.
        let bytes = MAX_COPY_BYTES.min(length - MIN_COPY_BYTES);
        put_word(far(bytes), compressed, to);
        (to, length) = (to + 3, length - bytes);
    }
    // Both are computed, as processors cannot predict which one is needed.
    let near = ((distance >> 8) << 5 | (distance & 0xFF) << 8 | (length - MIN_COPY_BYTES) << 2 | 1) as u32;
    let is_near = length <= MAX_NEAR_BYTES && distance < NEAR;
    put_word(if is_near { near } else { far(length) }, compressed, to);
    to + if is_near { 2 } else { 3 }
}

/// Writes a word with an element of two or three bytes; the next one overwrites the rest.
#[inline(always)]
fn put_word(word: u32, compressed: &mut [u8], to: usize) {
    compressed[to..to + 4].copy_from_slice(&word.to_le_bytes());
}

fn boxed<T: Copy + Default, const LENGTH: usize>() -> Box<[T; LENGTH]> {
    vec![T::default(); LENGTH].into_boxed_slice().try_into().unwrap_or_else(|_| unreachable!("it has this length"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::text::tests::Random;

    /// Compresses both ways; decoders restore the original.
    #[track_caller]
    fn check(encoder: &mut Encoder, bytes: &[u8]) {
        for search in [Search::Four, Search::Five] {
            let mut compressed = vec![0xAA; max_compressed_bytes(bytes.len())];
            let length = encoder.compress(bytes, search, &mut compressed);
            let decoded = snap::raw::Decoder::new().decompress_vec(&compressed[..length]);
            assert!(decoded.unwrap() == bytes, "{} bytes, {search:?}", bytes.len());
        }
    }

    /// Around the lengths where the behaviour changes, for bytes that repeat soon, late and never.
    #[test]
    fn lengths() {
        let mut encoder = Encoder::default();
        let mut random = Random(1);
        let noise: Vec<u8> = (0..200_000).map(|_| random.below(256).try_into().unwrap()).collect();
        let near: Vec<u8> = noise.iter().map(|byte| byte % 2).collect();
        let far: Vec<u8> = [&noise[..50_000]; 4].concat();
        let same = vec![7; 200_000];
        for bytes in [noise, near, far, same] {
            let blocks = [BLOCK_BYTES, ROOM_BYTES, 2 * BLOCK_BYTES, BLOCK_BYTES + ROOM_BYTES, 3 * BLOCK_BYTES];
            let around = blocks.iter().flat_map(|length| length - 20..length + 20);
            for length in (0..300).chain(around) {
                check(&mut encoder, &bytes[..length]);
                check(&mut encoder, &bytes[bytes.len() - length..]);
            }
        }
    }

    /// Literals and copies of all lengths, from near and from far.
    #[test]
    fn elements() {
        let mut encoder = Encoder::default();
        let mut random = Random(2);
        for round in 0..300 {
            let mut bytes: Vec<u8> = Vec::new();
            while bytes.len() < 70_000 {
                let length = random.below([12, 70, 300][round % 3]);
                if bytes.is_empty() || random.below(2) == 0 {
                    bytes.extend((0..length).map(|_| u8::try_from(random.below(256)).unwrap()));
                } else {
                    let distance = 1 + random.below(bytes.len().min([60, 3_000, 65_536][round / 3 % 3]));
                    for _ in 0..length {
                        bytes.push(bytes[bytes.len() - distance]);
                    }
                }
            }
            check(&mut encoder, &bytes);
        }
    }

    /// Hardly larger than other encoders' output; the search with five bytes is chosen where it loses little.
    #[test]
    fn sizes() {
        let mut encoder = Encoder::default();
        let mut random = Random(3);
        let mut digits = |count: usize| -> String {
            (0..count).map(|_| char::from_digit(u32::try_from(random.below(16)).unwrap(), 16).unwrap()).collect()
        };
        let objects: Vec<String> = (0..2_000)
            .map(|at| {
                let (trace, tests) = (digits(24), ["badge", "find-2", "slim"][at % 3]);
                format!(
                    "{{\"trace\":\"{trace}\",\"tests\":[\"{tests}\",\"late\"],\"scroll\":0.5,\"load_ms\":[748,{at}]}}"
                )
            })
            .collect();
        let times = (0..9_000).map(|at| format!("2026-01-02T03:{:02}:{:02}Z", at / 60 % 60, at % 60));
        let (objects, times) = (objects.concat(), times.collect::<Vec<_>>().concat());
        for (text, search) in [(objects, Search::Five), (times, Search::Four)] {
            let usual = snap::raw::Encoder::new().compress_vec(text.as_bytes()).unwrap().len();
            let mut room = vec![0; max_compressed_bytes(text.len())];
            assert_eq!(encoder.best_search(text.as_bytes(), &mut room), Some(search));
            let length = encoder.compress(text.as_bytes(), search, &mut room);
            assert!(length <= usual + usual / LOSS_DIVISOR, "{length} bytes, usually {usual}");
        }
        assert_eq!(encoder.best_search(&vec![0; BLOCK_BYTES], &mut []), None);
    }

    /// The result for a block does not depend on earlier ones.
    #[test]
    fn alone() {
        let (mut used, mut random) = (Encoder::default(), Random(4));
        for _ in 0..200 {
            let bytes: Vec<u8> =
                (0..random.below(3_000)).map(|_| b'a' + u8::try_from(random.below(4)).unwrap()).collect();
            let compressed = |encoder: &mut Encoder| {
                let mut compressed = vec![0; max_compressed_bytes(bytes.len())];
                let length = encoder.compress(&bytes, Search::Five, &mut compressed);
                compressed.truncate(length);
                compressed
            };
            assert_eq!(compressed(&mut used), compressed(&mut Encoder::default()));
        }
    }
}
