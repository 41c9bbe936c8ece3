//! Any text as a VARIANT: the reader of another library finds a valid one, with what JSON's own parser finds in the text.

#![no_main]

use compactor_native::values::VariantWriter;
use libfuzzer_sys::fuzz_target;
use parquet_variant::Variant;
use serde_json::Value;

fuzz_target!(|text: &[u8]| {
    // What was written before leaves nothing behind.
    let mut used = VariantWriter::default();
    assert_eq!(used.write(br#"{"b":[1,{"a":"text"}],"a":1.5x}"#), Ok(None));
    let mut new = VariantWriter::default();
    let found = used.write(text).expect("there is memory");
    assert_eq!(found, new.write(text).expect("there is memory"));
    let parsed: Option<Value> = serde_json::from_slice(text).ok();
    let Some((metadata, value)) = found else { return };
    let parsed = parsed.expect("what is no JSON has no variant");
    let variant = Variant::try_new(metadata, value).expect("the form is valid");
    assert!(is_same(&parsed, &variant), "{parsed} became {variant:?}");
});

fn is_same(json: &Value, variant: &Variant) -> bool {
    match (json, variant) {
        (Value::Null, Variant::Null)
        | (Value::Bool(true), Variant::BooleanTrue)
        | (Value::Bool(false), Variant::BooleanFalse) => true,
        (Value::String(text), Variant::String(found)) => text == found,
        (Value::String(text), Variant::ShortString(found)) => text == found.as_str(),
        (Value::Array(values), Variant::List(found)) => {
            values.len() == found.len() && values.iter().zip(found.iter()).all(|(value, found)| is_same(value, &found))
        }
        (Value::Object(values), Variant::Object(found)) => {
            values.len() == found.len()
                && values.iter().all(|(key, value)| found.get(key).is_some_and(|found| is_same(value, &found)))
        }
        (Value::Number(number), found) => {
            spelled(found).is_some_and(|found| significant(number.as_str()) == significant(&found))
        }
        _ => false,
    }
}

/// A number of a variant in one of its spellings.
fn spelled(number: &Variant) -> Option<String> {
    Some(match number {
        Variant::Int8(value) => value.to_string(),
        Variant::Int16(value) => value.to_string(),
        Variant::Int32(value) => value.to_string(),
        Variant::Int64(value) => value.to_string(),
        Variant::Decimal4(value) => format!("{}e-{}", value.integer(), value.scale()),
        Variant::Decimal8(value) => format!("{}e-{}", value.integer(), value.scale()),
        Variant::Decimal16(value) => format!("{}e-{}", value.integer(), value.scale()),
        Variant::Double(value) => format!("{value:e}"),
        _ => return None,
    })
}

/// The sign of a number, its digits without zeros at either end, and the power of ten that they are multiplied by.
fn significant(number: &str) -> (bool, String, i64) {
    let (mantissa, exponent) = number.split_once(['e', 'E']).unwrap_or((number, "0"));
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let digits = [whole.trim_start_matches('-'), fraction].concat();
    let stripped = digits.trim_matches('0').to_owned();
    let is_negative = number.starts_with('-');
    if stripped.is_empty() {
        return (is_negative, stripped, 0);
    }
    let trailing = digits.len() - digits.trim_end_matches('0').len();
    let count = |length: usize| i64::try_from(length).expect("a text is short");
    // What has a variant has no exponent that a number of 64 bits does not hold.
    let exponent: i64 = exponent.parse().expect("the exponent is small");
    (is_negative, stripped, exponent - count(fraction.len()) + count(trailing))
}
