//! Any bytes as calls of the kernel: files that end or are withdrawn, keys that are too many, values of each type, runs of
//! rows without a key, and outputs in between. What comes out has the rows of the files that stay, and whole columns.

#![no_main]

use std::collections::BTreeMap;

use arrow_array::cast::AsArray;
use arrow_array::types::{
    ArrowPrimitiveType, Date32Type, Decimal128Type, Float64Type, Int64Type, TimestampMicrosecondType,
    TimestampNanosecondType,
};
use arrow_array::{Array, RecordBatch};
use bytes::Bytes;
use compactor_native::{BinWriter, ColumnKind, Epoch, KeyRules, Kind, OutputColumn};
use libfuzzer_sys::fuzz_target;
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;

const MAX_KEYS: usize = 2;
const MAX_KEY_CHARACTERS: usize = 2;

/// Columns of values, with their place among all columns.
const TYPED: [(&str, usize, Kind); 8] = [
    ("n", 1, Kind::Long),
    ("b", 2, Kind::Boolean),
    ("d", 3, Kind::Double),
    ("m", 4, Kind::Decimal { precision: 5, scale: 2 }),
    ("t", 5, Kind::Timestamp { epoch: Some(Epoch::Seconds) }),
    ("y", 6, Kind::Date),
    ("l", 7, Kind::LocalTimestamp),
    ("u", 8, Kind::Nanoseconds { epoch: None }),
];
const RESCUED: usize = TYPED.len() + 1;

/// Lines with what they have by key, as it is stored; nothing for a line that is no record. A value that is none of the
/// type of its column is rescued.
const LINES: [(&str, Option<&[(&str, &str)]>); 22] = [
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
    (
        r#"{"d":1.50,"m":"2.25","t":"1970-01-01T00:00:01Z","y":"1970-01-02"}"#,
        Some(&[("d", "1.5"), ("m", "225"), ("t", "1000000"), ("y", "1")]),
    ),
    (
        r#"{"d":"x","m":0.001,"t":true,"y":"1970-02-30","n":1.0,"b":1}"#,
        Some(&[("b", "1"), ("d", "x"), ("m", "0.001"), ("n", "1.0"), ("t", "true"), ("y", "1970-02-30")]),
    ),
    (
        r#"{"y":"1970-01-03","y":null,"d":-0.0,"m":1,"m":"1e9","t":2}"#,
        Some(&[("d", "-0"), ("m", "1e9"), ("t", "2000000")]),
    ),
    (r#"{"l":"1970-01-01T00:00:01","u":"1970-01-01T00:00:00.000000002Z"}"#, Some(&[("l", "1000000"), ("u", "2")])),
    (r#"{"l":5,"u":"none"}"#, Some(&[("l", "5"), ("u", "none")])),
    (r#"{"n":{"$numberLong":"4"}}"#, Some(&[("n", "4")])),
    (r#"{"t":"none","t":"1970-01-01 00:00Z","k1":7,"k5":null}"#, Some(&[("k1", "7"), ("t", "0")])),
    (
        r#"{"a":"\ud83d\ude00 is longer than what is copied at once"}"#,
        Some(&[("a", "😀 is longer than what is copied at once")]),
    ),
    ("no record", None),
    (r#"{"a":1"#, None),
    ("[]", None),
    (r#"{"a":1} {"#, None),
];

type Row = BTreeMap<String, String>;

fuzz_target!(|data: &[u8]| {
    let Some((&plan, calls)) = data.split_first() else { return };
    let compression = if plan & 8 == 0 { "snappy" } else { "zstd" };
    let mut run = Run::new(plan & 1 == 1, compression, [1, 40, 4_000, 1 << 24][usize::from(plan >> 1 & 3)]);
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
    /// The caller starts again with other columns: what was written before is of no use.
    has_lacked: bool,
}

impl Run {
    fn new(rescues_unknown: bool, compression: &str, held_bytes: usize) -> Self {
        let key = |key: &str, kind| OutputColumn::Key { key: key.as_bytes().to_vec(), kind };
        let typed = TYPED.map(|(name, _, kind)| (name.to_owned(), key(name, ColumnKind::Typed(kind))));
        let mut columns = vec![("a".to_owned(), key("a", ColumnKind::Text))];
        columns.extend(typed);
        columns.push(("rescued".to_owned(), OutputColumn::Rescued));
        let rules = KeyRules {
            rescues_unknown,
            refused: Vec::new(),
            max_keys: MAX_KEYS,
            max_key_characters: MAX_KEY_CHARACTERS,
        };
        let mut writer =
            BinWriter::new(columns, compression, &rules, (held_bytes, 1 << 16), 2).expect("the plan is right");
        writer.begin_file("file".to_owned());
        let (rows, rows_of_file, new_keys) = (Vec::new(), Vec::new(), Vec::new());
        Self { writer, rows, rows_of_file, new_keys, has_lacked: false }
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
        self.writer.finish().expect("a file can be ended");
        let found = rows_in(std::iter::from_fn(|| self.writer.take()).flatten().collect());
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
        assert!(group.columns()[..RESCUED].iter().all(|column| column.num_values() == group.num_rows()));
    }
    let batches = builder.build().expect("its columns can be read");
    batches.flat_map(|batch| rows_of(&batch.expect("its pages can be read"))).collect()
}

fn rows_of(batch: &RecordBatch) -> Vec<Row> {
    let (texts, rescued) = (batch.column(0).as_string::<i32>(), batch.column(RESCUED).as_map());
    (0..batch.num_rows())
        .map(|row| {
            let mut found = Row::new();
            let mut add = |key: &str, value: String| {
                assert_eq!(found.insert(key.to_owned(), value), None, "{key} is there once");
            };
            if texts.is_valid(row) {
                add("a", texts.value(row).to_owned());
            }
            for (key, place, kind) in TYPED {
                if batch.column(place).is_valid(row) {
                    add(key, stored(batch.column(place), kind, row));
                }
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

/// A value as it is stored.
fn stored(column: &dyn Array, kind: Kind, row: usize) -> String {
    fn number<T: ArrowPrimitiveType<Native: ToString>>(column: &dyn Array, row: usize) -> String {
        column.as_primitive::<T>().value(row).to_string()
    }
    match kind {
        Kind::Long => number::<Int64Type>(column, row),
        Kind::Double => number::<Float64Type>(column, row),
        Kind::Decimal { .. } => number::<Decimal128Type>(column, row),
        Kind::Boolean => column.as_boolean().value(row).to_string(),
        Kind::Date => number::<Date32Type>(column, row),
        Kind::Timestamp { .. } | Kind::LocalTimestamp => number::<TimestampMicrosecondType>(column, row),
        Kind::Nanoseconds { .. } => number::<TimestampNanosecondType>(column, row),
    }
}
