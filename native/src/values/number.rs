//! Numbers by JSON's grammar, taken apart without a limit on their digits.

use super::{split_digits, split_sign};

/// Exponents are limited to this: no text is long enough to shift a number back from there.
pub const EXPONENT_LIMIT: i64 = 1_000_000_000_000_000;

/// The parts of a number.
pub struct Number<'a> {
    pub negative: bool,
    whole: &'a [u8],
    fraction: &'a [u8],
    exponent: i64,
}

/// The most digits of a short number: fewer than fit into 64 bits.
const SHORT_DIGITS: usize = 18;

/// A number of few digits without an exponent, like most.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ShortNumber {
    pub negative: bool,
    /// All of its digits as a whole number.
    pub digits: u64,
    /// How many of them are after the point.
    pub places: usize,
}

impl ShortNumber {
    /// None if it needs [`Number::parse`].
    #[inline]
    pub fn parse(text: &[u8]) -> Option<Self> {
        let (negative, rest) = split_sign(text);
        let (mut digits, mut point) = (0_u64, None);
        if rest.len() > SHORT_DIGITS {
            return None;
        }
        for (at, byte) in rest.iter().enumerate() {
            let digit = byte.wrapping_sub(b'0');
            if digit <= 9 {
                digits = digits * 10 + u64::from(digit);
            } else if *byte == b'.' && point.is_none() {
                point = Some(at);
            } else {
                return None;
            }
        }
        let whole = point.unwrap_or(rest.len());
        let places = rest.len() - whole - usize::from(point.is_some());
        let is_number = whole > 0 && (whole == 1 || rest[0] != b'0') && (point.is_none() || places > 0);
        is_number.then_some(Self { negative, digits, places })
    }
}

/// The digits of a number from the first to the last non-zero one, in two pieces.
///
/// The number is these digits as a whole number, times 10 to the power of `shift`.
pub struct Significant<'a> {
    front: &'a [u8],
    back: &'a [u8],
    pub shift: i64,
}

impl<'a> Number<'a> {
    pub fn parse(text: &'a [u8]) -> Option<Self> {
        let (negative, rest) = split_sign(text);
        let (whole, rest) = split_digits(rest);
        if whole.is_empty() || (whole[0] == b'0' && whole.len() > 1) {
            return None;
        }
        let (fraction, rest) = match rest {
            [b'.', digit, ..] if digit.is_ascii_digit() => split_digits(&rest[1..]),
            _ => (&rest[..0], rest),
        };
        let exponent = match rest {
            [] => 0,
            [b'e' | b'E', rest @ ..] => parse_exponent(rest)?,
            _ => return None,
        };
        Some(Self { negative, whole, fraction, exponent })
    }

    pub fn significant(&self) -> Significant<'a> {
        let back = trim_end(self.fraction);
        let front = if back.is_empty() { trim_end(self.whole) } else { self.whole };
        let cut = length(self.whole) - length(front);
        let shift = self.exponent - length(back) + cut;
        if self.whole == b"0" {
            let (front, back) = (&front[..0], trim_start(back));
            return Significant { front, back, shift };
        }
        Significant { front, back, shift }
    }
}

impl Significant<'_> {
    pub fn count(&self) -> usize {
        self.front.len() + self.back.len()
    }

    pub fn digits(&self) -> impl Iterator<Item = u8> {
        self.front.iter().chain(self.back).copied()
    }
}

/// The part after the e: an optional sign, and digits.
fn parse_exponent(text: &[u8]) -> Option<i64> {
    let (negative, digits) = match text {
        [b'+', rest @ ..] => (false, rest),
        _ => split_sign(text),
    };
    let (digits, rest) = split_digits(digits);
    if digits.is_empty() || !rest.is_empty() {
        return None;
    }
    let size = digits.iter().fold(0, |value, byte| EXPONENT_LIMIT.min(value * 10 + i64::from(byte - b'0')));
    Some(if negative { -size } else { size })
}

fn trim_start(digits: &[u8]) -> &[u8] {
    let zeros = digits.iter().take_while(|&&byte| byte == b'0').count();
    &digits[zeros..]
}

fn trim_end(digits: &[u8]) -> &[u8] {
    let zeros = digits.iter().rev().take_while(|&&byte| byte == b'0').count();
    &digits[..digits.len() - zeros]
}

fn length(digits: &[u8]) -> i64 {
    i64::try_from(digits.len()).unwrap_or(EXPONENT_LIMIT)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Texts that are not numbers in JSON are none, and neither is a number with anything around it.
    #[test]
    fn grammar() {
        for text in [
            "",
            "-",
            "+1",
            "01",
            "-01",
            "00",
            ".5",
            "-.5",
            "1.",
            "1.e2",
            "-1.",
            "0.",
            "1e",
            "1e+",
            "1e-",
            "1e2.0",
            "1e+-2",
            "1e 2",
            "1.0.0",
            " 1",
            "1 ",
            "1\n",
            "1d",
            "0x10",
            "NaN",
            "Infinity",
            "-inf",
            "1_0",
            "\u{661}",
            "1\u{661}",
            "1.\u{661}",
            "1e\u{661}",
        ] {
            assert!(Number::parse(text.as_bytes()).is_none(), "{text}");
        }
        for text in ["0", "-0", "0.0", "0e9", "0E+00", "-0.00e-3", "10", "-1.50", "1e05", "1.5E-999999999999999999999"]
        {
            assert!(Number::parse(text.as_bytes()).is_some(), "{text}");
        }
    }

    /// The significant digits start and end with a non-zero digit, wherever the point is.
    #[test]
    fn significant_digits() {
        for (text, expected, shift) in [
            ("1", "1", 0),
            ("1200", "12", 2),
            ("1200.0", "12", 2),
            ("10.010", "1001", -2),
            ("-0.0120e3", "12", 0),
            ("120e-1", "12", 0),
        ] {
            let significant = Number::parse(text.as_bytes()).unwrap().significant();
            let digits = significant.digits().collect::<Vec<_>>();
            assert_eq!((digits.as_slice(), significant.shift), (expected.as_bytes(), shift), "{text}");
        }
    }
}
