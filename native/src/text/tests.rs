//! The results of Parquet's own reader for text columns.

use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_schema::{DataType, Field, Schema};
use bytes::Bytes;
use parquet::arrow::arrow_reader::{ArrowReaderOptions, ParquetRecordBatchReaderBuilder, RowSelection};
use parquet::basic::Encoding;
use parquet::data_type::ByteArray;
use parquet::file::metadata::{ColumnChunkMetaData, PageIndexPolicy};
use parquet::file::page_index::column_index::ColumnIndexMetaData;
use parquet::file::page_index::offset_index::PageLocation;
use parquet::file::statistics::Statistics;

use super::TextRows;
use crate::output::Output;
use crate::parts::Parts;
use crate::sparse::ColumnRows;
use crate::statistics::MAX_BOUND_BYTES;

type Texts = Vec<Option<String>>;

const PAGES_BYTES: usize = 32 * 1024 * 1024;

pub struct Random(pub u64);

impl Random {
    pub fn below(&mut self, bound: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        usize::try_from(self.0 >> 33).unwrap() % bound
    }
}

fn output(compression: &str) -> Output {
    let fields = vec![Field::new("t", DataType::Utf8, true), Field::new("s", DataType::Utf8, true)];
    Output::new(Arc::new(Schema::new(fields)), compression, PAGES_BYTES).unwrap()
}

/// Writes batches of a column, and as many rows of one with each row's batch.
fn written(batches: &[Texts], compression: &str) -> Bytes {
    let mut output = output(compression);
    let mut buffer = TextRows::default();
    for (number, texts) in batches.iter().enumerate() {
        let mut rows = std::mem::take(&mut buffer);
        for text in texts {
            push(&mut rows, text.as_deref());
        }
        let source = format!("batch {number}").into_bytes().into();
        let batch = [ColumnRows::Texts(rows), ColumnRows::Runs(vec![(source, texts.len())])];
        output.write(&batch).unwrap();
        let [ColumnRows::Texts(mut rows), _] = batch else { panic!("it has other rows") };
        rows.clear();
        buffer = rows;
    }
    ended(&mut output)
}

fn ended(output: &mut Output) -> Bytes {
    let mut completed = Parts::default();
    output.finish(&mut completed).unwrap();
    completed.into_bytes().into()
}

fn push(rows: &mut TextRows, text: Option<&str>) {
    match text {
        Some(text) if text.len() % 2 == 0 => rows.push(text.as_bytes(), (0, text.len())).unwrap(),
        Some(text) => rows.push_with(text.len() + text.len() % 5, |target| written_to(target, text)).unwrap(),
        None => rows.push_nulls(1).unwrap(),
    }
}

fn written_to(target: &mut [u8], text: &str) -> usize {
    target[..text.len()].copy_from_slice(text.as_bytes());
    text.len()
}

fn found(file: &Bytes) -> (Texts, Texts) {
    let (mut texts, mut sources) = (Vec::new(), Vec::new());
    for batch in ParquetRecordBatchReaderBuilder::try_new(file.clone()).unwrap().build().unwrap() {
        let batch = batch.unwrap();
        for (number, column) in [&mut texts, &mut sources].into_iter().enumerate() {
            let array = batch.column(number).as_string::<i32>();
            column.extend(array.iter().map(|text| text.map(str::to_owned)));
        }
    }
    (texts, sources)
}

fn chunk(file: &Bytes, column: usize) -> ColumnChunkMetaData {
    let metadata = ParquetRecordBatchReaderBuilder::try_new(file.clone()).unwrap().metadata().clone();
    assert_eq!(metadata.num_row_groups(), 1);
    metadata.row_group(0).column(column).clone()
}

fn check(batches: &[Texts], compression: &str) -> Bytes {
    let file = written(batches, compression);
    let (texts, sources) = found(&file);
    assert_eq!(texts, batches.concat());
    let numbers = batches.iter().enumerate();
    let expected: Texts =
        numbers.flat_map(|(number, rows)| vec![Some(format!("batch {number}")); rows.len()]).collect();
    assert_eq!(sources, expected);
    check_statistics(&chunk(&file, 0), &texts);
    check_index(&file, &texts);
    file
}

