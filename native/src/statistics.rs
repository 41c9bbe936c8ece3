//! Minima and maxima as readers need them: short, and in an order known to all of them.

use parquet::basic::BoundaryOrder::UNORDERED;
use parquet::basic::Type;
use parquet::data_type::ByteArray;
use parquet::errors::{ParquetError, Result};
use parquet::file::metadata::ColumnIndexBuilder;
use parquet::file::page_index::column_index::ColumnIndexMetaData;
use parquet::file::statistics::{Statistics, ValueStatistics};
use parquet::schema::types::SchemaDescriptor;

/// Bytes of a minimum or maximum in the footer. Longer ones are truncated, and a maximum is rounded up.
pub const MAX_BOUND_BYTES: usize = 64;

/// The footer length and the magic word, at the end of the file.
const END_BYTES: usize = 8;

/// Thrift's compact encoding of the two column orders: a union of empty structs, by number.
const ORDER_OF_TYPE: [u8; 3] = [0x1C, 0, 0];
const TOTAL_ORDER: [u8; 3] = [0x2C, 0, 0];

/// A column's statistics, if they have to differ: limited, and for doubles in the form required by Parquet's type-defined
/// order.
pub fn readable(statistics: Option<&Statistics>) -> Option<Statistics> {
    match statistics {
        Some(Statistics::ByteArray(found)) => short(found).map(Statistics::ByteArray),
        Some(Statistics::Double(found)) => Some(Statistics::Double(with_both_zeros(found))),
        _ => None,
    }
}

/// The same for the bounds of a column's pages. Those of texts are omitted: a long maximum would stay whole.
///
/// # Errors
///
/// The index has bounds of another type, which would be a fault in this module.
pub fn readable_index(index: Option<&ColumnIndexMetaData>) -> Result<Option<ColumnIndexMetaData>> {
    match index {
        Some(ColumnIndexMetaData::BYTE_ARRAY(_)) | None => Ok(None),
        Some(ColumnIndexMetaData::DOUBLE(found)) => {
            let mut builder = ColumnIndexBuilder::new(Type::DOUBLE);
            let bytes = |bound: Option<f64>| bound.map_or_else(Vec::new, |value| value.to_le_bytes().to_vec());
            for page in 0..found.min_values().len() {
                let (min, max) = both_zeros(found.min_value(page), found.max_value(page));
                let nulls = found.null_count(page).unwrap_or_default();
                let nans = Some(found.nan_count(page).unwrap_or_default());
                builder.append(found.is_null_page(page), bytes(min), bytes(max), nulls, nans);
            }
            builder.set_boundary_order(index.and_then(ColumnIndexMetaData::get_boundary_order).unwrap_or(UNORDERED));
            builder.build().map(Some)
        }
        other => Ok(other.cloned()),
    }
}

/// Omits a long maximum; nothing remains if there is none. One without a character that can be incremented, such as
/// `U+10FFFF`, stays whole when others are truncated, and a file could consist mostly of footer. Readers treat a
/// missing one as unknown.
fn short(found: &ValueStatistics<ByteArray>) -> Option<ValueStatistics<ByteArray>> {
    found.max_opt().filter(|max| max.len() > MAX_BOUND_BYTES)?;
    let (nulls, distinct) = (found.null_count_opt(), found.distinct_count());
    let statistics = ValueStatistics::new(found.min_opt().cloned(), None, distinct, nulls, false);
    Some(statistics.with_min_is_exact(found.min_is_exact()))
}

fn with_both_zeros(found: &ValueStatistics<f64>) -> ValueStatistics<f64> {
    let (min, max) = both_zeros(found.min_opt(), found.max_opt());
    ValueStatistics::new(min, max, found.distinct_count(), found.null_count_opt(), false)
        .with_nan_count(found.nan_count_opt())
}

/// A minimum of 0 becomes -0, and a maximum of -0 becomes 0, because the two are equal in this order. No value is NaN.
fn both_zeros(min: Option<&f64>, max: Option<&f64>) -> (Option<f64>, Option<f64>) {
    let zero = |bound: Option<&f64>, zero: f64| bound.map(|value| if *value == 0.0 { zero } else { *value });
    (zero(min, -0.0), zero(max, 0.0))
}

/// Declares in a footer that doubles have their type-defined order. The Parquet writer only supports IEEE 754's total
/// order for them, which most readers do not: they would ignore the minima and maxima.
///
/// # Arguments
///
/// * `file` - The file, or its end with the whole footer. The column orders are the footer's last field.
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
