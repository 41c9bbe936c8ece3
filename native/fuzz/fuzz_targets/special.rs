//! Any bytes as a block of lines: from each place on, the end of the plain part of a string is where a search byte by
//! byte finds it.

#![no_main]

use compactor_native::special::find_special;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    // The block ends where its memory does: what is read behind it is found out.
    let block = [data, b"\n"].concat().into_boxed_slice();
    let mut expected = data.len();
    for start in (0..block.len()).rev() {
        if block[start] == b'"' || block[start] == b'\\' || block[start] < b' ' {
            expected = start;
        }
        assert_eq!(find_special(&block, start), expected, "from {start}");
    }
});
