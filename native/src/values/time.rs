//! Dates and timestamps in the years 0001 to 9999, always in the Gregorian calendar.

use super::{Epoch, decimal, split_digits};

/// Enough digits for any number of seconds in these years, to the microsecond.
const EPOCH_PRECISION: u8 = 18;

/// 0001-01-01T00:00:00Z, in microseconds since 1970.
const FIRST_MICROSECOND: i64 = -62_135_596_800_000_000;

/// 9999-12-31T23:59:59.999999Z, in microseconds since 1970.
const LAST_MICROSECOND: i64 = 253_402_300_799_999_999;

/// From 0000-03-01 to 1970-01-01.
const DAYS_TO_1970: i32 = 719_468;

const MONTH_DAYS: [i32; 12] = [31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31];
const MONTHS: [&[u8; 3]; 12] =
    [b"Jan", b"Feb", b"Mar", b"Apr", b"May", b"Jun", b"Jul", b"Aug", b"Sep", b"Oct", b"Nov", b"Dec"];
const WEEKDAYS: [&[u8; 3]; 7] = [b"Mon", b"Tue", b"Wed", b"Thu", b"Fri", b"Sat", b"Sun"];
const LONG_DIGITS: u8 = 19;
const MICROSECOND_DIGITS: usize = 6;
const NANOSECOND_DIGITS: usize = 9;
const MICROSECONDS: i64 = 1_000_000;
const NANOSECONDS: i64 = 1_000_000_000;
const MINUTE_SECONDS: i64 = 60;
const HOUR_MINUTES: i64 = 60;
const DAY_MINUTES: i64 = 24 * HOUR_MINUTES;
const MAX_OFFSET_MINUTES: i64 = 18 * HOUR_MINUTES;

/// A day as `yyyy-mm-dd`.
///
/// # Returns
///
/// Days since 1970-01-01.
#[must_use]
pub fn date(text: &[u8]) -> Option<i32> {
    let &[y1, y2, y3, y4, b'-', m1, m2, b'-', d1, d2] = text else {
        return None;
    };
    let year = two_digits(y1, y2)? * 100 + two_digits(y3, y4)?;
    let (month, day) = (two_digits(m1, m2)?, two_digits(d1, d2)?);
    let month_index = usize::try_from(month - 1).ok()?;
    let leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
    let last_day = MONTH_DAYS.get(month_index)? + i32::from(month == 2 && leap);
    let real = year >= 1 && (1..=last_day).contains(&day);
    real.then(|| days_since_1970(year, month, day))
}

/// Counts from March, so that the leap day is the last day of its year.
const fn days_since_1970(year: i32, month: i32, day: i32) -> i32 {
    let (year, months) = if month > 2 { (year, month - 3) } else { (year - 1, month + 9) };
    // Months from March on have 31, 30, 31, 30, 31 days, repeatedly: 153 in five of them.
    let days = (153 * months + 2) / 5 + day - 1;
    365 * year + year / 4 - year / 100 + year / 400 + days - DAYS_TO_1970
}

/// A time with its offset from UTC; if there is an epoch, also a number.
///
/// # Returns
///
/// Microseconds since 1970-01-01T00:00:00Z. None if that is not a whole number.
#[must_use]
pub fn timestamp(text: &[u8], epoch: Option<Epoch>) -> Option<i64> {
    iso_timestamp(text)
        .or_else(|| iso_timestamp(&with_numbered_month(text)?))
        .or_else(|| i64::try_from(decimal(text, EPOCH_PRECISION, epoch?.fraction_digits(MICROSECOND_DIGITS)?)?).ok())
        .filter(|microseconds| (FIRST_MICROSECOND..=LAST_MICROSECOND).contains(microseconds))
}

/// A time without a zone.
///
/// # Returns
///
/// Microseconds since 1970-01-01T00:00:00 by the same clock. None if that is not a whole number.
#[must_use]
pub fn local_timestamp(text: &[u8]) -> Option<i64> {
    let clock = clock(text, MICROSECOND_DIGITS)?;
    clock.zone.is_empty().then(|| clock.seconds * MICROSECONDS + clock.fraction)
}