/// The bounds and nulls of each page are those of its rows, and its place is where a reader finds them.
fn check_index(file: &Bytes, texts: &Texts) {
    let options = ArrowReaderOptions::new().with_page_index_policy(PageIndexPolicy::Required);
    let reader = ParquetRecordBatchReaderBuilder::try_new_with_options(file.clone(), options).unwrap();
    let indices = reader.metadata().page_index_for_row_group(0);
    let starts: Vec<usize> = indices.offset_index(0).unwrap().page_locations().iter().map(first_row).collect();
    let ends = starts.iter().skip(1).copied().chain([texts.len()]);
    if let Some(ColumnIndexMetaData::BYTE_ARRAY(found)) = indices.column_index(0) {
        for (page, rows) in starts.iter().zip(ends).map(|(start, end)| &texts[*start..end]).enumerate() {
            let nulls = rows.iter().filter(|text| text.is_none()).count();
            assert_eq!(found.null_count(page), Some(i64::try_from(nulls).unwrap()));
            assert_eq!(found.is_null_page(page), nulls == rows.len());
            for text in rows.iter().flatten().map(String::as_bytes) {
                let (min, max) = (found.min_value(page).unwrap(), found.max_value(page).unwrap());
                assert!(min <= text && text <= max && min.len().max(max.len()) <= MAX_BOUND_BYTES);
            }
            if rows.iter().flatten().all(|text| text.len() <= MAX_BOUND_BYTES) {
                let (min, max) = (rows.iter().flatten().min(), rows.iter().flatten().max());
                assert_eq!(found.min_value(page), min.map(String::as_bytes));
                assert_eq!(found.max_value(page), max.map(String::as_bytes));
            }
        }
    } else {
        assert!(texts.iter().flatten().any(|text| text.len() > MAX_BOUND_BYTES));
    }
    let selected = starts.iter().map(|start| *start..start + 1);
    let selection = RowSelection::from_consecutive_ranges(selected, texts.len());
    let batches = reader.with_row_selection(selection).build().unwrap();
    let firsts: Texts = batches
        .flat_map(|batch| {
            let batch = batch.unwrap();
            batch.column(0).as_string::<i32>().iter().map(|text| text.map(str::to_owned)).collect::<Vec<_>>()
        })
        .collect();
    assert_eq!(firsts, starts.iter().map(|start| texts[*start].clone()).collect::<Texts>());
}

fn first_row(page: &PageLocation) -> usize {
    usize::try_from(page.first_row_index).unwrap()
}

fn check_statistics(chunk: &ColumnChunkMetaData, texts: &Texts) {
    let Some(Statistics::ByteArray(found)) = chunk.statistics() else { panic!("no statistics") };
    assert_eq!(found.null_count_opt(), Some(texts.iter().filter(|text| text.is_none()).count() as u64));
    let present = texts.iter().flatten();
    let bytes: usize = present.clone().map(String::len).sum();
    assert_eq!(chunk.unencoded_byte_array_data_bytes(), Some(i64::try_from(bytes).unwrap()));
    let min = present.clone().min().map(String::as_bytes);
    let max = present.max().map(String::as_bytes);
    if texts.iter().flatten().all(|text| text.len() <= 64) {
        assert_eq!((found.min_opt().map(ByteArray::data), found.max_opt().map(ByteArray::data)), (min, max));
        assert!(min.is_none() || found.min_is_exact() && found.max_is_exact());
    }
}

/// Few and many values, short and long ones, single nulls and long runs of them, in batches of any length; `ROUNDS` for
/// more of them, each of which takes a second without optimisation.
#[test]
fn any_rows() {
    let mut random = Random(7);
    let rounds = std::env::var("ROUNDS").map_or(10, |given| given.parse().unwrap());
    for round in 0..rounds {
        let values = [1, 3, 300, 70_000][random.below(4)];
        let longest = [1, 12, 40, 300][random.below(4)];
        let mut batches = Vec::new();
        for _ in 0..=random.below(4) {
            let mut texts: Texts = Vec::new();
            for _ in 0..random.below(12) {
                let length = [1, 5, 31, 33, 500, 9_000][random.below(6)];
                match random.below(3) {
                    0 => texts.extend(vec![None; length]),
                    1 => texts.extend((0..length).map(|_| Some(text(random.below(values), longest)))),
                    _ => texts.extend((0..length).map(|at| (at % 3 > 0).then(|| text(random.below(values), longest)))),
                }
            }
            batches.push(texts);
        }
        batches.retain(|texts| !texts.is_empty());
        if !batches.is_empty() {
            check(&batches, if round % 2 == 0 { "snappy" } else { "zstd" });
        }
    }
}

