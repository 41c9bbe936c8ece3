//! Any bytes as a file of JSON documents: their records do not depend on how the file is cut into pieces, each has its
//! exact bytes, and those of valid documents are the ones that another parser finds at the path.

#![no_main]

use compactor_native::elements::{Found, Rules, Scanner};
use libfuzzer_sys::fuzz_target;
use serde_json::value::RawValue;

const PATHS: [&[Option<&str>]; 4] = [&[], &[Some("a"), None], &[Some("a")], &[Some("a"), None, Some("b"), None]];
const KEPT: &str = "k";
const SHORT: usize = 24;

/// What a scanner finds, whatever the blocks.
#[derive(Debug, Default, PartialEq, Eq)]
struct All {
    records: Vec<(usize, Vec<u8>, Vec<u8>)>,
    refused: Vec<(usize, &'static str, Vec<u8>, Vec<u8>, bool)>,
    fault: Option<(&'static str, usize, String)>,
    is_open: bool,
}

fuzz_target!(|data: &[u8]| {
    let Some((&[drawn, size], text)) = data.split_first_chunk() else { return };
    let path = PATHS[usize::from(drawn) % PATHS.len()];
    let (has_kept, is_short) = (drawn & 4 != 0, drawn & 8 != 0);
    let whole = scan(text, path, has_kept, is_short, text.len().max(1));
    assert_eq!(scan(text, path, has_kept, is_short, usize::from(size).max(1)), whole, "in pieces of {size}");
    assert_eq!(scan(text, path, has_kept, is_short, 1), whole, "byte by byte");
    for (offset, raw, _) in &whole.records {
        assert_eq!(&text[*offset..*offset + raw.len()], raw);
    }
    if let (false, false, Some(documents)) = (has_kept, is_short, documents(text)) {
        let mut expected = Vec::new();
        documents.iter().for_each(|document| find(document, path, &mut expected));
        let found: Vec<&[u8]> = whole.records.iter().map(|(_, raw, _)| raw.as_slice()).collect();
        assert_eq!((found, whole.is_open, &whole.fault), (expected, false, &None));
    }
});

fn scan(text: &[u8], path: &[Option<&str>], has_kept: bool, is_short: bool, size: usize) -> All {
    let kept = has_kept.then(|| (KEPT.as_bytes().to_vec(), format!("\"{KEPT}\"").into_bytes()));
    let mut scanner = Scanner::new(Rules {
        steps: path.iter().map(|key| key.map(|key| key.as_bytes().to_vec())).collect(),
        keep: kept.into_iter().collect(),
        max_bytes: if is_short { SHORT } else { usize::MAX },
        block_bytes: 16,
        max_held: 3,
    });
    let mut all = All::default();
    for piece in text.chunks(size).map(Some).chain([None]) {
        match piece {
            Some(piece) => scanner.feed(piece).expect("there is memory"),
            None => scanner.finish().expect("there is memory"),
        }
        while let Some(found) = scanner.take().expect("there is memory") {
            match found {
                Found::Block(block) => (0..block.len()).for_each(|number| {
                    let (offset, raw, fields) = block.element(number).expect("it is in the block");
                    all.records.push((offset, raw.to_vec(), fields.to_vec()));
                }),
                Found::Refusal(each) => {
                    all.refused.push((each.offset, each.reason, each.raw, each.fields, each.begins))
                }
                Found::Fault(each) => {
                    all.fault = Some((each.kind, each.offset, each.key));
                    return all;
                }
            }
        }
    }
    all.is_open = scanner.is_open();
    if all.is_open {
        all.refused.clear(); // the file is refused; how far into its last record it was read does not matter
    }
    all
}

/// The documents of a file, if all are valid: its values, or the elements of those that are arrays.
///
/// None also if there is half a surrogate pair, which the other parser refuses in keys alone.
fn documents(text: &[u8]) -> Option<Vec<&RawValue>> {
    if text.to_ascii_lowercase().windows(3).any(|escape| escape == b"\\ud") {
        return None;
    }
    let mut found = Vec::new();
    for value in serde_json::Deserializer::from_slice(text).into_iter() {
        let value: &RawValue = value.ok()?;
        match serde_json::from_str::<Vec<&RawValue>>(value.get()) {
            Ok(elements) => found.extend(elements),
            Err(_) => found.push(value),
        }
    }
    Some(found)
}

/// Finds the records of a document from a step of the path on, in their order.
fn find<'a>(value: &'a RawValue, path: &[Option<&str>], found: &mut Vec<&'a [u8]>) {
    match path {
        [] => found.push(value.get().as_bytes()),
        [None, rest @ ..] => {
            let elements: Vec<&RawValue> = serde_json::from_str(value.get()).unwrap_or_default();
            elements.iter().for_each(|element| find(element, rest, found));
        }
        [Some(key), rest @ ..] => {
            let Pairs(pairs) = serde_json::from_str(value.get()).unwrap_or_default();
            pairs.iter().filter(|(name, _)| name == key).for_each(|(_, inner)| find(inner, rest, found));
        }
    }
}

/// The members of an object in their order; a key may be there several times.
#[derive(Default)]
struct Pairs<'a>(Vec<(String, &'a RawValue)>);

impl<'de: 'a, 'a> serde::Deserialize<'de> for Pairs<'a> {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Members;
        impl<'de> serde::de::Visitor<'de> for Members {
            type Value = Pairs<'de>;
            fn expecting(&self, formatter: &mut std::fmt::Formatter) -> std::fmt::Result {
                formatter.write_str("an object")
            }
            fn visit_map<A: serde::de::MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
                let mut pairs = Vec::new();
                while let Some(pair) = map.next_entry()? {
                    pairs.push(pair);
                }
                Ok(Pairs(pairs))
            }
        }
        deserializer.deserialize_map(Members)
    }
}
