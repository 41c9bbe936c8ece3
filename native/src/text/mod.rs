//! Text columns on their way into a row group: a text is copied from the batch to its page, or just found in the
//! dictionary; otherwise, only its first bytes are compared with the minimum and maximum text.

mod bounds;
mod dictionary;
mod hybrid;
mod pages;
mod rows;
pub mod snappy;
#[cfg(test)]
mod tests;
mod writer;

pub use pages::Compressor;
pub use rows::TextRows;
pub use writer::{Limits, TextChunk, TextWriter};
