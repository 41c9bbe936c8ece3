//! The texts of each typed value, and the value's form in Parquet.
//!
//! The rules are exactly those of `compactor/schema/column_types.py`. Only a value's text counts, so the JSON string
//! "5" and the number 5 are the same value. Any bytes are allowed as input: invalid ones give `None`.

mod decimal;
mod double;
mod number;
mod time;

pub use decimal::decimal;
pub use double::double;
pub use time::{date, local_timestamp, nanoseconds, timestamp};

/// The most digits of a decimal: the limit of Spark, and of Parquet readers.
pub const MAX_PRECISION: u8 = 38;

/// The unit of a numeric timestamp: the time since 1970-01-01T00:00:00Z.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Epoch {
    Seconds,
    Milliseconds,
    Microseconds,
    Nanoseconds,
}

impl Epoch {
    fn parse(unit: &str) -> Option<Self> {
        Some(match unit {
            "seconds" => Self::Seconds,
            "milliseconds" => Self::Milliseconds,
            "microseconds" => Self::Microseconds,
            "nanoseconds" => Self::Nanoseconds,
            _ => return None,
        })
    }
}

/// A type that restricts its texts; every text is a string.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    Long,
    Double,
    /// `precision` digits, `scale` of them after the point.
    Decimal {
        precision: u8,
        scale: i8,
    },
    Boolean,
    Date,
    /// A number is a timestamp only if there is an epoch.
    Timestamp {
        epoch: Option<Epoch>,
    },
    /// A time without a zone, to the microsecond.
    LocalTimestamp,
    /// An instant, to the nanosecond. A number is one only if there is an epoch.
    Nanoseconds {
        epoch: Option<Epoch>,
    },
    /// The id of a document in `MongoDB`.
    ObjectId,
}

/// The digits of an [`Kind::ObjectId`].
pub const OBJECT_ID_DIGITS: usize = 24;

impl Kind {
    /// Parses a type.
    ///
    /// # Arguments
    ///
    /// * `kind` - One of long, double, decimal, boolean, date, timestamp, `timestamp_ntz`, `timestamp_ns` and objectid.
    /// * `precision`, `scale` - For a decimal; ignored for any other kind.
    /// * `epoch` - For a timestamp: the unit of its numbers; nanoseconds only for a `timestamp_ns`.
    ///
    /// # Errors
    ///
    /// There is no such type. The message has the requested type, and what was expected.
    pub fn parse(kind: &str, precision: u8, scale: i8, epoch: Option<&str>) -> Result<Self, String> {
        Self::find(kind, precision, scale, epoch).ok_or_else(|| {
            format!(
                "no type {kind} with precision {precision}, scale {scale} and epoch {}: expected long, double, \
                 decimal with 1 <= precision <= {MAX_PRECISION} and 0 <= scale <= precision, boolean, date, objectid, \
                 timestamp_ntz, or timestamp or timestamp_ns, which may have an epoch: seconds, milliseconds, \
                 microseconds, or for timestamp_ns nanoseconds",
                epoch.unwrap_or("none"),
            )
        })
    }

    fn find(kind: &str, precision: u8, scale: i8, epoch: Option<&str>) -> Option<Self> {
        Some(match (kind, epoch) {
            ("long", None) => Self::Long,
            ("double", None) => Self::Double,
            ("decimal", None) => {
                let digits = i8::try_from(precision).ok()?;
                let fits = (1..=MAX_PRECISION).contains(&precision) && (0..=digits).contains(&scale);
                fits.then_some(Self::Decimal { precision, scale })?
            }
            ("boolean", None) => Self::Boolean,
            ("date", None) => Self::Date,
            ("timestamp_ntz", None) => Self::LocalTimestamp,
            ("objectid", None) => Self::ObjectId,
            ("timestamp_ns", None) => Self::Nanoseconds { epoch: None },
            ("timestamp_ns", Some(unit)) => Self::Nanoseconds { epoch: Some(Epoch::parse(unit)?) },
            ("timestamp", None) => Self::Timestamp { epoch: None },
            ("timestamp", Some(unit)) if unit != "nanoseconds" => Self::Timestamp { epoch: Some(Epoch::parse(unit)?) },
            _ => return None,
        })
    }
}

