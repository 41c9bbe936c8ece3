//! The values of texts in nested types, implemented a second time: it shares no code with `nested` and `scan`, which it
//! verifies. The rules are those of `compactor/ndjson/nested_values.py`.

use std::collections::HashSet;

use super::lines::{Doubtful, Read, Reader, decode};
use super::{Malformed, Values, values};
use crate::columns::ColumnKind;
use crate::nested::{Nested, Shape};

/// Levels of arrays and objects in a value of a line.
const MAX_DEPTH: usize = 1023;

const NULL: u8 = 0;
const PRESENT: u8 = 1;

/// Bytes that differ for different values; None if the text has none. Also, whether the value has all of the text.
pub fn stored(text: &[u8], nested: &Nested) -> Option<(Vec<u8>, bool)> {
    if nested.is_too_large(text) { None } else { of_any_size(text, nested) }
}

/// The same for a text that is known to be a value's: in a canonical text, characters have no escapes.
pub fn of_any_size(text: &[u8], nested: &Nested) -> Option<(Vec<u8>, bool)> {
    if text.first() != Some(&nested.shape.bracket()) {
        return None;
    }
    let mut reader = Reader { line: text, at: 0 };
    let mut bytes = Vec::new();
    let is_whole = container(&mut reader, &nested.shape, MAX_DEPTH, &mut bytes).ok()?;
    (reader.at == text.len()).then_some((bytes, is_whole))
}

/// The same bytes, from arrays of such a type.
///
/// # Errors
///
/// Values exceed their buffer, or have a wrong width or type.
pub fn of_arrays(values: &Values, row: usize, nested: &Nested) -> Result<Vec<u8>, Malformed> {
    let mut bytes = Vec::new();
    add_row(values, row, &nested.shape, &mut bytes)?;
    Ok(bytes)
}

fn add_row(values: &Values, row: usize, shape: &Shape, bytes: &mut Vec<u8>) -> Result<(), Malformed> {
    match (shape, &values.parts[..]) {
        (Shape::List(part), [elements]) => {
            let (from, to) = values.entries(row)?.ok_or(Malformed)?;
            bytes.extend(to.saturating_sub(from).to_le_bytes());
            (from..to).try_for_each(|at| add_part(elements, at, part, bytes))
        }
        (Shape::Map(part), [keys, values_of_keys]) => {
            let (from, to) = values.entries(row)?.ok_or(Malformed)?;
            bytes.extend(to.saturating_sub(from).to_le_bytes());
            for at in from..to {
                sized(keys.at(at, &ColumnKind::Text)?.ok_or(Malformed)?, bytes);
                add_part(values_of_keys, at, part, bytes)?;
            }
            Ok(())
        }
        (Shape::Struct(parts), arrays) if parts.len() == arrays.len() => {
            bytes.extend(0_usize.to_le_bytes());
            parts.iter().zip(arrays).try_for_each(|((_, part), array)| add_part(array, row, part, bytes))
        }
        _ => Err(Malformed),
    }
}

fn add_part(values: &Values, row: usize, kind: &ColumnKind, bytes: &mut Vec<u8>) -> Result<(), Malformed> {
    if !values.is_valid(values.offset + row)? {
        bytes.push(NULL);
        return Ok(());
    }
    bytes.push(PRESENT);
    match kind {
        ColumnKind::Nested(nested) => add_row(values, row, &nested.shape, bytes)?,
        ColumnKind::Text => sized(values.at(row, kind)?.ok_or(Malformed)?, bytes),
        ColumnKind::Typed(_) => bytes.extend(values.at(row, kind)?.ok_or(Malformed)?),
    }
    Ok(())
}