/// One of many values, up to this length.
fn text(number: usize, longest: usize) -> String {
    let text = format!("{number:x}").repeat(1 + number % 7 * longest / 4);
    text[..text.len().min(longest)].to_owned()
}

/// Repeated values are in the dictionary; those after it is full are not.
#[test]
fn dictionary_and_plain() {
    let few: Texts = (0..50_000).map(|number| Some(format!("value {}", number % 100))).collect();
    let many: Texts = (0..50_000).map(|number| Some(format!("some value, and it is number {number}"))).collect();
    let pages = |batches: &[Texts]| *chunk(&check(batches, "snappy"), 0).page_encoding_stats_mask().unwrap();
    assert!(pages(std::slice::from_ref(&few)).is_only(Encoding::RLE_DICTIONARY));
    let both = pages(&[few, many]);
    assert!(both.is_set(Encoding::RLE_DICTIONARY) && both.is_set(Encoding::PLAIN));
}

/// A million nulls take a few pages.
#[test]
fn nulls_only() {
    let file = check(&[vec![None; 1_500_000]], "snappy");
    assert!(chunk(&file, 0).compressed_size() < 3_000, "{} bytes", chunk(&file, 0).compressed_size());
}

/// A row is dropped, whatever it is and whatever precedes it; the next one replaces it.
#[test]
fn truncated_rows() {
    let mut random = Random(8);
    for _ in 0..300 {
        let (mut rows, mut expected): (TextRows, Texts) = (TextRows::default(), Vec::new());
        for _ in 0..random.below(60) {
            match random.below(5) {
                0 => {
                    let kept = expected.len() - random.below(expected.len().min(80) + 1);
                    rows.truncate(kept);
                    expected.truncate(kept);
                }
                1 => {
                    let nulls = [1, 2, 31, 32, 70][random.below(5)];
                    rows.push_nulls(nulls).unwrap();
                    expected.extend(vec![None; nulls]);
                }
                _ => {
                    let text = text(random.below(1_000), 40);
                    push(&mut rows, Some(&text));
                    expected.push(Some(text));
                }
            }
            assert_eq!(rows.len(), expected.len());
        }
        if !expected.is_empty() {
            let mut output = output("snappy");
            let source = Box::from(&b""[..]);
            output.write(&[ColumnRows::Texts(rows), ColumnRows::Runs(vec![(source, expected.len())])]).unwrap();
            let file = ended(&mut output);
            assert_eq!(found(&file).0, expected);
        }
    }
}

/// Whatever is combined, about as much space is made as is written: a row costs its own bytes, not those of earlier
/// rows.
#[test]
fn room_for_rows() {
    let kinds: [fn(&mut TextRows); 5] = [
        |rows| push(rows, Some("even")),
        |rows| push(rows, Some("odd")),
        |rows| rows.push(&[b'x'; 300], (0, 100)).unwrap(),
        |rows| rows.push_with(300, |_| 1).unwrap(),
        |rows| rows.push_nulls(3).unwrap(),
    ];
    for mix in 1..1_usize << kinds.len() {
        let mut rows = TextRows::default();
        for number in 0..3_000 {
            let kind = number % kinds.len();
            if mix >> kind & 1 == 1 {
                kinds[kind](&mut rows);
            }
            if number % 1_000 == 999 {
                rows.truncate(rows.len() - 1);
            }
        }
        let most = 4 * (rows.used() + 300);
        assert!(rows.zeroed_bytes <= most, "mix {mix:b}: {} bytes for {}", rows.zeroed_bytes, rows.used());
    }
}
