//! Converts lines of text to lines of JSON with a grok pattern.

mod captures;
mod decoder;
mod expansion;

pub use captures::captures;
pub use decoder::{Decoder, Fault};
pub use expansion::expand;
