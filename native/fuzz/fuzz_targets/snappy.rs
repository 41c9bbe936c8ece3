//! Any bytes, with parts that repeat from near and far, are compressed to what another decoder reads as the same bytes.
#![no_main]

use compactor_native::snappy::{Encoder, Search, max_compressed_bytes};
use libfuzzer_sys::fuzz_target;

/// Some blocks of 64 KiB.
const MAX_BYTES: usize = 200_000;

fuzz_target!(|data: &[u8]| {
    let bytes = expanded(data);
    let mut encoder = Encoder::default();
    for search in [Search::Four, Search::Five, Search::Four] {
        let mut compressed = vec![0; max_compressed_bytes(bytes.len())];
        let length = encoder.compress(&bytes, search, &mut compressed);
        let decoded = snap::raw::Decoder::new().decompress_vec(&compressed[..length]);
        assert!(decoded.expect("it is Snappy") == bytes, "{search:?}");
    }
});

/// Steps of four bytes: some of the data as it is, or a copy of what was there before, of a length and from a distance.
fn expanded(data: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::new();
    for step in data.chunks_exact(4) {
        let length = usize::from(step[1]) << (step[0] >> 5);
        let distance = usize::from(u16::from_le_bytes([step[2], step[3]]));
        if bytes.len() + length > MAX_BYTES {
            break;
        }
        if step[0] & 1 == 0 || distance == 0 || distance > bytes.len() {
            bytes.extend_from_slice(step);
        } else {
            for _ in 0..length {
                bytes.push(bytes[bytes.len() - distance]);
            }
        }
    }
    bytes
}