fn container(reader: &mut Reader, shape: &Shape, depth: usize, bytes: &mut Vec<u8>) -> Read<bool> {
    let (mut is_all, mut inner, mut count) = (true, Vec::new(), 0_usize);
    match shape {
        Shape::List(part) => {
            elements(reader, depth, |reader, depth| {
                count += 1;
                is_all &= value(reader, part, depth, &mut inner)?;
                Ok(())
            })?;
        }
        Shape::Map(part) => {
            let mut seen = HashSet::new();
            elements(reader, depth, |reader, depth| {
                let key = key(reader)?;
                if !seen.insert(key.clone()) {
                    is_all = false;
                    return skip(reader, depth);
                }
                count += 1;
                sized(&key, &mut inner);
                is_all &= value(reader, part, depth, &mut inner)?;
                Ok(())
            })?;
        }
        Shape::Struct(parts) => {
            let mut found: Vec<Option<Vec<u8>>> = vec![None; parts.len()];
            elements(reader, depth, |reader, depth| {
                let key = key(reader)?;
                let place = parts.iter().position(|(name, _)| name.as_bytes() == key);
                match place {
                    Some(at) if found[at].is_none() => {
                        is_all &= value(reader, &parts[at].1, depth, found[at].insert(Vec::new()))?;
                        Ok(())
                    }
                    _ => {
                        is_all &= place.is_none() && reader.next() == b'n';
                        skip(reader, depth)
                    }
                }
            })?;
            for part in &found {
                inner.extend(part.as_deref().unwrap_or(&[NULL]));
            }
        }
    }
    bytes.extend(count.to_le_bytes());
    bytes.extend(inner);
    Ok(is_all)
}

/// Appends the bytes of the value that starts here; whether all of it fits.
fn value(reader: &mut Reader, kind: &ColumnKind, depth: usize, bytes: &mut Vec<u8>) -> Read<bool> {
    let start = reader.at;
    match (reader.next(), kind) {
        (b'n', _) => {
            reader.word(b"null")?;
            bytes.push(NULL);
            return Ok(true);
        }
        (b'"', _) => {
            let (inner, is_escaped) = reader.string()?;
            let written = &reader.line[inner];
            let mut text = Vec::new();
            if is_escaped {
                decode(written, &mut text);
            } else {
                text.extend(written);
            }
            return Ok(add(&text, kind, bytes));
        }
        (bracket, ColumnKind::Nested(nested)) if bracket == nested.shape.bracket() => {
            bytes.push(PRESENT);
            return container(reader, &nested.shape, depth, bytes);
        }
        _ => skip(reader, depth)?,
    }
    let text = &reader.line[start..reader.at];
    Ok(match kind {
        ColumnKind::Nested(_) => {
            bytes.push(NULL);
            false
        }
        _ => add(text, kind, bytes),
    })
}

/// Appends the bytes of a text's value, and whether there is one; whether that has all of the text.
fn add(text: &[u8], kind: &ColumnKind, bytes: &mut Vec<u8>) -> bool {
    let mut inner = Vec::new();
    let is_whole = match kind {
        ColumnKind::Text => {
            sized(text, &mut inner);
            Some(true)
        }
        ColumnKind::Typed(kind) => values::stored(text, *kind).map(|(stored, width)| {
            inner.extend(&stored[..width]);
            true
        }),
        ColumnKind::Nested(nested) => of_any_size(text, nested).map(|(stored, is_whole)| {
            inner = stored;
            is_whole
        }),
    };
    bytes.push(if is_whole.is_some() { PRESENT } else { NULL });
    bytes.extend(inner);
    is_whole.unwrap_or_default()
}

fn sized(text: &[u8], bytes: &mut Vec<u8>) {
    bytes.extend(text.len().to_le_bytes());
    bytes.extend(text);
}

/// Reads an array or object, element by element, or member by member.
fn elements<'a>(
    reader: &mut Reader<'a>,
    depth: usize,
    mut each: impl FnMut(&mut Reader<'a>, usize) -> Read<()>,
) -> Read<()> {
    let close = if reader.next() == b'{' { b'}' } else { b']' };
    let depth = depth.checked_sub(1).ok_or(Doubtful)?;
    reader.at += 1;
    reader.skip_space();
    if reader.next() != close {
        loop {
            each(reader, depth)?;
            reader.skip_space();
            if reader.next() != b',' {
                break;
            }
            reader.at += 1;
            reader.skip_space();
        }
    }
    reader.take(close)
}

fn key(reader: &mut Reader) -> Read<Vec<u8>> {
    let (inner, _) = reader.string()?;
    let mut key = Vec::new();
    decode(&reader.line[inner], &mut key);
    reader.colon()?;
    Ok(key)
}

fn skip(reader: &mut Reader, depth: usize) -> Read<()> {
    match reader.next() {
        b'[' => elements(reader, depth, skip),
        b'{' => elements(reader, depth, |reader, depth| {
            key(reader)?;
            skip(reader, depth)
        }),
        _ => reader.scalar(),
    }
}
