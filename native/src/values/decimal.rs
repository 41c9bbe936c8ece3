//! Decimals: numbers stored with all of their digits.

use super::MAX_PRECISION;
use super::number::{Number, ShortNumber, Significant};

const POWERS_OF_TEN: [i128; MAX_PRECISION as usize + 1] = {
    let mut powers = [1; MAX_PRECISION as usize + 1];
    let mut exponent = 1;
    while exponent < powers.len() {
        powers[exponent] = powers[exponent - 1] * 10;
        exponent += 1;
    }
    powers
};

/// A decimal with all digits of a number; none if it has more than fit before or after the point.
///
/// # Arguments
///
/// * `precision` - 1 to 38.
/// * `scale` - 0 to `precision`.
///
/// # Returns
///
/// The unscaled value: the number times 10 to the power of `scale`.
#[must_use]
pub fn decimal(text: &[u8], precision: u8, scale: i8) -> Option<i128> {
    short(text, precision, scale).or_else(|| any(text, precision, scale))
}

/// The same for a number whose digits all fit.
#[inline]
fn short(text: &[u8], precision: u8, scale: i8) -> Option<i128> {
    let number = ShortNumber::parse(text)?;
    let zeros = usize::try_from(scale).ok()?.checked_sub(number.places)?;
    let unscaled = i128::from(number.digits).checked_mul(*POWERS_OF_TEN.get(zeros)?)?;
    let fits = unscaled < *POWERS_OF_TEN.get(usize::from(precision))?;
    fits.then_some(if number.negative { -unscaled } else { unscaled })
}

fn any(text: &[u8], precision: u8, scale: i8) -> Option<i128> {
    let number = Number::parse(text)?;
    let significant = number.significant();
    let count = significant.count();
    if count == 0 {
        return Some(0);
    }
    // Negative: there are digits after the last place.
    let zeros = usize::try_from(significant.shift + i64::from(scale)).ok()?;
    if count.checked_add(zeros)? > usize::from(precision.min(MAX_PRECISION)) {
        return None;
    }
    let unscaled = unsigned(&significant) * POWERS_OF_TEN[zeros];
    Some(if number.negative { -unscaled } else { unscaled })
}

/// The digits as a whole number; there are at most 38.
fn unsigned(significant: &Significant) -> i128 {
    significant.digits().fold(0, |value, byte| value * 10 + i128::from(byte - b'0'))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn unscaled(text: &str, precision: u8, scale: i8) -> Option<i128> {
        decimal(text.as_bytes(), precision, scale)
    }

    /// Short numbers and all others are stored alike.
    #[test]
    fn short_and_any() {
        for text in
            ["0", "-0", "0.0", "-0.00", "1", "10", "12.5", "12.50", "999.99", "-999.99", "1000", "0.001", "1.000"]
                .into_iter()
                .chain([
                    "00",
                    "01",
                    "1.",
                    ".5",
                    "-",
                    "",
                    "1.2.3",
                    "1e2",
                    "123456789012345678",
                    "1234567890123456.78",
                    "+1",
                ])
        {
            for (precision, scale) in [(1, 0), (5, 2), (9, 2), (18, 0), (38, 0), (38, 38), (20, 19)] {
                let expected = any(text.as_bytes(), precision, scale);
                assert_eq!(unscaled(text, precision, scale), expected, "{text} in {precision}, {scale}");
            }
        }
    }

    /// Decimals keep every digit or are none.
    #[test]
    fn decimals() {
        let nines = "9".repeat(38);
        let all_nines = POWERS_OF_TEN[37] * 10 - 1;
        for (text, precision, scale, expected) in [
            ("1.105", 18, 2, None),
            ("1.100", 18, 2, Some(110)),
            ("-1.1", 18, 2, Some(-110)),
            ("1e2", 18, 2, Some(10_000)),
            ("125e-2", 18, 2, Some(125)),
            ("125e-3", 18, 2, None),
            ("1200e-4", 18, 2, Some(12)),
            ("0.001e1", 18, 2, Some(1)),
            ("100", 3, 0, Some(100)),
            ("1000", 3, 0, None),
            ("9999999999999999.99", 18, 2, Some(999_999_999_999_999_999)),
            ("10000000000000000", 18, 2, None),
            (&nines, 38, 0, Some(all_nines)),
            (&format!("-0.{nines}00"), 38, 38, Some(-all_nines)),
            (&format!("{nines}9"), 38, 0, None),
            ("1", 38, 38, None),
            ("0e99999999999999999999", 1, 0, Some(0)),
            ("1e99999999999999999999", 38, 0, None),
            ("1e-99999999999999999999", 38, 38, None),
            ("1e9223372036854775807", 38, 0, None),
        ] {
            assert_eq!(unscaled(text, precision, scale), expected, "{text} {precision} {scale}");
        }
    }

    /// Zeros and exponents of any length compensate for each other.
    #[test]
    fn long_decimals() {
        let many = "0".repeat(3_000_000);
        assert_eq!(unscaled(&format!("1{many}e-3000000"), 1, 0), Some(1));
        assert_eq!(unscaled(&format!("0.{many}1e3000001"), 1, 0), Some(1));
        assert_eq!(unscaled(&format!("1.5{many}"), 2, 1), Some(15));
        assert_eq!(unscaled(&format!("1.5{many}1"), 38, 37), None);
        assert_eq!(unscaled(&format!("1e{many}1"), 2, 0), Some(10));
    }
}
