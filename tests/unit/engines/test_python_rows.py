"""Rows that the Spark engine makes in Python: every value is there once, whatever the shape of the records."""

from datetime import UTC, date, datetime

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from compactor.engines.engine import RowPlan
from compactor.engines.spark import python_rows
from compactor.engines.spark.python_rows import PythonRows
from compactor.ndjson.rawjson import texts
from compactor.schema.column_types import canonical_text, value_of
from compactor.schema.schema import RESCUED_TYPE, Column, SchemaVersion
from tests.support.memory_store import MemoryStore
from tests.support.parquet_ids import field_ids

NOW = datetime(2025, 12, 21, 1, 2, 3, 456789, tzinfo=UTC)
TYPES = {
    "text": "string",
    'q"\\': "string",
    "": "string",
    "count": "long",
    "share": "double",
    "price": "decimal(6,2)",
    "ok": "boolean",
    "day": "date",
    "at": "timestamp",
}
COLUMNS = (
    *(
        Column(key=key, name=f"c{at}", added_in=1, type=kind, field_id=at)
        for at, (key, kind) in enumerate(TYPES.items(), 1)
    ),
    Column(key=None, name="_rescued_data", added_in=1, type=RESCUED_TYPE, field_id=99),
)
SCHEMA = SchemaVersion(version=1, created_at=NOW, manifest_id="m", columns=COLUMNS)
VALUES = st.sampled_from(
    [
        *(b"1", b"-7", b"1.50", b"1e400", b"9999.999", b"true", b"null", b'""', b'"x"', b'"\\u00e9\\n"'),
        *(b'"2025-12-21"', b'"2025-12-21T01:02:03.5Z"', b'{"b" : [1 ,2]}', b"[]", b'"\\ud83d\\ude00"'),
    ]
)
KEYS = st.sampled_from([*(key.replace("\\", "\\\\").replace('"', '\\"').encode() for key in TYPES), b"new", b"k" * 300])
RECORDS = st.lists(st.lists(st.tuples(KEYS, VALUES), max_size=8), max_size=12)


def plan(*, target_file_bytes: int = 1 << 30) -> RowPlan:
    """Rows with all metadata columns."""
    names = ("_source_file", "_processed_at", "_manifest_id")
    return RowPlan(
        manifest_id="m",
        date=date(2025, 12, 21),
        processed_at=NOW,
        schema=SCHEMA,
        metadata_columns=names,
        compression="snappy",
        target_file_bytes=target_file_bytes,
    )


def made(folder, files, rows_plan):
    """Make rows of local files of lines; returns the tables that a reader sees, and the rescued values."""
    store = MemoryStore()
    paths = []
    for number, lines in enumerate(files):
        path = folder / f"{number}.records"
        path.write_bytes(b"".join(line + b"\n" for line in lines))
        paths.append((path, f"s3://in/{number}"))
    rows = PythonRows(rows_plan)
    uris = rows.write(store, "s3://out/", 7, paths)
    return [pq.read_table(pa.BufferReader(store.read(uri))) for uri in uris], rows.rescued_values


def expected(line):
    """The canonical texts of the values of a line by column, and its rescued data."""
    row, rescued = {}, {}
    for key, text in texts(line).items():
        column = next((each for each in COLUMNS if each.key == key), None)
        value = None if column is None or text is None else value_of(text, column.column_type)
        if value is not None:
            row[column.name] = canonical_text(value, column.column_type)
        elif text is not None:
            rescued[key] = text
    return row, rescued


@pytest.mark.parametrize(("most_rows", "line_bytes"), [(2**15 - 1, 1 << 24), (3, 1 << 24), (2**15 - 1, 100)])
@given(files=st.lists(RECORDS, max_size=3))
def test_every_value_is_there_once(tmp_path_factory, most_rows, line_bytes, files):
    """In its column if it fits the type, else among the rescued data; in tables of any number of rows."""
    lines = [[b"{" + b",".join(b'"%s": %s' % each for each in record) + b"}" for record in file] for file in files]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(python_rows, "_LINE_BYTES", line_bytes)
        if most_rows < 2**15 - 1:
            patch.setattr(python_rows, "ROW_GROUP_BYTES", int(most_rows * 14 * python_rows._CELL_BYTES) + 1)
        tables, rescued_values = made(tmp_path_factory.mktemp("made"), lines, plan())
    rows = [row for table in tables for row in table.to_pylist()]
    every = [(f"s3://in/{number}", line) for number, file in enumerate(lines) for line in file]
    assert len(rows) == len(every)
    types = {each.name: each.column_type for each in COLUMNS if each.key is not None}
    for row, (origin, line) in zip(rows, every, strict=True):
        assert (row.pop("_source_file"), row.pop("_processed_at"), row.pop("_manifest_id")) == (origin, NOW, "m")
        rescued = dict(row.pop("_rescued_data") or ())
        found = {name: canonical_text(value, types[name]) for name, value in row.items() if value is not None}
        assert (found, rescued) == expected(line)
    keys = {each.key for each in COLUMNS}
    assert rescued_values == sum(key in keys for _, line in every for key in expected(line)[1])


def test_columns_are_written_as_the_engines_write_them(tmp_path):
    """With types and ids in Parquet's own schema, and as many files as the target size needs."""
    store = MemoryStore()
    path = tmp_path / "0.records"
    path.write_bytes(b'{"count": 1, "price": 1.5, "new": "x"}\n')
    (uri,) = PythonRows(plan()).write(store, "s3://out/", 7, [(path, "s3://in/0")])
    assert uri.startswith("s3://out/000007-000-")
    parquet = pq.ParquetFile(pa.BufferReader(store.read(uri)))
    assert field_ids(pa.BufferReader(store.read(uri))) == {
        "_source_file": 10_000_001,
        "_processed_at": 10_000_002,
        "_manifest_id": 10_000_003,
        **{each.name: each.field_id for each in COLUMNS},
        "_rescued_data.key": 10_000_101,
        "_rescued_data.value": 10_000_102,
    }
    assert parquet.schema_arrow.field("c6").type == pa.decimal128(6, 2)
    assert parquet.schema_arrow.field("_processed_at").type == pa.timestamp("us", "UTC")
    assert pa.types.is_string(parquet.schema_arrow.field("c1").type)


def test_files_end_at_the_target_size(tmp_path, monkeypatch):
    """A table of rows is the least that a file has."""
    monkeypatch.setattr(python_rows, "_LINE_BYTES", 1_000)
    lines = [b'{"text": "%064x"}' % (number**9) for number in range(500)]
    tables, _ = made(tmp_path, [lines], plan(target_file_bytes=4_000))
    assert len(tables) > 5
    assert sum(table.num_rows for table in tables) == 500


def test_nothing_makes_no_file(tmp_path):
    """Parquet has no file without rows."""
    assert made(tmp_path, [[]], plan()) == ([], 0)