/// The text in a number or instant of `MongoDB`'s extended JSON, such as `{"$numberLong": "5"}`, and the type to
/// read it as: a number in an instant counts milliseconds. None for any other text, and for an instant of another type.
#[must_use]
pub fn unwrapped(text: &[u8], kind: Kind) -> Option<(&[u8], Kind)> {
    let (key, value) = only_member(text)?;
    match key {
        _ if kind == Kind::ObjectId => None,
        b"$numberInt" | b"$numberLong" | b"$numberDouble" | b"$numberDecimal" => Some((quoted(value)?, kind)),
        b"$date" => {
            let epoch = Some(Epoch::Milliseconds);
            let kind = match kind {
                Kind::Timestamp { .. } => Kind::Timestamp { epoch },
                Kind::Nanoseconds { .. } => Kind::Nanoseconds { epoch },
                _ => return None,
            };
            let inner = match value {
                [b'-' | b'0'..=b'9', rest @ ..] if rest.iter().all(|byte| b"0123456789.eE+-".contains(byte)) => value,
                [b'{', ..] => quoted(only_member(value).filter(|(key, _)| key == b"$numberLong")?.1)?,
                _ => quoted(value)?,
            };
            Some((inner, kind))
        }
        _ => None,
    }
}

/// The digits of an id, in lower case: of a text, or of `MongoDB`'s extended JSON, `{"$oid": "..."}`.
#[must_use]
pub fn object_id(text: &[u8]) -> Option<[u8; OBJECT_ID_DIGITS]> {
    let digits = match only_member(text) {
        Some((b"$oid", value)) => quoted(value)?,
        _ => text,
    };
    let digits: [u8; OBJECT_ID_DIGITS] = digits.try_into().ok()?;
    digits.iter().all(u8::is_ascii_hexdigit).then(|| digits.map(|digit| digit.to_ascii_lowercase()))
}

/// The key and the value of an object with one member, whose key has no escapes; anything of an object with more.
fn only_member(text: &[u8]) -> Option<(&[u8], &[u8])> {
    let rest = without_space(text.strip_prefix(b"{")?.strip_suffix(b"}")?).strip_prefix(b"\"")?;
    let (key, rest) = rest.split_at(rest.iter().position(|byte| *byte == b'"')?);
    Some((key, without_space(without_space(&rest[1..]).strip_prefix(b":")?)))
}

/// The content of a JSON string without escapes.
fn quoted(value: &[u8]) -> Option<&[u8]> {
    let inner = value.strip_prefix(b"\"")?.strip_suffix(b"\"")?;
    (!inner.contains(&b'"') && !inner.contains(&b'\\')).then_some(inner)
}

/// JSON's white space is not ASCII's.
fn without_space(mut text: &[u8]) -> &[u8] {
    while let [b' ' | b'\t' | b'\r' | b'\n', rest @ ..] | [rest @ .., b' ' | b'\t' | b'\r' | b'\n'] = text {
        text = rest;
    }
    text
}

/// The most digits of a long; this many always fit into 64 unsigned bits.
const LONG_MAX_DIGITS: usize = 19;

/// A 64-bit integer in its only spelling: no exponent, no point, no unnecessary zero, no -0.
#[must_use]
pub fn long(text: &[u8]) -> Option<i64> {
    let (negative, digits) = split_sign(text);
    if digits.first() == Some(&b'0') {
        return (text == b"0").then_some(0);
    }
    if digits.is_empty() || digits.len() > LONG_MAX_DIGITS {
        return None;
    }
    let size = digits.iter().try_fold(0_u64, |value, byte| {
        let digit = byte.wrapping_sub(b'0');
        (digit <= 9).then(|| value * 10 + u64::from(digit))
    })?;
    if negative { 0_i64.checked_sub_unsigned(size) } else { i64::try_from(size).ok() }
}

/// `true` or `false`, with no other spelling.
#[must_use]
pub fn boolean(text: &[u8]) -> Option<bool> {
    match text {
        b"true" => Some(true),
        b"false" => Some(false),
        _ => None,
    }
}

/// Whether there is a leading minus, and the rest.
fn split_sign(text: &[u8]) -> (bool, &[u8]) {
    match text {
        [b'-', rest @ ..] => (true, rest),
        _ => (false, text),
    }
}