/// A time with its offset from UTC, in the years 1677 to 2262; if there is an epoch, also a number.
///
/// # Returns
///
/// Nanoseconds since 1970-01-01T00:00:00Z. None if that is not a whole number, does not fit into 64 bits, or is in the
/// years 0 or 10000 in UTC.
#[must_use]
pub fn nanoseconds(text: &[u8], epoch: Option<Epoch>) -> Option<i64> {
    iso_nanoseconds(text)
        .or_else(|| iso_nanoseconds(&with_numbered_month(text)?))
        .or_else(|| i64::try_from(decimal(text, LONG_DIGITS, epoch?.fraction_digits(NANOSECOND_DIGITS)?)?).ok())
}

fn iso_nanoseconds(text: &[u8]) -> Option<i64> {
    let clock = clock(text, NANOSECOND_DIGITS)?;
    let seconds = clock.seconds - offset_minutes(clock.zone)? * MINUTE_SECONDS;
    // The product may exceed 64 bits although the sum does not.
    let found = i128::from(seconds) * i128::from(NANOSECONDS) + i128::from(clock.fraction);
    i64::try_from(found).ok()
}

/// `yyyy-mm-ddThh:mm:ss.ffffff+hh:mm`, possibly in the years 0 or 10000 in UTC.
fn iso_timestamp(text: &[u8]) -> Option<i64> {
    let clock = clock(text, MICROSECOND_DIGITS)?;
    let seconds = clock.seconds - offset_minutes(clock.zone)? * MINUTE_SECONDS;
    Some(seconds * MICROSECONDS + clock.fraction)
}

/// The time on a clock, in any zone.
struct Clock<'a> {
    /// Since 1970-01-01T00:00:00 by this clock.
    seconds: i64,
    /// In units of the last digit.
    fraction: i64,
    /// The rest of the text.
    zone: &'a [u8],
}

/// `yyyy-mm-ddThh:mm:ss.ffffff`, with at most this many fractional digits, unless further ones are zeros. The seconds
/// and their fraction may be missing.
fn clock(text: &[u8], fraction_digits: usize) -> Option<Clock<'_>> {
    let (day, rest) = text.split_first_chunk::<10>()?;
    let &[b'T' | b' ', h1, h2, b':', m1, m2, ref rest @ ..] = rest else {
        return None;
    };
    let (hour, minute) = (two_digits(h1, h2)?, two_digits(m1, m2)?);
    let (second, (fraction, zone)) = match rest {
        &[b':', s1, s2, ref rest @ ..] => (two_digits(s1, s2)?, fraction(rest, fraction_digits)?),
        _ => (0, (0, rest)),
    };
    if hour > 23 || minute > 59 || second > 59 {
        return None;
    }
    let minutes = i64::from(date(day)?) * DAY_MINUTES + i64::from(hour) * HOUR_MINUTES + i64::from(minute);
    Some(Clock { seconds: minutes * MINUTE_SECONDS + i64::from(second), fraction, zone })
}

/// The fraction after whole seconds, if any, in units of its last digit; and the rest of the text.
fn fraction(text: &[u8], most_digits: usize) -> Option<(i64, &[u8])> {
    let [b'.', rest @ ..] = text else {
        return Some((0, text));
    };
    let (digits, rest) = split_digits(rest);
    let (kept, cut) = digits.split_at(digits.len().min(most_digits));
    if kept.is_empty() || cut.iter().any(|&digit| digit != b'0') {
        return None;
    }
    let padding = std::iter::repeat_n(&b'0', most_digits - kept.len());
    let found = kept.iter().chain(padding).fold(0, |value, digit| value * 10 + i64::from(digit - b'0'));
    Some((found, rest))
}

