//! The value of each type's texts, implemented a second time: it shares no code with `values`, which it verifies. The
//! rules are those of `compactor/schema/column_types.py`.

use crate::values::{Epoch, Kind};

const MICROS: i64 = 1_000_000;
const NANOS: i64 = 1_000_000_000;
const DAY_SECONDS: i64 = 86_400;
const FIRST_MICROS: i64 = -62_135_596_800_000_000;
const LAST_MICROS: i64 = 253_402_300_799_999_999;

/// Digits of a numeric timestamp.
const EPOCH_PRECISION: i64 = 18;
const LONG_DIGITS: i64 = 19;

/// Longer numbers are shortened before the library reads them.
const SHORT_NUMBER: usize = 64;

/// The digits of a number that determine its double; of further ones, only whether all are 0.
const MAX_DIGITS: usize = 800;

const SPACE: [char; 4] = [' ', '\t', '\r', '\n'];
const IN_NUMBERS: &[char] = &['0', '1', '2', '3', '4', '5', '6', '7', '8', '9', '.', 'e', 'E', '+', '-'];

const FAR_EXPONENT: i64 = 100_000_000_000;

/// No digits of a number can compensate for more digits of an exponent.
const MAX_EXPONENT_DIGITS: usize = 10;

/// A text's value in Arrow's bytes; None if it does not fit the type.
pub fn stored(text: &[u8], kind: Kind) -> Option<([u8; 16], usize)> {
    let text = std::str::from_utf8(text).ok()?;
    plain(text, kind).or_else(|| in_object(text, kind))
}

/// The value of a number or instant of `MongoDB`'s extended JSON, such as `{"$numberLong": "5"}`, from its tokens.
fn in_object(text: &str, kind: Kind) -> Option<([u8; 16], usize)> {
    if !(text.starts_with('{') && text.ends_with('}')) {
        return None;
    }
    let tokens: Vec<&str> = text.split('"').collect();
    let between: Vec<String> = tokens.iter().step_by(2).map(|part| part.replace(SPACE, "")).collect();
    let between: Vec<&str> = between.iter().map(String::as_str).collect();
    let is_plain = |key: &str| match kind {
        Kind::ObjectId => key == "$oid",
        _ => ["$numberInt", "$numberLong", "$numberDouble", "$numberDecimal"].contains(&key),
    };
    let instant = match kind {
        Kind::Timestamp { .. } => Some(Kind::Timestamp { epoch: Some(Epoch::Milliseconds) }),
        Kind::Nanoseconds { .. } => Some(Kind::Nanoseconds { epoch: Some(Epoch::Milliseconds) }),
        _ => None,
    };
    let (inner, kind) = match (&tokens[..], &between[..]) {
        ([_, key, _, value, _], ["{", ":", "}"]) if is_plain(key) => (*value, kind),
        ([_, "$date", _, value, _], ["{", ":", "}"])
        | ([_, "$date", _, "$numberLong", _, value, _], ["{", ":{", ":", "}}"]) => (*value, instant?),
        ([_, "$date", rest], ["{", _]) => {
            let number = rest.trim_matches(SPACE).strip_prefix(':')?.strip_suffix('}')?.trim_matches(SPACE);
            (Some(number).filter(|number| number.trim_matches(IN_NUMBERS).is_empty())?, instant?)
        }
        _ => return None,
    };
    if inner.contains('\\') { None } else { plain(inner, kind) }
}

fn plain(text: &str, kind: Kind) -> Option<([u8; 16], usize)> {
    match kind {
        Kind::ObjectId => {
            let is_id = text.len() == 24 && text.bytes().all(|digit| digit.is_ascii_hexdigit());
            is_id.then(|| u128::from_str_radix(text, 16).ok())?.map(|value| padded(&value.to_le_bytes()[..12]))
        }
        Kind::Long => long(text).map(|value| padded(&value.to_le_bytes())),
        Kind::Double => double(text).map(|value| padded(&value.to_bits().to_le_bytes())),
        Kind::Decimal { precision, scale } => {
            scaled(text, i64::from(precision), i64::from(scale)).map(|value| padded(&value.to_le_bytes()))
        }
        Kind::Boolean => match text {
            "true" => Some(padded(&[1])),
            "false" => Some(padded(&[0])),
            _ => None,
        },
        Kind::Date => {
            let days = date(text)?;
            i32::try_from(days).ok().map(|days| padded(&days.to_le_bytes()))
        }
        Kind::Timestamp { epoch } => {
            let micros = timestamp(text)
                .or_else(|| timestamp(&with_numbered_month(text)?))
                .or_else(|| since_epoch(text, epoch?, 6, EPOCH_PRECISION))?;
            (FIRST_MICROS..=LAST_MICROS).contains(&micros).then(|| padded(&micros.to_le_bytes()))
        }
        Kind::LocalTimestamp => {
            let (seconds, micros, "") = clock(text, 6)? else { return None };
            Some(padded(&(seconds * MICROS + micros).to_le_bytes()))
        }
        Kind::Nanoseconds { epoch } => {
            let nanos = nanoseconds(text)
                .or_else(|| nanoseconds(&with_numbered_month(text)?))
                .or_else(|| since_epoch(text, epoch?, 9, LONG_DIGITS))?;
            Some(padded(&nanos.to_le_bytes()))
        }
    }
}

