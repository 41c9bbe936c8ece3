//! Numbers: as a whole number of 64 bits, else as a decimal of 38 digits, else as a double, if one of them is the number.
//! One with an exponent is a double or nothing.

use super::{Stop, Written};
use crate::memory::room;
use crate::values::number::Number;
use crate::values::{double, long};

const INT8: u8 = 3;
const INT16: u8 = 4;
const INT32: u8 = 5;
const INT64: u8 = 6;
const DOUBLE: u8 = 7;
const DECIMAL4: u8 = 8;
const DECIMAL8: u8 = 9;
const DECIMAL16: u8 = 10;

/// Beyond the digits that a decimal of 4 and of 8 bytes holds, which are the most places it may have, too: Spark reads no
/// more.
const SMALL: (i128, u8) = (1_000_000_000, 9);
const MEDIUM: (i128, u8) = (1_000_000_000_000_000_000, 18);

/// A decimal has its kind, its scale, and 16 bytes at most.
const MAX_BYTES: usize = 18;

/// Appends a number.
pub fn write(text: &[u8], out: &mut Vec<u8>) -> Written {
    room(out, MAX_BYTES)?;
    if let Some(value) = long(text) {
        write_long(value, out);
    } else if let Some((unscaled, scale)) = Number::parse(text).ok_or(Stop::Misfit)?.as_written() {
        write_decimal(unscaled, scale, out);
    } else {
        let value = double(text).filter(|value| is_same(text, *value)).ok_or(Stop::Misfit)?;
        out.push(DOUBLE << 2);
        out.extend_from_slice(&value.to_le_bytes());
    }
    Ok(())
}

fn write_long(value: i64, out: &mut Vec<u8>) {
    if let Ok(small) = i8::try_from(value) {
        out.push(INT8 << 2);
        out.extend_from_slice(&small.to_le_bytes());
    } else if let Ok(small) = i16::try_from(value) {
        out.push(INT16 << 2);
        out.extend_from_slice(&small.to_le_bytes());
    } else if let Ok(small) = i32::try_from(value) {
        out.push(INT32 << 2);
        out.extend_from_slice(&small.to_le_bytes());
    } else {
        out.push(INT64 << 2);
        out.extend_from_slice(&value.to_le_bytes());
    }
}

fn write_decimal(unscaled: i128, scale: u8, out: &mut Vec<u8>) {
    let fits = |(end, places): (i128, u8)| unscaled.abs() < end && scale <= places;
    let (kind, size) = if fits(SMALL) {
        (DECIMAL4, 4)
    } else if fits(MEDIUM) {
        (DECIMAL8, 8)
    } else {
        (DECIMAL16, 16)
    };
    out.push(kind << 2);
    out.push(scale);
    out.extend_from_slice(&unscaled.to_le_bytes()[..size]);
}

/// Whether the shortest text that means a double means the number of this text, too.
fn is_same(text: &[u8], value: f64) -> bool {
    let shortest = format!("{value:e}");
    match (Number::parse(text), Number::parse(shortest.as_bytes())) {
        (Some(left), Some(right)) => left.is_same(&right),
        _ => false,
    }
}
