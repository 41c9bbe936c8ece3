//! Any bytes as a block of lines: from each place on, the end of the plain part of a string is where a search byte by
//! byte finds it, and `specials_ahead` tells of each of the bytes that follow.

#![no_main]

use compactor_native::special::{AHEAD, find_special, specials_ahead};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    // The block ends where its memory does: what is read behind it is found out.
    let block = [data, b"\n"].concat().into_boxed_slice();
    let (mut expected, mut ahead) = (data.len(), 0);
    for start in (0..block.len()).rev() {
        let is_special = block[start] == b'"' || block[start] == b'\\' || block[start] < b' ';
        if is_special {
            expected = start;
        }
        assert_eq!(find_special(&block, start), expected, "from {start}");
        ahead = ahead << 1 | u32::from(is_special);
        let may_tell = cfg!(target_arch = "x86_64") && block.len() - start >= AHEAD;
        assert_eq!(specials_ahead(&block, start), may_tell.then_some(ahead), "from {start}");
    }
});
