//! Doubles: the nearest one to a number, however many digits and zeros it has.

use std::fmt::Write;

use super::number::{EXPONENT_LIMIT, Number};

/// Longer texts are shortened before the standard library reads them. It stops counting at an exponent of some hundred
/// thousand, which is too early for a text with as many digits that make up for it.
const DOUBLE_MAX_BYTES: usize = 4096;

/// Digits that decide which double is nearest. The middle between two neighbours has no more significant ones: 54 bits
/// times 5 to the power of 1075. Of the digits behind, all that matters is whether there are any.
const DOUBLE_MAX_DIGITS: usize = 768;

/// The double that is nearest to a number; none if the number is beyond all of them.
///
/// A number too small to be told from 0 is 0, and keeps its sign.
pub fn double(text: &[u8]) -> Option<f64> {
    let number = Number::parse(text)?;
    let nearest: f64 = if text.len() <= DOUBLE_MAX_BYTES {
        std::str::from_utf8(text).ok()?.parse().ok()?
    } else {
        shortened(&number).parse().ok()?
    };
    nearest.is_finite().then_some(nearest)
}

/// A text of bounded length that has the same nearest double.
fn shortened(number: &Number) -> String {
    let significant = number.significant();
    let mut text = String::with_capacity(DOUBLE_MAX_DIGITS + 32);
    text.push_str(if number.negative { "-0" } else { "0" });
    text.extend(significant.digits().take(DOUBLE_MAX_DIGITS).map(char::from));
    let mut shift = significant.shift;
    let count = significant.count();
    if count > DOUBLE_MAX_DIGITS {
        // The last significant digit is not 0, so something is left: one digit stands for all of it.
        text.push('1');
        shift += i64::try_from(count - DOUBLE_MAX_DIGITS - 1).unwrap_or(EXPONENT_LIMIT);
    }
    // Writing to a string does not fail.
    let _ = write!(text, "e{shift}");
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bits(text: &str) -> Option<u64> {
        double(text.as_bytes()).map(f64::to_bits)
    }

    /// Doubles are the nearest ones; a zero keeps its sign, and what is beyond the range is none.
    #[test]
    fn doubles() {
        assert_eq!(bits("1.10"), Some(1.1_f64.to_bits()));
        assert_eq!(bits("-0"), Some((-0.0_f64).to_bits()));
        assert_eq!(bits("-1e-400"), Some((-0.0_f64).to_bits()));
        assert_eq!(bits("-1e-99999999999999999999"), Some((-0.0_f64).to_bits()));
        assert_eq!(bits("0e99999999999999999999"), Some(0));
        assert_eq!(bits("1.7976931348623157e308"), Some(f64::MAX.to_bits()));
        assert_eq!(bits("5e-324"), Some(1));
        for text in ["1e400", "-1e400", "1.7976931348623159e308", "1e99999999999999999999"] {
            assert_eq!(bits(text), None, "{text}");
        }
    }

    /// A long text is read to its last digit, however far its exponent shifts it.
    #[test]
    fn long_doubles() {
        for count in [5000, 700_000, 3_000_000] {
            let many = "0".repeat(count);
            assert_eq!(bits(&format!("1{many}e-{count}")), Some(1.0_f64.to_bits()));
            assert_eq!(bits(&format!("-0.{many}1e{}", count + 1)), Some((-1.0_f64).to_bits()));
            assert_eq!(bits(&format!("-0.{many}")), Some((-0.0_f64).to_bits()));
            assert_eq!(bits(&format!("0e{many}9")), Some(0));
            assert_eq!(bits(&format!("1e{many}9")), Some(1e9_f64.to_bits()));
            assert_eq!(bits(&format!("1{many}")), None);
            // The middle between 1 and the next double: to the even one, unless a digit far behind says otherwise.
            let middle = "1.00000000000000011102230246251565404236316680908203125";
            assert_eq!(bits(&format!("{middle}{many}")), Some(1.0_f64.to_bits()));
            assert_eq!(bits(&format!("{middle}{many}1")), Some(1.0_f64.next_up().to_bits()));
        }
    }
}