/// How far a clock is ahead of UTC: `Z`, or hours and optional minutes, up to 18 hours.
fn offset_minutes(text: &[u8]) -> Option<i64> {
    let (sign, hours, minutes) = match *text {
        [b'Z'] => return Some(0),
        [sign, h1, h2] => (sign, two_digits(h1, h2)?, 0),
        [sign, h1, h2, m1, m2] | [sign, h1, h2, b':', m1, m2] => (sign, two_digits(h1, h2)?, two_digits(m1, m2)?),
        _ => return None,
    };
    let size = i64::from(hours) * HOUR_MINUTES + i64::from(minutes);
    if minutes > 59 || size > MAX_OFFSET_MINUTES {
        return None;
    }
    match sign {
        b'+' => Some(size),
        b'-' => Some(-size),
        _ => None,
    }
}

impl Epoch {
    /// Digits after the point of a number that is whole in units of 10 to the power of minus `unit_digits` seconds.
    fn fraction_digits(self, unit_digits: usize) -> Option<i8> {
        let coarser = match self {
            Self::Seconds => 0,
            Self::Milliseconds => 3,
            Self::Microseconds => 6,
            Self::Nanoseconds => 9,
        };
        i8::try_from(unit_digits.checked_sub(coarser)?).ok()
    }
}

/// The form of ISO 8601 of a time in a header of mail or HTTP, or in the common log format; see
/// `compactor.schema.column_types.TIMESTAMPS_WITH_MONTHS`.
fn with_numbered_month(text: &[u8]) -> Option<Vec<u8>> {
    let (weekday, dated) = match text.split_first_chunk::<5>() {
        Some((&[a, b, c, b',', b' '], rest)) => (Some([a, b, c]), rest),
        _ => (None, text),
    };
    if weekday.is_some_and(|name| !WEEKDAYS.contains(&&name)) {
        return None;
    }
    let (day, rest) = split_digits(dated);
    let &[separator, a, b, c, second, y1, y2, y3, y4, after_year, ref rest @ ..] = rest else {
        return None;
    };
    let month = MONTHS.iter().position(|&name| *name == [a, b, c])? + 1;
    let is_common_log = separator == b'/';
    let (day, after) = match (day, separator) {
        (&[d], b' ') => ([b'0', d], b' '),
        (&[d1, d2], b' ') => ([d1, d2], b' '),
        (&[d1, d2], b'/') if weekday.is_none() => ([d1, d2], b':'),
        _ => return None,
    };
    if second != separator || after_year != after {
        return None;
    }
    let at = rest.iter().position(|&byte| byte == b' ')?;
    let (time, zone) = (&rest[..at], &rest[at + 1..]);
    let zone: &[u8] = match zone {
        [b'+' | b'-', _, _, _, _] => zone,
        b"GMT" | b"UT" | b"UTC" if !is_common_log => b"Z",
        _ => return None,
    };
    let has_seconds = time.len() == "hh:mm:ss".len();
    if !has_seconds && (is_common_log || time.len() != "hh:mm".len()) {
        return None;
    }
    let date = format!("{month:02}");
    Some([&[y1, y2, y3, y4, b'-'], date.as_bytes(), b"-", &day, b"T", time, zone].concat())
}

