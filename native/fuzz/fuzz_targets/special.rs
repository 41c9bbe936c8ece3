//! Any bytes as a block of lines: from each place on, the end of the plain part of a string is where a search byte by
//! byte finds it, and `specials_ahead` tells of each of the bytes that follow, and which of them are escaped.

#![no_main]

use compactor_native::special::{AHEAD, Ahead, find_special, specials_ahead};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    // The block ends where its memory does: what is read behind it is found out.
    let block = [data, b"\n"].concat().into_boxed_slice();
    let (mut expected, mut ahead) = (data.len(), Ahead::default());
    for start in (0..block.len()).rev() {
        let byte = block[start];
        if byte == b'"' || byte == b'\\' || byte < b' ' {
            expected = start;
        }
        assert_eq!(find_special(&block, start), expected, "from {start}");
        ahead = Ahead {
            quotes: ahead.quotes << 1 | u32::from(byte == b'"'),
            backslashes: ahead.backslashes << 1 | u32::from(byte == b'\\'),
            controls: ahead.controls << 1 | u32::from(byte < b' '),
        };
        let may_tell = cfg!(target_arch = "x86_64") && block.len() - start >= AHEAD;
        assert_eq!(specials_ahead(&block, start), may_tell.then_some(ahead), "from {start}");
        for is_first in [false, true] {
            assert_eq!(ahead.escaped(is_first), one_by_one(ahead.backslashes, is_first), "from {start}");
        }
    }
});

fn one_by_one(backslashes: u32, is_first: bool) -> (u32, bool) {
    let (mut escaped, mut is_escaped) = (0, is_first);
    for at in 0..AHEAD {
        let is_backslash = backslashes >> at & 1 == 1;
        escaped |= u32::from(is_escaped && !is_backslash) << at;
        is_escaped = is_backslash && !is_escaped;
    }
    (escaped, is_escaped)
}
