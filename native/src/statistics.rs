//! Minima and maxima as readers need them: short, and in an order that all of them know.

use parquet::arrow::arrow_writer::ArrowColumnChunk;
use parquet::basic::Type;
use parquet::data_type::ByteArray;
use parquet::errors::{ParquetError, Result};
use parquet::file::statistics::{Statistics, ValueStatistics};
use parquet::schema::types::SchemaDescriptor;

/// Bytes of a minimum or maximum in the footer. Longer ones are cut, a maximum is rounded up besides.
pub const MAX_BOUND_BYTES: usize = 64;

/// The length of the footer's length and of the magic word, which end the file.
const END_BYTES: usize = 8;

/// How Thrift's compact protocol writes the two orders of a column: a union of empty structs, by number.
const ORDER_OF_TYPE: [u8; 3] = [0x1C, 0, 0];
const TOTAL_ORDER: [u8; 3] = [0x2C, 0, 0];

/// Bounds the statistics of a column, and gives those of doubles the form that Parquet's order of the type demands.
///
/// # Errors
///
/// The statistics do not belong to the column, which would be a fault of this module.
pub fn readable(mut chunk: ArrowColumnChunk) -> Result<ArrowColumnChunk> {
    let metadata = &chunk.close().metadata;
    let statistics = match metadata.statistics() {
        Some(Statistics::ByteArray(found)) => short(found).map(Statistics::ByteArray),
        Some(Statistics::Double(found)) => Some(Statistics::Double(with_both_zeros(found))),
        _ => None,
    };
    if let Some(statistics) = statistics {
        let builder = metadata.clone().into_builder();
        chunk.close_mut().metadata = builder.set_statistics(statistics).build()?;
    }
    Ok(chunk)
}

/// Leaves a long maximum out; nothing if there is none. One of which no character can be counted up, such as `U+10FFFF`,
/// is whole when others are cut, and a file could consist of footer. Readers take none for "not known".
fn short(found: &ValueStatistics<ByteArray>) -> Option<ValueStatistics<ByteArray>> {
    found.max_opt().filter(|max| max.len() > MAX_BOUND_BYTES)?;
    let (nulls, distinct) = (found.null_count_opt(), found.distinct_count());
    let statistics = ValueStatistics::new(found.min_opt().cloned(), None, distinct, nulls, false);
    Some(statistics.with_min_is_exact(found.min_is_exact()))
}

/// A minimum of 0 becomes -0, and a maximum of -0 becomes 0, for the two are equal in this order. No value is NaN.
fn with_both_zeros(found: &ValueStatistics<f64>) -> ValueStatistics<f64> {
    let zero = |bound: Option<&f64>, zero: f64| bound.map(|value| if *value == 0.0 { zero } else { *value });
    let (min, max) = (zero(found.min_opt(), -0.0), zero(found.max_opt(), 0.0));
    ValueStatistics::new(min, max, found.distinct_count(), found.null_count_opt(), false)
        .with_nan_count(found.nan_count_opt())
}

/// Declares in a footer that doubles are in the order of their type. The writer of Parquet knows only IEEE 754's total
/// order for them, which most readers do not: they ignore the minima and maxima then.
///
/// # Arguments
///
/// * `file` - The file, or its end with the whole footer. The orders of the columns are the last field of the footer.
///
/// # Errors
///
/// The footer does not end as this version of the writer ends it.
pub fn declare_order_of_type(file: &mut [u8], schema: &SchemaDescriptor) -> Result<()> {
    let fault = || ParquetError::General("a footer that does not end with the orders of its columns".to_owned());
    let orders_bytes = schema.num_columns() * ORDER_OF_TYPE.len();
    let end = file.len().checked_sub(END_BYTES + 1).filter(|end| file[*end] == 0).ok_or_else(fault)?;
    let start = end.checked_sub(orders_bytes).ok_or_else(fault)?;
    for (order, column) in file[start..end].chunks_exact_mut(ORDER_OF_TYPE.len()).zip(schema.columns()) {
        let expected = if column.physical_type() == Type::DOUBLE { TOTAL_ORDER } else { ORDER_OF_TYPE };
        if *order != expected {
            return Err(fault());
        }
        order.copy_from_slice(&ORDER_OF_TYPE);
    }
    Ok(())
}
