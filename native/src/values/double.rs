//! Doubles: the nearest one to a number, however many digits and zeros it has.

use std::fmt::Write;

use super::number::{EXPONENT_LIMIT, Number, ShortNumber};

/// Longer texts are shortened before the standard library reads them. It stops counting at an exponent of some hundred
/// thousand, which is too early for a text with enough digits to compensate.
const DOUBLE_MAX_BYTES: usize = 4096;

/// Digits that determine the nearest double. The midpoint between two neighbours has no more significant ones: 54 bits
/// times 5 to the power of 1075. For the digits after them, all that matters is whether there are any.
const DOUBLE_MAX_DIGITS: usize = 768;

/// Whole numbers below this are exact doubles.
const EXACT_DIGITS: u64 = 1 << 53;

/// Powers of ten that are exact doubles, for as many places as a short number may have.
const EXACT_POWERS_OF_TEN: [f64; 19] =
    [1e0, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14, 1e15, 1e16, 1e17, 1e18];

/// The double nearest to a number; none if the number is beyond all of them.
///
/// A number too small to be distinguished from 0 is 0, and keeps its sign.
#[must_use]
pub fn double(text: &[u8]) -> Option<f64> {
    short(text).or_else(|| any(text))
}

/// The same for a number of few digits: both it and the power of ten are doubles, so their quotient is the nearest one.
#[inline]
#[allow(clippy::cast_precision_loss)] // none is lost
fn short(text: &[u8]) -> Option<f64> {
    let number = ShortNumber::parse(text).filter(|number| number.digits < EXACT_DIGITS)?;
    let size = number.digits as f64 / EXACT_POWERS_OF_TEN[number.places];
    Some(if number.negative { -size } else { size })
}

fn any(text: &[u8]) -> Option<f64> {
    let number = Number::parse(text)?;
    let nearest: f64 = if text.len() <= DOUBLE_MAX_BYTES {
        std::str::from_utf8(text).ok()?.parse().ok()?
    } else {
        shortened(&number).parse().ok()?
    };
    nearest.is_finite().then_some(nearest)
}

/// A text of limited length with the same nearest double.
fn shortened(number: &Number) -> String {
    let significant = number.significant();
    let mut text = String::with_capacity(DOUBLE_MAX_DIGITS + 32);
    text.push_str(if number.negative { "-0" } else { "0" });
    text.extend(significant.digits().take(DOUBLE_MAX_DIGITS).map(char::from));
    let mut shift = significant.shift;
    let count = significant.count();
    if count > DOUBLE_MAX_DIGITS {
        // The last significant digit is not 0, so there is a remainder: one digit represents all of it.
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

    /// Short numbers are the same doubles as all others.
    #[test]
    fn short_and_any() {
        let mut state = 1_u64;
        for _ in 0..20_000 {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            let digits = (state >> 11) % 10_u64.pow(u32::try_from(state >> 59).unwrap() % 17 + 1);
            let mut text = digits.to_string();
            let places = usize::try_from(state >> 8 & 0xFF).unwrap() % (text.len() + 1);
            text.insert(text.len() - places, '.');
            let text = text.trim_end_matches('.').to_owned();
            let text = if text.starts_with('.') { format!("-0{text}") } else { text };
            assert_eq!(bits(&text), any(text.as_bytes()).map(f64::to_bits), "{text}");
        }
        for text in ["0", "-0", "-0.0", "00", "1.", ".5", "-", "", "9007199254740993", "0.9007199254740993", "1.5.5"] {
            assert_eq!(bits(text), any(text.as_bytes()).map(f64::to_bits), "{text}");
        }
    }

    /// Doubles are the nearest ones; a zero keeps its sign, and numbers beyond the range are none.
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
            // The midpoint between 1 and the next double: to the even one, unless a much later digit decides.
            let middle = "1.00000000000000011102230246251565404236316680908203125";
            assert_eq!(bits(&format!("{middle}{many}")), Some(1.0_f64.to_bits()));
            assert_eq!(bits(&format!("{middle}{many}1")), Some(1.0_f64.next_up().to_bits()));
        }
    }
}