/// The number of bytes of a type's stored value.
pub fn width(kind: Kind) -> usize {
    match kind {
        Kind::Long | Kind::Double | Kind::Timestamp { .. } | Kind::LocalTimestamp | Kind::Nanoseconds { .. } => 8,
        Kind::Decimal { .. } => 16,
        Kind::Boolean => 1,
        Kind::Date => 4,
        Kind::ObjectId => 12,
    }
}

fn padded(bytes: &[u8]) -> ([u8; 16], usize) {
    let mut stored = [0; 16];
    stored[..bytes.len()].copy_from_slice(bytes);
    (stored, bytes.len())
}

fn are_digits(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit())
}

/// A number with this many digits.
fn digits(text: &str, count: usize) -> Option<i64> {
    if text.len() == count && are_digits(text) { text.parse().ok() } else { None }
}

/// A number by JSON's grammar: whether it is negative, its whole digits, its fraction, and its exponent with its sign.
fn number(text: &str) -> Option<(bool, &str, &str, Option<&str>)> {
    let (is_negative, rest) = text.strip_prefix('-').map_or((false, text), |rest| (true, rest));
    let (mantissa, exponent) = match rest.split_once(['e', 'E']) {
        Some((mantissa, exponent)) => (mantissa, Some(exponent)),
        None => (rest, None),
    };
    let (whole, fraction) = match mantissa.split_once('.') {
        Some((whole, fraction)) if are_digits(fraction) => (whole, fraction),
        Some(_) => return None,
        None => (mantissa, ""),
    };
    let is_exponent = exponent.is_none_or(|text| are_digits(text.strip_prefix(['+', '-']).unwrap_or(text)));
    let is_whole = are_digits(whole) && (whole == "0" || !whole.starts_with('0'));
    (is_whole && is_exponent).then_some((is_negative, whole, fraction, exponent))
}

fn long(text: &str) -> Option<i64> {
    let (_, _, "", None) = number(text)? else { return None };
    if text == "-0" { None } else { text.parse().ok() }
}

fn double(text: &str) -> Option<f64> {
    let (is_negative, whole, fraction, exponent) = number(text)?;
    let value: f64 = if text.len() <= SHORT_NUMBER {
        text.parse().ok()?
    } else {
        // The library is exact, except where many zeros compensate for an exponent.
        let all = [whole, fraction].concat();
        let from_first = all.trim_start_matches('0');
        let kept = from_first.get(..MAX_DIGITS).unwrap_or(from_first);
        let rest = if from_first[kept.len()..].trim_end_matches('0').is_empty() { "" } else { "1" };
        let length = |text: &str| i64::try_from(text.len()).unwrap_or(i64::MAX);
        let exponent: i64 = exponent.map_or(Some(0), whole_exponent)?;
        let point = exponent + length(from_first) - length(fraction);
        format!("{}0.{kept}{rest}e{point}", if is_negative { "-" } else { "" }).parse().ok()?
    };
    Some(value).filter(|value| value.is_finite())
}

/// An exponent; with too many digits it is so large that no digits compensate, and stays so.
fn whole_exponent(text: &str) -> Option<i64> {
    let digits = text.trim_start_matches(['+', '-']).trim_start_matches('0');
    if digits.len() <= MAX_EXPONENT_DIGITS {
        return text.parse().ok();
    }
    Some(if text.starts_with('-') { -FAR_EXPONENT } else { FAR_EXPONENT })
}

/// A number with this many digits, times 10 to the power of its decimal places.
fn scaled(text: &str, precision: i64, scale: i64) -> Option<i128> {
    let (is_negative, whole, fraction, exponent) = number(text)?;
    let all = [whole, fraction].concat();
    let from_first = all.trim_start_matches('0');
    let significant = from_first.trim_end_matches('0');
    if significant.is_empty() {
        return Some(0);
    }
    let exponent = exponent.unwrap_or("0");
    if exponent.trim_start_matches(['+', '-']).trim_start_matches('0').len() > MAX_EXPONENT_DIGITS {
        return None;
    }
    let exponent: i64 = exponent.parse().ok()?;
    let length = |text: &str| i64::try_from(text.len()).unwrap_or(i64::MAX);
    let shift = exponent - length(fraction) + length(from_first) - length(significant);
    if shift < -scale || length(significant) + shift > precision - scale {
        return None;
    }
    let power = u32::try_from(shift + scale).ok()?;
    let value = significant.parse::<i128>().ok()?.checked_mul(10_i128.checked_pow(power)?)?;
    Some(if is_negative { -value } else { value })
}

