//! Any bytes as calls of the kernel: files that end or are withdrawn, keys that are too many, values of types, runs of
//! rows without a key, and outputs in between. What comes out has the rows of the files that stay, and whole columns.

#![no_main]

use std::collections::BTreeMap;

use arrow_array::cast::AsArray;
use arrow_array::types::Int64Type;
use arrow_array::{Array, RecordBatch};
use bytes::Bytes;
use compactor_native::{BinWriter, ColumnKind, KeyRules, Kind, OutputColumn};
use libfuzzer_sys::fuzz_target;
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;

const MAX_KEYS: usize = 2;
const MAX_KEY_CHARACTERS: usize = 2;

/// Lines with what they have by key; nothing for a line that is no record. A value that is no long is rescued.
const LINES: [(&str, Option<&[(&str, &str)]>); 14] = [
    ("{}", Some(&[])),
    (r#"{"a":1}"#, Some(&[("a", "1")])),
    (r#"{"n":-7,"b":true}"#, Some(&[("b", "true"), ("n", "-7")])),
    (r#"{"n":"none","a":null}"#, Some(&[("n", "none")])),
    (r#"{"n":1,"n":"x","b":false,"n":2}"#, Some(&[("b", "false"), ("n", "2")])),
    (r#"{"a":1,"a":null,"b":"x","b":null}"#, Some(&[])),
    (r#"{"a":"half a row","n":8,"k1":1,"k2":2}"#, Some(&[("a", "half a row"), ("k1", "1"), ("k2", "2"), ("n", "8")])),
    (r#"{"b":true,"k3":"\u0041"}"#, Some(&[("b", "true"), ("k3", "A")])),
    (r#"{"k4":1,"k4":null,"n":9}"#, Some(&[("n", "9")])),
    (r#"{"n":3,"too long":[1, 2]}"#, Some(&[("n", "3"), ("too long", "[1, 2]")])),
    ("no record", None),
    (r#"{"a":1"#, None),
    ("[]", None),
    (r#"{"a":1} {"#, None),
];

type Row = BTreeMap<String, String>;

fuzz_target!(|data: &[u8]| {
    let Some((&plan, calls)) = data.split_first() else { return };
    let mut run = Run::new(plan & 1 == 1, [1, 40, 4_000, 1 << 24][usize::from(plan >> 1 & 3)]);
    for call in calls.chunks_exact(2) {
        match call[0] % 8 {
            // More lines than are read one by one, so that columns are absent for long.
            0 | 1 => run.read(0, usize::from(call[1]) * 3),
            2 => run.end_file(),
            3 => run.withdraw_file(),
            4 => run.finish(),
            _ => run.read(usize::from(call[1]) % LINES.len(), 1),
        }
        if run.writer.lacks_columns() && run.rows_of_file.is_empty() {
            break;
        }
    }
    run.end_file();
    run.finish();
});

struct Run {
    writer: BinWriter,
    /// The rows of the files that have ended, in the output that is not finished.
    rows: Vec<Row>,
    rows_of_file: Vec<Row>,
    new_keys: Vec<Vec<u8>>,
    parquet: Vec<u8>,
    /// The caller starts again with other columns: what was written before is of no use.
    has_lacked: bool,
}

impl Run {
    fn new(rescues_unknown: bool, held_bytes: usize) -> Self {
        let key = |key: &str, kind| OutputColumn::Key { key: key.as_bytes().to_vec(), kind };
        let columns = vec![
            ("a".to_owned(), key("a", ColumnKind::Text)),
            ("n".to_owned(), key("n", ColumnKind::Typed(Kind::Long))),
            ("b".to_owned(), key("b", ColumnKind::Typed(Kind::Boolean))),
            ("rescued".to_owned(), OutputColumn::Rescued),
        ];
        let rules = KeyRules {
            rescues_unknown,
            refused: Vec::new(),
            max_keys: MAX_KEYS,
            max_key_characters: MAX_KEY_CHARACTERS,
        };
        let mut writer = BinWriter::new(columns, "snappy", &rules, held_bytes, 2).expect("the plan is right");
        writer.begin_file("file".to_owned());
        let (rows, rows_of_file, new_keys) = (Vec::new(), Vec::new(), Vec::new());
        Self { writer, rows, rows_of_file, new_keys, parquet: Vec::new(), has_lacked: false }
    }

    fn read(&mut self, number: usize, times: usize) {
        let (line, fields) = LINES[number];
        let judged = self.writer.read(format!("{line}\n").repeat(times).as_bytes()).expect("rows can be encoded");
        assert_eq!((judged.lines, judged.blank_lines), (times, 0));
        assert_eq!(judged.refused.len(), if fields.is_none() { times } else { 0 });
        if let Some(fields) = fields {
            let row: Row = fields.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect();
            self.rows_of_file.extend(std::iter::repeat_n(row, times));
        }
    }

    fn end_file(&mut self) {
        let (new_keys, _) = self.writer.end_file().expect("rows can be encoded");
        assert!(new_keys.iter().all(|key| !self.new_keys.contains(key)), "a key is new once");
        self.new_keys.extend(new_keys);
        assert!(self.new_keys.len() <= MAX_KEYS);
        self.rows.append(&mut self.rows_of_file);
        self.has_lacked |= self.writer.lacks_columns();
        self.writer.begin_file("file".to_owned());
    }

    fn withdraw_file(&mut self) {
        if self.writer.withdraw_file() {
            self.rows_of_file.clear();
            assert_eq!(self.writer.lacks_columns(), self.has_lacked, "its keys are forgotten");
            self.writer.begin_file("file".to_owned());
        } else {
            self.end_file();
        }
    }

    /// Between two files: the one that has begun has no rows yet.
    fn finish(&mut self) {
        self.end_file();
        self.parquet.extend(self.writer.take(usize::MAX));
        self.parquet.extend(self.writer.finish().expect("a file can be ended"));
        let found = rows_in(std::mem::take(&mut self.parquet));
        let expected = std::mem::take(&mut self.rows);
        if !self.has_lacked {
            assert_eq!(found, expected);
        }
    }
}

/// The rows of a file, each with what is not null. The reader refuses columns of unequal length.
fn rows_in(parquet: Vec<u8>) -> Vec<Row> {
    if parquet.is_empty() {
        return Vec::new();
    }
    let builder = ParquetRecordBatchReaderBuilder::try_new(Bytes::from(parquet)).expect("it is a Parquet file");
    for group in builder.metadata().row_groups() {
        assert!(group.columns()[..3].iter().all(|column| column.num_values() == group.num_rows()));
    }
    let batches = builder.build().expect("its columns can be read");
    batches.flat_map(|batch| rows_of(&batch.expect("its pages can be read"))).collect()
}

fn rows_of(batch: &RecordBatch) -> Vec<Row> {
    let (texts, booleans) = (batch.column(0).as_string::<i32>(), batch.column(2).as_boolean());
    let (longs, rescued) = (batch.column(1).as_primitive::<Int64Type>(), batch.column(3).as_map());
    (0..batch.num_rows())
        .map(|row| {
            let mut found = Row::new();
            let mut add = |key: &str, value: String| {
                assert_eq!(found.insert(key.to_owned(), value), None, "{key} is there once");
            };
            if texts.is_valid(row) {
                add("a", texts.value(row).to_owned());
            }
            if longs.is_valid(row) {
                add("n", longs.value(row).to_string());
            }
            if booleans.is_valid(row) {
                add("b", booleans.value(row).to_string());
            }
            if rescued.is_valid(row) {
                let entries = rescued.value(row);
                let (keys, values) = (entries.column(0).as_string::<i32>(), entries.column(1).as_string::<i32>());
                (0..entries.len()).for_each(|entry| add(keys.value(entry), values.value(entry).to_owned()));
            }
            found
        })
        .collect()
}