/// The leading ASCII digits, and the rest.
fn split_digits(text: &[u8]) -> (&[u8], &[u8]) {
    let end = text.iter().position(|byte| !byte.is_ascii_digit());
    text.split_at(end.unwrap_or(text.len()))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A long has one spelling, and ends at 64 bits.
    #[test]
    fn longs() {
        assert_eq!(long(b"0"), Some(0));
        assert_eq!(long(b"-1"), Some(-1));
        assert_eq!(long(b"9223372036854775807"), Some(i64::MAX));
        assert_eq!(long(b"-9223372036854775808"), Some(i64::MIN));
        for text in [
            "9223372036854775808",
            "-9223372036854775809",
            "9999999999999999999",
            "10000000000000000000",
            "18446744073709551617",
            "",
            "-",
            "-0",
            "00",
            "01",
            "-01",
            "+1",
            "--1",
            "1-",
            "1.0",
            "1e2",
            " 1",
            "1\n",
            "1\0",
            "\u{661}",
        ] {
            assert_eq!(long(text.as_bytes()), None, "{text}");
        }
    }

    /// Booleans are spelled as in JSON.
    #[test]
    fn booleans() {
        assert_eq!(boolean(b"true"), Some(true));
        assert_eq!(boolean(b"false"), Some(false));
        for text in [&b""[..], b"True", b"true ", b"1", b"t"] {
            assert_eq!(boolean(text), None);
        }
    }

    /// Numbers and instants of extended JSON have one member, whose value has no escapes.
    #[test]
    fn extended_json() {
        let epoch = Some(Epoch::Milliseconds);
        let (long, time) = (Kind::Long, Kind::Timestamp { epoch: None });
        let in_milliseconds = Kind::Timestamp { epoch };
        for (text, kind, expected) in [
            (r#"{"$numberLong":"5"}"#, long, Some(("5", long))),
            ("{\t\"$numberDecimal\" :\r \"1E+3\"\n}", time, Some(("1E+3", time))),
            (r#"{"$date":"2026-01-02T03:04Z"}"#, time, Some(("2026-01-02T03:04Z", in_milliseconds))),
            (r#"{"$date": {"$numberLong": "-5"}}"#, time, Some(("-5", in_milliseconds))),
            (r#"{"$date":1.5}"#, Kind::Nanoseconds { epoch: None }, Some(("1.5", Kind::Nanoseconds { epoch }))),
            (r#"{"$date":1}"#, long, None),
            (r#"{"$date":{"$numberInt":"1"}}"#, time, None),
            (r#"{"$date":2026-01-02T03:04Z}"#, time, None),
            (r#"{"$numberLong":5}"#, long, None),
            (r#"{"$numberLong":"5","a":"1"}"#, long, None),
            (r#"{"$numberLong":"\u0035"}"#, long, None),
            (r#"{"$oid":"5"}"#, long, None),
            (r#"{"$numberLong":"5"}"#, Kind::ObjectId, None),
            ("{\"$numberLong\"\u{c}:\"5\"}", long, None),
            ("{\"}", long, None),
            ("{", long, None),
            ("{}", long, None),
        ] {
            let expected = expected.map(|(inner, kind)| (inner.as_bytes(), kind));
            assert_eq!(unwrapped(text.as_bytes(), kind), expected, "{text}");
        }
    }

    /// An id has 24 digits in either case, alone or as the only member.
    #[test]
    fn object_ids() {
        let expected = Some(*b"0123456789abcdef01234567");
        for text in [
            "0123456789abcdef01234567",
            "0123456789ABCDEF01234567",
            r#"{"$oid":"0123456789abcdef01234567"}"#,
            "{ \"$oid\"\t: \"0123456789aBcdef01234567\"\n}",
        ] {
            assert_eq!(object_id(text.as_bytes()), expected, "{text}");
        }
        for text in [
            "",
            "0123456789abcdef0123456",
            "0123456789abcdef0123456g",
            "0123456789abcdef012345678",
            r#"{"$oid":"0123456789abcdef0123456"}"#,
            r#"{"$oid":0123456789abcdef01234567}"#,
            r#"{"$oid":"0123456789abcdef01234567","a":1}"#,
            r#"{"$numberLong":"012345678901234567890123"}"#,
        ] {
            assert_eq!(object_id(text.as_bytes()), None, "{text}");
        }
    }

    /// Impossible types are refused, and so is an epoch with anything but a timestamp.
    #[test]
    fn kinds() {
        let decimal = Kind::parse("decimal", 38, 38, None);
        assert_eq!(decimal, Ok(Kind::Decimal { precision: 38, scale: 38 }));
        let epoch = Some(Epoch::Seconds);
        assert_eq!(Kind::parse("timestamp", 0, 0, Some("seconds")), Ok(Kind::Timestamp { epoch }));
        for (kind, precision, scale, epoch) in [
            ("string", 0, 0, None),
            ("Long", 0, 0, None),
            ("decimal", 0, 0, None),
            ("decimal", 39, 0, None),
            ("decimal", 255, 0, None),
            ("decimal", 5, 6, None),
            ("decimal", 5, -1, None),
            ("decimal", 5, 2, Some("seconds")),
            ("timestamp", 0, 0, Some("minutes")),
            ("long", 0, 0, Some("seconds")),
        ] {
            let message = Kind::parse(kind, precision, scale, epoch).unwrap_err();
            assert!(message.starts_with(&format!("no type {kind} ")), "{message}");
        }
    }
}
