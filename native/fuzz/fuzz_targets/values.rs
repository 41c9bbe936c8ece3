//! Any text as a value of each type: it is the value that other libraries have it for, or none; and each value is itself
//! in every spelling. A timestamp that they do not read is only compared with its own spelling.

#![no_main]

use chrono::{DateTime, Datelike, FixedOffset, NaiveDate, SecondsFormat, TimeDelta};
use compactor_native::Epoch;
use compactor_native::values::{boolean, date, decimal, double, long, timestamp};
use libfuzzer_sys::fuzz_target;
use serde_json::Number;

const MAX_OFFSET_SECONDS: i32 = 18 * 60 * 60;

fuzz_target!(|data: &[u8]| {
    let Some((&[precision, scale], text)) = data.split_first_chunk() else { return };
    let precision = precision % 38 + 1;
    let scale = scale % (precision + 1);
    numbers(text, precision, scale);
    assert_eq!(
        boolean(text),
        serde_json::from_slice(text).ok().filter(|found: &bool| *text == *found.to_string().as_bytes())
    );
    assert_eq!(date(text), str::from_utf8(text).ok().and_then(day));
    times(text);
    if let Some(first) = text.first_chunk() {
        let most = MAX_OFFSET_SECONDS / 60;
        let drawn = i32::from(u16::from_le_bytes([precision, text[text.len() - 1]]));
        spellings(u64::from_le_bytes(*first), drawn % (2 * most + 1) - most);
    }
});

fn numbers(text: &[u8], precision: u8, scale: u8) {
    // The parser takes white space around a number, and objects of its own kind for one.
    let is_bare = text.first().is_some_and(|byte| *byte == b'-' || byte.is_ascii_digit());
    let number: Option<Number> =
        serde_json::from_slice(text).ok().filter(|_| is_bare && text.trim_ascii_end().len() == text.len());
    let whole: Option<i64> = number.as_ref().and_then(|number| number.as_str().parse().ok());
    assert_eq!(long(text), whole.filter(|whole| whole.to_string().as_bytes() == text));
    let real: Option<f64> =
        number.as_ref().and_then(|number| number.as_str().parse().ok()).filter(|real: &f64| real.is_finite());
    assert_eq!(double(text).map(f64::to_bits), real.map(f64::to_bits));
    let digits = number.and_then(|number| unscaled(number.as_str(), precision.into(), scale.into()));
    assert_eq!(decimal(text, precision, scale.cast_signed()), digits);
}

/// A number times 10 to the power of the scale, by its digits one by one.
fn unscaled(number: &str, precision: usize, scale: i64) -> Option<i128> {
    let (mantissa, exponent) = number.split_once(['e', 'E']).unwrap_or((number, "0"));
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let mut digits = [whole.trim_start_matches('-'), fraction].concat();
    if digits.bytes().all(|digit| digit == b'0') {
        return Some(0);
    }
    // No text of a fuzzer is so long that its digits would make up for more.
    let exponent: i64 = exponent.parse().unwrap_or(if exponent.starts_with('-') { i64::MIN / 2 } else { i64::MAX / 2 });
    let mut shift = exponent.saturating_sub(i64::try_from(fraction.len()).ok()?).saturating_add(scale);
    while shift < 0 && digits.ends_with('0') {
        digits.pop();
        shift += 1;
    }
    if !(0..=38).contains(&shift) {
        return None;
    }
    digits.extend(std::iter::repeat_n('0', usize::try_from(shift).ok()?));
    let digits = digits.trim_start_matches('0');
    let size: i128 = if digits.len() > precision { return None } else { digits.parse().ok()? };
    Some(if number.starts_with('-') { -size } else { size })
}

fn day(text: &str) -> Option<i32> {
    let found = NaiveDate::parse_from_str(text, "%Y-%m-%d").ok()?;
    let is_plain = (1..=9999).contains(&found.year()) && found.format("%Y-%m-%d").to_string() == text;
    is_plain.then(|| found.to_epoch_days())
}

