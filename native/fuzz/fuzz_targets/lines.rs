//! Any bytes as a file of lines: each line is a row with just its values, blank or refused, as another parser has it.

#![no_main]

use std::collections::BTreeMap;

use arrow_array::cast::AsArray;
use arrow_array::{Array, RecordBatch};
use bytes::Bytes;
use compactor_native::{BinWriter, ColumnKind, KeyRules, OutputColumn};
use libfuzzer_sys::fuzz_target;
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
use serde_json::Value;
use serde_json::value::RawValue;

const MAX_DEPTH: usize = 1024;
const SECRET: &[u8] = b"$serde_json";
const KEYS: [&str; 2] = ["a", "id"];

type Row = BTreeMap<String, String>;

fuzz_target!(|data: &[u8]| {
    // Objects with keys of this kind are values of other types to the parser that is asked here.
    if data.windows(SECRET.len()).any(|window| window == SECRET) {
        return;
    }
    let mut block = data.to_vec();
    block.push(b'\n');
    let lines: Vec<&[u8]> = block[..block.len() - 1].split(|byte| *byte == b'\n').collect();
    let mut writer = writer();
    writer.begin_file("file".to_owned());
    let judged = writer.read(&block).expect("rows can be encoded");
    writer.end_file().expect("rows can be encoded");
    writer.finish().expect("a file can be ended");
    let parquet: Vec<u8> = std::iter::from_fn(|| writer.take()).flatten().collect();

    assert_eq!(judged.lines, lines.len());
    let refused: Vec<usize> = judged.refused.iter().map(|(number, ..)| *number).collect();
    for (number, start, end, _) in &judged.refused {
        assert_eq!(&block[*start..*end], lines[*number]);
    }
    let is_blank = |line: &&[u8]| line.iter().all(|byte| b" \t\r".contains(byte));
    assert_eq!(judged.blank_lines, lines.iter().filter(|line| is_blank(line)).count());
    let mut expected = Vec::new();
    for (number, line) in lines.iter().enumerate().filter(|(_, line)| !is_blank(line)) {
        let row = row_of(line);
        assert_eq!(row.is_none(), refused.contains(&number), "{:?}", String::from_utf8_lossy(line));
        expected.extend(row);
    }
    assert_eq!(rows_in(parquet), expected);
});

/// Two keys have columns; all others are rescued.
fn writer() -> BinWriter {
    let mut columns: Vec<(String, OutputColumn)> = KEYS
        .iter()
        .map(|key| {
            let column = OutputColumn::Key { key: key.as_bytes().to_vec(), kind: ColumnKind::Text };
            ((*key).to_owned(), column)
        })
        .collect();
    columns.push(("rescued".to_owned(), OutputColumn::Rescued));
    // Few and short ones are remembered, so that both kinds are compared.
    let rules = KeyRules { rescues_unknown: true, refused: Vec::new(), max_keys: 4, max_key_characters: 2 };
    BinWriter::new(columns, "snappy", &rules, (1 << 20, 1 << 25), 2).expect("the plan is right")
}

/// What is not null in a line; nothing if it is no record.
fn row_of(line: &[u8]) -> Option<Row> {
    let mut whole = serde_json::Deserializer::from_slice(line);
    whole.disable_recursion_limit();
    let document: Value = serde::Deserialize::deserialize(&mut whole).ok()?;
    whole.end().ok()?;
    if !document.is_object() || depth(&document) > MAX_DEPTH {
        return None;
    }
    let mut top = serde_json::Deserializer::from_slice(line);
    top.disable_recursion_limit();
    let fields: BTreeMap<String, Box<RawValue>> = serde::Deserialize::deserialize(&mut top).ok()?;
    let text = |value: &RawValue| match value.get() {
        "null" => None,
        source if source.starts_with('"') => Some(serde_json::from_str(source).expect("it is a string")),
        source => Some(source.to_owned()),
    };
    Some(fields.into_iter().filter_map(|(key, value)| Some((key, text(&value)?))).collect())
}

fn depth(document: &Value) -> usize {
    let mut deepest = 0;
    let mut open = vec![(document, 1)];
    while let Some((value, level)) = open.pop() {
        let inner: Vec<&Value> = match value {
            Value::Array(items) => items.iter().collect(),
            Value::Object(fields) => fields.values().collect(),
            _ => continue,
        };
        deepest = deepest.max(level);
        open.extend(inner.into_iter().map(|each| (each, level + 1)));
    }
    deepest
}

fn rows_in(parquet: Vec<u8>) -> Vec<Row> {
    if parquet.is_empty() {
        return Vec::new();
    }
    let reader = ParquetRecordBatchReaderBuilder::try_new(Bytes::from(parquet)).expect("it is a Parquet file");
    let batches = reader.build().expect("its columns can be read");
    batches.flat_map(|batch| rows_of(&batch.expect("its pages can be read"))).collect()
}

fn rows_of(batch: &RecordBatch) -> Vec<Row> {
    let rescued = batch.column(KEYS.len()).as_map();
    (0..batch.num_rows())
        .map(|row| {
            let mut found = Row::new();
            for (number, key) in KEYS.iter().enumerate() {
                let texts = batch.column(number).as_string::<i32>();
                if texts.is_valid(row) {
                    found.insert((*key).to_owned(), texts.value(row).to_owned());
                }
            }
            if rescued.is_valid(row) {
                let entries = rescued.value(row);
                let (keys, values) = (entries.column(0).as_string::<i32>(), entries.column(1).as_string::<i32>());
                for entry in 0..entries.len() {
                    found.insert(keys.value(entry).to_owned(), values.value(entry).to_owned());
                }
            }
            found
        })
        .collect()
}
