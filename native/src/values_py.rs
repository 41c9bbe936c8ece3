//! The type rules for Python, which compares them with its own.

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

use crate::values::{self, Kind};

/// A value in Parquet's form.
#[derive(IntoPyObject)]
pub enum Stored {
    Integer(i128),
    Float(f64),
    Boolean(bool),
    Text(String),
}

/// The stored form of a text's value; None if it does not fit the type.
///
/// # Arguments
///
/// * `text` - Any bytes.
/// * `kind` - long, double, decimal, boolean, date, timestamp, `timestamp_ntz`, `timestamp_ns` or objectid.
/// * `precision`, `scale` - For a decimal: its digits, and how many of them are after the point.
/// * `epoch` - For a timestamp: the unit of numbers, seconds or milliseconds, if they are allowed.
///
/// # Returns
///
/// For a decimal the unscaled value; for a date the days, for a timestamp the microseconds since 1970, for a
/// `timestamp_ns` the nanoseconds.
///
/// # Errors
///
/// `ValueError`: there is no such type.
#[pyfunction]
#[pyo3(signature = (text, kind, precision=0, scale=0, epoch=None))]
pub fn typed_value(text: &[u8], kind: &str, precision: u8, scale: i8, epoch: Option<&str>) -> PyResult<Option<Stored>> {
    let kind = Kind::parse(kind, precision, scale, epoch).map_err(PyValueError::new_err)?;
    Ok(stored(text, kind).or_else(|| values::unwrapped(text, kind).and_then(|(inner, kind)| stored(inner, kind))))
}

fn stored(text: &[u8], kind: Kind) -> Option<Stored> {
    match kind {
        Kind::Long => values::long(text).map(|value| Stored::Integer(value.into())),
        Kind::Double => values::double(text).map(Stored::Float),
        Kind::Decimal { precision, scale } => values::decimal(text, precision, scale).map(Stored::Integer),
        Kind::Boolean => values::boolean(text).map(Stored::Boolean),
        Kind::Date => values::date(text).map(|days| Stored::Integer(days.into())),
        Kind::Timestamp { epoch } => {
            values::timestamp(text, epoch).map(|microseconds| Stored::Integer(microseconds.into()))
        }
        Kind::LocalTimestamp => values::local_timestamp(text).map(|microseconds| Stored::Integer(microseconds.into())),
        Kind::Nanoseconds { epoch } => {
            values::nanoseconds(text, epoch).map(|nanoseconds| Stored::Integer(nanoseconds.into()))
        }
        Kind::ObjectId => {
            values::object_id(text).map(|digits| Stored::Text(String::from_utf8_lossy(&digits).into_owned()))
        }
    }
}