/// Days since 1970.
fn date(text: &str) -> Option<i64> {
    let mut parts = text.splitn(3, '-');
    let (year, month, day) = (digits(parts.next()?, 4)?, digits(parts.next()?, 2)?, digits(parts.next()?, 2)?);
    let is_leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
    let lengths = [31, if is_leap { 29 } else { 28 }, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31];
    let before = usize::try_from(month - 1).ok().filter(|before| *before < lengths.len())?;
    if year == 0 || day == 0 || day > lengths[before] {
        return None;
    }
    let past = year - 1;
    let since_year_1 = past * 365 + past / 4 - past / 100 + past / 400;
    Some(since_year_1 - 719_162 + lengths[..before].iter().sum::<i64>() + day - 1)
}

/// Microseconds since 1970.
fn timestamp(text: &str) -> Option<i64> {
    let (local, micros, offset) = clock(text, 6)?;
    Some((local - offset_seconds(offset)?) * MICROS + micros)
}

/// Nanoseconds since 1970.
fn nanoseconds(text: &str) -> Option<i64> {
    let (local, nanos, offset) = clock(text, 9)?;
    let whole = i128::from(local - offset_seconds(offset)?) * i128::from(NANOS);
    i64::try_from(whole + i128::from(nanos)).ok()
}

/// A time of a header, or of the common log format, in the form of ISO 8601.
fn with_numbered_month(text: &str) -> Option<String> {
    let (weekday, rest) = text.split_once(", ").map_or((None, text), |(name, rest)| (Some(name), rest));
    let (moment, zone) = rest.rsplit_once(' ')?;
    let is_offset = zone.len() == 5 && zone.starts_with(['+', '-']) && are_digits(&zone[1..]);
    let (day, month, year, time) = if let Some((date, time)) =
        moment.split_once(':').filter(|(date, _)| date.contains('/'))
    {
        let [day, month, year] = date.split('/').collect::<Vec<_>>()[..] else { return None };
        let is_whole = weekday.is_none() && is_offset && day.len() == 2 && time.len() == 8;
        is_whole.then_some((day, month, year, time))?
    } else {
        let [day, month, year, time] = moment.split(' ').collect::<Vec<_>>()[..] else { return None };
        let is_weekday = weekday.is_none_or(|name| "Mon Tue Wed Thu Fri Sat Sun".split(' ').any(|each| each == name));
        let is_whole = is_weekday && matches!(day.len(), 1 | 2) && matches!(time.len(), 5 | 8);
        is_whole.then_some((day, month, year, time))?
    };
    let zone = if is_offset { zone } else { ["GMT", "UT", "UTC"].contains(&zone).then_some("Z")? };
    let names = "Jan Feb Mar Apr May Jun Jul Aug Sep Oct Nov Dec";
    let number = names.split(' ').position(|name| name == month)? + 1;
    Some(format!("{year}-{number:02}-{day:0>2}T{time}{zone}"))
}

/// The seconds since 1970 on a clock, their fraction with this many digits, and the rest of the text.
fn clock(text: &str, fraction_digits: usize) -> Option<(i64, i64, &str)> {
    let (day, time) = (text.get(..10)?, text.get(10..)?);
    let seconds = date(day)? * DAY_SECONDS;
    let time = time.strip_prefix(['T', ' '])?;
    let (clock, offset) = time.split_at(time.find(['Z', '+', '-']).unwrap_or(time.len()));
    let (clock, fraction) = match clock.split_once('.') {
        Some((clock, fraction)) if are_digits(fraction) && clock.len() == 8 => (clock, fraction),
        Some(_) => return None,
        None => (clock, "0"),
    };
    let fraction = format!("{:0<fraction_digits$}", fraction.trim_end_matches('0'));
    let mut parts = clock.split(':');
    let (hour, minute) = (digits(parts.next()?, 2)?, digits(parts.next()?, 2)?);
    let second = parts.next().map_or(Some(0), |second| digits(second, 2))?;
    if parts.next().is_some() || hour > 23 || minute > 59 || second > 59 {
        return None;
    }
    Some((seconds + hour * 3600 + minute * 60 + second, digits(&fraction, fraction_digits)?, offset))
}

/// An offset such as `Z`, `+01`, `-0130` or `+18:00`.
fn offset_seconds(text: &str) -> Option<i64> {
    if text == "Z" {
        return Some(0);
    }
    let (sign, rest) = text.strip_prefix('-').map_or((1, text.strip_prefix('+')), |rest| (-1, Some(rest)));
    let rest = rest?;
    let hours = digits(rest.get(..2)?, 2)?;
    let minutes = match rest.get(2..)? {
        "" => 0,
        minutes => digits(minutes.strip_prefix(':').unwrap_or(minutes), 2)?,
    };
    (minutes <= 59 && hours * 60 + minutes <= 18 * 60).then_some(sign * (hours * 3600 + minutes * 60))
}

/// A number since 1970, in units of 10 to the power of minus `digits` seconds.
fn since_epoch(text: &str, epoch: Epoch, digits: i64, precision: i64) -> Option<i64> {
    let own = match epoch {
        Epoch::Seconds => 0,
        Epoch::Milliseconds => 3,
        Epoch::Microseconds => 6,
        Epoch::Nanoseconds => 9,
    };
    i64::try_from(scaled(text, precision, digits - own)?).ok()
}