fn times(text: &[u8]) {
    let found = timestamp(text, None);
    if let Some(micros) = found {
        let time = DateTime::from_timestamp_micros(micros).expect("years up to 9999");
        assert!((1..=9999).contains(&time.year()));
        assert_eq!(timestamp(time.to_rfc3339().as_bytes(), None), found);
    }
    // What the parser has beyond these: a small t or z, other minus signs, leap seconds, more digits, and larger offsets.
    let other =
        str::from_utf8(text).ok().filter(|text| text.is_ascii() && !text.contains(['t', 'z']) && !text.contains(":60"));
    if let Some(time) = other.and_then(|text| DateTime::parse_from_rfc3339(text).ok()) {
        let is_exact =
            time.timestamp_subsec_nanos() % 1000 == 0 && time.offset().local_minus_utc().abs() <= MAX_OFFSET_SECONDS;
        if is_exact
            && text.len() < 30
            && (1..=9999).contains(&time.year())
            && (1..=9999).contains(&time.to_utc().year())
        {
            assert_eq!(found, Some(time.timestamp_micros()));
        }
    }
    for (epoch, scale) in [(Epoch::Seconds, 6), (Epoch::Milliseconds, 3), (Epoch::Microseconds, 0)] {
        let number = decimal(text, 18, scale).and_then(|micros| i64::try_from(micros).ok());
        let time = number.and_then(DateTime::from_timestamp_micros).filter(|time| (1..=9999).contains(&time.year()));
        assert_eq!(timestamp(text, Some(epoch)), found.or(time.map(|time| time.timestamp_micros())));
    }
}

/// Numbers, days and times in their spellings are what they were.
fn spellings(bits: u64, offset_minutes: i32) {
    let number = bits.cast_signed();
    assert_eq!(long(number.to_string().as_bytes()), Some(number));
    let real = f64::from_bits(bits);
    assert_eq!(double(format!("{real:?}").as_bytes()), Some(real).filter(|real| real.is_finite()));
    assert_eq!(decimal(format!("{number}e-19").as_bytes(), 38, 19), Some(number.into()));
    let Some(time) = DateTime::from_timestamp_micros(number % 253_402_300_800_000_000) else { return };
    let Some(offset) = FixedOffset::east_opt(offset_minutes * 60) else { return };
    let there = time.with_timezone(&offset);
    if !(1..=9999).contains(&time.year()) || !(1..=9999).contains(&there.year()) {
        return;
    }
    assert_eq!(date(there.format("%Y-%m-%d").to_string().as_bytes()), Some(there.date_naive().to_epoch_days()));
    let formats = ["%Y-%m-%dT%H:%M:%S%.6f%:z", "%Y-%m-%d %H:%M:%S%.6f000%z", "%Y-%m-%dT%H:%M:%S%.f%:z"];
    for format in formats {
        assert_eq!(timestamp(there.format(format).to_string().as_bytes(), None), Some(time.timestamp_micros()));
    }
    let second = time - TimeDelta::microseconds(time.timestamp_micros().rem_euclid(1_000_000));
    for format in ["%a, %d %b %Y %H:%M:%S %z", "%d/%b/%Y:%H:%M:%S %z"] {
        let text = second.with_timezone(&offset).format(format).to_string();
        assert_eq!(timestamp(text.as_bytes(), None), Some(second.timestamp_micros()));
    }
    let short = time.to_rfc3339_opts(SecondsFormat::AutoSi, true);
    assert_eq!(timestamp(short.as_bytes(), None), Some(time.timestamp_micros()));
    let minute = time - TimeDelta::microseconds(time.timestamp_micros().rem_euclid(60_000_000));
    assert_eq!(
        timestamp(minute.format("%Y-%m-%d %H:%MZ").to_string().as_bytes(), None),
        Some(minute.timestamp_micros())
    );
}
