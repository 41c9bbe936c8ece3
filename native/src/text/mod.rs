//! Columns of texts on their way into a row group: a text is copied from the batch into its page, or only found in the
//! dictionary, and no more is done for it than a comparison of its first bytes with the least and the greatest text.

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
