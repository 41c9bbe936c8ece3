//! Lines of text to lines of JSON, by a pattern of grok.

mod captures;
mod decoder;
mod expansion;

pub use captures::captures;
pub use decoder::{Decoder, Fault};
pub use expansion::expand;
