//! Text columns on their way into a row group: a text is copied from the batch to its page, or just found in the
//! dictionary; otherwise, only its first bytes are compared with the minimum and maximum text.

mod bounds;
mod dictionary;
mod hybrid;
mod page_index;
mod pages;
mod rows;
pub mod snappy;
#[cfg(test)]
mod tests;
mod writer;

pub use pages::{Compressor, is_dictionary, with_checksum};
pub use rows::TextRows;
pub use writer::{IsUsed, Limits, TextWriter, none_used};