fn two_digits(first: u8, second: u8) -> Option<i32> {
    let (tens, ones) = (first.wrapping_sub(b'0'), second.wrapping_sub(b'0'));
    (tens <= 9 && ones <= 9).then(|| i32::from(tens * 10 + ones))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every day in the years 0001 to 9999 has its number, one more than the day before; no other day is valid.
    #[test]
    fn dates() {
        assert_eq!(date(b"0001-01-01"), Some(-719_162));
        assert_eq!(date(b"1970-01-01"), Some(0));
        assert_eq!(date(b"9999-12-31"), Some(2_932_896));
        let mut next = -719_162;
        for year in 0..10_000 {
            for (month, day) in (0..14).flat_map(|month| (0..33).map(move |day| (month, day))) {
                if let Some(found) = date(format!("{year:04}-{month:02}-{day:02}").as_bytes()) {
                    assert_eq!(found, next);
                    next += 1;
                }
            }
        }
        assert_eq!(next, 2_932_897);
        for text in [
            "",
            "0000-12-31",
            "2023-02-29",
            "1900-02-29",
            "1500-02-29",
            "2026-04-31",
            "10000-01-01",
            "2026-1-02",
            "2026/01/02",
            "20260102",
            "+026-01-02",
            "2026-01-02\n",
            " 2026-01-02",
            "\u{662}026-01-02",
        ] {
            assert_eq!(date(text.as_bytes()), None, "{text}");
        }
    }

    /// A timestamp has an offset; its seconds and their fraction may be missing.
    #[test]
    fn timestamps() {
        for (text, expected) in [
            ("1970-01-01T00:00:00Z", 0),
            ("1970-01-01 00:00Z", 0),
            ("1970-01-01T00:00:01.5+00", 1_500_000),
            ("1970-01-01T00:00:00.000001000-00:00", 1),
            ("1969-12-31T23:59:59.999999Z", -1),
            ("1970-01-01T05:30+05:30", 0),
            ("1970-01-01T00:00:00-0530", 19_800_000_000),
            ("1970-01-01T18:00:00+18", 0),
            ("1970-01-01T18:00:00+1800", 0),
            ("0001-01-01T00:00:00Z", FIRST_MICROSECOND),
            ("0001-01-01T18:00:00+18:00", FIRST_MICROSECOND),
            ("9999-12-31T23:59:59.999999Z", LAST_MICROSECOND),
        ] {
            assert_eq!(timestamp(text.as_bytes(), None), Some(expected), "{text}");
        }
        for text in [
            "",
            "1970-01-01",
            "1970-01-01T00:00:00",
            "1970-01-01t00:00:00Z",
            "1970-01-01T00:00:00z",
            "1970-01-01T00Z",
            "1970-01-01T24:00:00Z",
            "1970-01-01T00:60:00Z",
            "1970-01-01T00:00:60Z",
            "1970-01-01T00:00:00.Z",
            "1970-01-01T00:00:00.0000001Z",
            "1970-01-01T00:00.5Z",
            "1970-01-01T00:00:00,5Z",
            "1970-01-01T00:00:00 Z",
            "1970-01-01T00:00:00+18:01",
            "1970-01-01T00:00:00+19",
            "1970-01-01T00:00:00+05:60",
            "1970-01-01T00:00:00+5",
            "1970-01-01T00:00:00+05:3",
            "1970-01-01T00:00:00*05",
            "1970-01-01T00:00:00ZZ",
            "1970-01-01T00:00:00Z\n",
            "0001-01-01T00:00:00+00:01",
            "9999-12-31T23:59:59-00:01",
            "2023-02-29T00:00:00Z",
            "1767323045",
        ] {
            assert_eq!(timestamp(text.as_bytes(), Some(Epoch::Seconds).filter(|_| text.contains('-'))), None, "{text}");
        }
    }

    /// A time without a zone has no offset, and otherwise the parts of one with an offset.
    #[test]
    fn local_timestamps() {
        for (text, expected) in [
            ("1970-01-01T00:00:00", 0),
            ("1970-01-01 00:00", 0),
            ("1970-01-01 00:00:01.5", 1_500_000),
            ("1969-12-31T23:59:59.999999000", -1),
            ("0001-01-01T00:00:00", FIRST_MICROSECOND),
            ("9999-12-31T23:59:59.999999", LAST_MICROSECOND),
        ] {
            assert_eq!(local_timestamp(text.as_bytes()), Some(expected), "{text}");
        }
        for text in ["", "1970-01-01", "1970-01-01T00:00:00Z", "1970-01-01T00:00:00.0000001", "1970-01-01T00:00:00,5"] {
            assert_eq!(local_timestamp(text.as_bytes()), None, "{text}");
        }
    }

    /// Nanoseconds end at 64 bits.
    #[test]
    fn timestamps_to_the_nanosecond() {
        for (text, expected) in [
            ("1970-01-01T00:00:00.123456789Z", 123_456_789),
            ("1970-01-01 00:00Z", 0),
            ("1970-01-01T05:30:00.0000000010+05:30", 1),
            ("1969-12-31T23:59:59.999999999Z", -1),
            ("1677-09-21T00:12:43.145224192Z", i64::MIN),
            ("2262-04-11T23:47:16.854775807Z", i64::MAX),
        ] {
            assert_eq!(nanoseconds(text.as_bytes(), None), Some(expected), "{text}");
        }
        for text in [
            "1970-01-01T00:00:00.123456789",
            "1970-01-01T00:00:00.0000000001Z",
            "1677-09-21T00:12:43.145224191Z",
            "2262-04-11T23:47:16.854775808Z",
            "0001-01-01T00:00:00Z",
            "9999-12-31T23:59:59Z",
        ] {
            assert_eq!(nanoseconds(text.as_bytes(), None), None, "{text}");
        }
    }

    /// A month may have its name, as in headers and in the common log format.
    #[test]
    fn months() {
        for text in [
            "Fri, 02 Jan 2026 03:04:05 +0000",
            "2 Jan 2026 03:04:05 GMT",
            "02 Jan 2026 03:04:05 UT",
            "02 Jan 2026 04:04:05 +0100",
            "02/Jan/2026:03:04:05 +0000",
        ] {
            assert_eq!(timestamp(text.as_bytes(), None), Some(1_767_323_045_000_000), "{text}");
            assert_eq!(nanoseconds(text.as_bytes(), None), Some(1_767_323_045_000_000_000), "{text}");
        }
        for text in [
            "Fry, 02 Jan 2026 03:04:05 +0000",
            "Fri, 02/Jan/2026:03:04:05 +0000",
            "02/Jan/2026 03:04:05 +0000",
            "02/Jan/2026:03:04 +0000",
            "02/Jan/2026:03:04:05 GMT",
            "2/Jan/2026:03:04:05 +0000",
            "02 Jan 2026 03:04:05 EST",
            "02 Jan 2026 03:04:05 +00:00",
            "02 Jan 26 03:04:05 +0000",
            "31 Feb 2026 03:04:05 +0000",
            "02 jan 2026 03:04:05 +0000",
            "Fri, ",
        ] {
            assert_eq!(timestamp(text.as_bytes(), None), None, "{text}");
        }
    }

    /// Numbers of smaller units are exact, too.
    #[test]
    fn small_units() {
        let of = |text: &str, epoch| nanoseconds(text.as_bytes(), Some(epoch));
        assert_eq!(of("1544712660300000001", Epoch::Nanoseconds), Some(1_544_712_660_300_000_001));
        assert_eq!(of("1544712660300000001.5", Epoch::Nanoseconds), None);
        assert_eq!(of("9223372036854775808", Epoch::Nanoseconds), None);
        assert_eq!(of("1544712660.300000001", Epoch::Seconds), Some(1_544_712_660_300_000_001));
        assert_eq!(timestamp(b"1767323045123456", Some(Epoch::Microseconds)), Some(1_767_323_045_123_456));
        assert_eq!(timestamp(b"1767323045123456.1", Some(Epoch::Microseconds)), None);
        assert_eq!(timestamp(b"1767323045123456000", Some(Epoch::Nanoseconds)), None);
    }

    /// If a column has an epoch, a number is a timestamp if it is exact to the microsecond.
    #[test]
    fn numbers_as_timestamps() {
        let seconds = |text: &str| timestamp(text.as_bytes(), Some(Epoch::Seconds));
        let milliseconds = |text: &str| timestamp(text.as_bytes(), Some(Epoch::Milliseconds));
        assert_eq!(seconds("1.7e9"), Some(1_700_000_000_000_000));
        assert_eq!(seconds("-0.000001"), Some(-1));
        assert_eq!(seconds("1.0000001"), None);
        assert_eq!(seconds("253402300799.999999"), Some(LAST_MICROSECOND));
        assert_eq!(seconds("253402300800"), None);
        assert_eq!(seconds("1970-01-01T00:00:01Z"), Some(1_000_000));
        assert_eq!(milliseconds("1700000000123.456"), Some(1_700_000_000_123_456));
        assert_eq!(milliseconds("1.0001"), None);
        assert_eq!(milliseconds("-62135596800000"), Some(FIRST_MICROSECOND));
        assert_eq!(milliseconds("-62135596800000.001"), None);
        assert_eq!(milliseconds("01"), None);
    }
}
