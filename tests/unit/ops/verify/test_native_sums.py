"""The kernel adds up lines as Python does, and rows as they are in files: no difference stays unseen."""

import io
from types import SimpleNamespace
from typing import Any

import orjson
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from compactor.adapters.local.native.kernel import NativeKernel, digest_kernel
from compactor.engines.parquet_files import python_values
from compactor.ndjson import rawjson
from compactor.ops.verify import row_sums
from compactor.ops.verify.native_sums import (
    BLOCK_BYTES,
    SAMPLED_BYTES,
    SAMPLED_SHARE,
    KernelArray,
    KernelRows,
    NativeSums,
    ParsersDifferError,
)
from compactor.ops.verify.row_sums import FileColumns, RowShape, RowSums, Sum
from compactor.schema.column_types import parse_type
from tests.support import extras
from tests.support.native_rows import ended, feed, plan_of, schema_of
from tests.support.row_sums import check_sums, read
from tests.support.torture_lines import BAD_LINES, DEEP_LINES, GOOD_LINES, LONG_KEY_LINES

extras.NATIVE.need()

TYPES = {
    "text": "string",
    "long": "long",
    "double": "double",
    "decimal": "decimal(9,3)",
    "boolean": "boolean",
    "date": "date",
    "time": "timestamp",
    "local": "timestamp_ntz",
    "fine": "timestamp_ns",
    "id": "objectid",
    "list": "list<double>",
    "struct": "struct<a:string,b:list<struct<c:date>>>",
    "map": "map<string,long>",
}
VALUES: list[dict[str, Any]] = [
    {"text": "a", "long": 1, "double": 0.5, "decimal": "1.5", "boolean": True, "date": "2026-01-02"},
    {
        "id": {"$oid": "5"},
        "text": None,
        "time": "2026-01-02T03:04:05.25+01:00",
        "double": -0.0,
        "boolean": "false",
        "decimal": -7,
    },
    {"text": "a\n", "long": "no number", "further": {"x": [1, 2.50]}, "time": "2026-01-02T03:04Z"},
    {"id": "507F1f77bcf86cd799439011", "local": "2026-01-02 03:04:05.25", "fine": "2026-01-02T03:04:05.123456789Z"},
    {"local": "2026-01-02T03:04Z", "fine": "2026-01-02T03:04:05.123456788+00", "time": "2026-01-02 03:04"},
    {"list": [1, 2.5, None], "struct": {"a": [1], "b": [{}, {"c": "2026-01-02"}]}, "map": {"x": 1, "y": None}},
    {"list": "[]", "struct": {"a": None, "b": [None], "c": 1}, "map": {"y": "x"}},
    {"list": ["x"], "struct": {}, "map": {}, "id": {"$oid": "507F1f77bcf86cd799439011"}},
    {"text": "", "long": -(2**63), "decimal": 1234567.5, "further": "é", "date": "2026-02-30"},
    {},
]
SCHEMA = schema_of(TYPES, rescued=True)
DATA = b"".join(orjson.dumps(each) + b"\n" for each in VALUES)


def table() -> pa.Table:
    kernel = NativeKernel(plan_of(SCHEMA, rescues=True, metadata=["_source_file"]))
    kernel.begin_file("file")
    feed(kernel, DATA)
    kernel.end_file()
    return pq.read_table(io.BytesIO(ended(kernel)))


def _parquet(rows: pa.Table) -> pq.ParquetFile:
    sink = io.BytesIO()
    pq.write_table(rows, sink)
    return pq.ParquetFile(sink)


def written(sums: RowSums, rows: pa.Table, columns: FileColumns) -> dict[str, Sum]:
    """What is added up of a file with these rows."""
    file = _parquet(rows)
    opened: Any = SimpleNamespace(parquet=file, batches=lambda _, names: file.iter_batches(batch_size=2, columns=names))
    found: dict[str, Sum] = {}
    for source, part in sums.written(opened, columns, by_source=True):
        found.setdefault(source, Sum()).merge(part)
    return found


NAMES = {column.key: column.name for column in SCHEMA.columns if column.key is not None}
COLUMNS = FileColumns(NAMES, frozenset(), {}, "_rescued_data")
BOTH = pytest.mark.parametrize("make", [RowSums, lambda shape: NativeSums(shape, digest_kernel)])


@BOTH
def test_rows_of_all_types_are_those_of_their_lines(make: Any) -> None:
    sums = make(RowShape(SCHEMA))
    expected = read(sums.lines({}), DATA)[2]
    assert expected.rows == len(VALUES)
    assert written(sums, table(), COLUMNS) == {"file": expected}
    # The order of rows makes no difference; nor does that of the sources.
    assert written(sums, table().take([4, 2, 6, 0, 8, 5, 1, 9, 3, 7]), COLUMNS) == {"file": expected}


@BOTH
@pytest.mark.parametrize("name", [*NAMES.values(), "_rescued_data", "_source_file"])
def test_each_changed_value_is_seen(make: Any, name: str) -> None:
    """A value of another row, no value, and a value where none was: in each column."""
    sums, rows = make(RowShape(SCHEMA)), table()
    expected = written(sums, rows, COLUMNS)
    values = python_values(rows[name])
    at = rows.column_names.index(name)
    for row, value in enumerate(values):
        others = [each for each in (*values, None if name != "_source_file" else "other") if repr(each) != repr(value)]
        for other in others:
            changed = [*values[:row], other, *values[row + 1 :]]
            column = pa.chunked_array([pa.array(changed, rows.schema.field(name).type)])
            assert written(sums, rows.set_column(at, rows.schema.field(name), column), COLUMNS) != expected


@BOTH
def test_lost_doubled_and_mixed_rows_are_seen(make: Any) -> None:
    sums, rows = make(RowShape(SCHEMA)), table()
    expected = written(sums, rows, COLUMNS)
    for order in ([*range(9)], [*range(10), 4], [0, 0, *range(2, 10)]):
        assert written(sums, rows.take(order), COLUMNS) != expected
    # The cells of two rows change places.
    swapped = rows["c0"].take(pa.array([1, 0, *range(2, 10)]))
    assert written(sums, rows.set_column(rows.column_names.index("c0"), "c0", swapped), COLUMNS) != expected


@BOTH
def test_values_of_columns_that_are_newer_or_retired(make: Any) -> None:
    """A file from before its key had a column has the value rescued; one that has a retired column has it there."""
    sums = make(RowShape(schema_of({"a": "string", "n": "list<long>"}, rescued=True)))
    expected = read(sums.lines({}), b'{"a":"1","n":[5, 6],"gone":"g"}\n{"n":["x"],"a":null}\n')[2]
    rescued = pa.map_(pa.string(), pa.string())
    rows = pa.table(
        {
            "c0": ["1", None],
            "old": ["g", None],
            "_rescued_data": pa.array([[("n", "[5, 6]")], [("n", '["x"]')]], rescued),
            "_source_file": ["f", "f"],
        }
    )
    columns = FileColumns({"a": "c0"}, frozenset({"n"}), {"old": "gone"}, "_rescued_data")
    assert written(sums, rows, columns) == {"f": expected}


@pytest.mark.parametrize("first", range(10))
def test_few_values_among_many_nulls(first: int) -> None:
    """Each value counts for its row, wherever the rows begin in their buffers."""
    sums = NativeSums(RowShape(schema_of({"a": "string", "b": "long"})), digest_kernel)
    texts = [f"{row}" if row in {0, 7, 8, 15, 16, 40, 63, 64, 99} else None for row in range(100)]
    numbers = [row if row % 17 == 3 else None for row in range(100)]
    rows = pa.table({"c0": texts, "c1": pa.array(numbers, pa.int64()), "_source_file": ["f"] * 100})
    lines = [{"a": text, "b": number} for text, number in zip(texts[first:], numbers[first:], strict=True)]
    expected = read(sums.slow_lines({}), b"".join(orjson.dumps(line) + b"\n" for line in lines))[2]
    sliced = rows.to_batches()[0].slice(first)
    opened: Any = SimpleNamespace(parquet=_parquet(rows), batches=lambda _, names: [sliced.select(names)])
    columns = FileColumns({"a": "c0", "b": "c1"}, frozenset(), {}, None)
    assert [*sums.written(opened, columns, by_source=True)] == [("f", expected)]


def test_torture_lines_add_up_as_by_python() -> None:
    """All at once and each alone; with values of the path, which a line that has the key itself keeps out."""
    lines = [*GOOD_LINES, *(line for line, _ in BAD_LINES), *DEEP_LINES, *LONG_KEY_LINES, *GOOD_LINES]
    for data in (b"\n".join(lines), *lines):
        for path_columns in ({}, {"id": "of the path", "other": "x"}):
            check_sums(data, schema_of({"id": "string", "a": "long"}, rescued=True), path_columns)


@pytest.mark.parametrize(
    ("line", "same"),
    [
        (b'{"a":"x","b":2}', b' { "b" : 2 , "a":"\\u0078"}\t\r'),
        (b'{"a":1,"a":null,"a":"x"}', b'{"a":"x"}'),
        (b'{"a":"x","a":null}', b'{"a":null}'),
        (b'{"\\u0061":"\\ud83d\\ude00"}', '{"a":"😀"}'.encode()),
        (b'{"z":"\\n","y":[1, {"x":"]"}]}', b'{"y":[1, {"x":"]"}],"z":"\\u000A"}'),
    ],
)
def test_lines_of_the_same_row(line: bytes, same: bytes) -> None:
    sums = NativeSums(RowShape(schema_of({"a": "string"}, rescued=True)), digest_kernel)
    assert read(sums.lines({}), line)[2] == read(sums.lines({}), same)[2]


def test_many_further_keys_need_no_more_memory() -> None:
    """Keys are forgotten, and their values still count."""
    lines = [b'{"id":"%d","k%d":%d,"k%d":null}' % (number, number, number, number + 1) for number in range(60_000)]
    check_sums(b"\n".join(lines) + b"\n", schema_of({"id": "string"}, rescued=True))


class _Wrong:
    """A kernel that misreads one value."""

    def __init__(self, columns: Any) -> None:
        self.kernel = digest_kernel(columns)
        self.rows = self.kernel.rows

    def lines(self, block: bytes, constants: Any) -> Any:
        return self.kernel.lines(block.replace(b"[1.0]", b"[1]"), constants)


def test_python_reads_a_sample_of_all_lines() -> None:
    """A kernel that misreads many lines is found out; what it is not sure of is read by Python."""
    sums = NativeSums(RowShape(schema_of({"a": "string"})), _Wrong)
    data = b'{"a":[1.0]}\n' * (BLOCK_BYTES // 10)
    with pytest.raises(ParsersDifferError):
        read(sums.lines({}), data)
    assert read(sums.slow_lines({}), data)[2].rows == BLOCK_BYTES // 10


@pytest.mark.parametrize("characters", [1, 300, 40_000])
def test_python_reads_little(monkeypatch: pytest.MonkeyPatch, characters: int) -> None:
    """So a comparison takes about as long as to convert, however long lines are: all that is doubtful, and a sample."""
    seen: list[bytes] = []
    monkeypatch.setattr(row_sums, "texts", lambda line: seen.append(line) or rawjson.texts(line))
    sums = NativeSums(RowShape(SCHEMA), digest_kernel)
    deep = b'{"text":' + b"[" * 100 + b"]" * 100 + b"}\n"
    record = b'{"text":"' + b"x" * characters + b'"}\n'
    data = (record * (600_000 // len(record)) + deep) * 10
    assert read(sums.lines({}), data)[2].rows == data.count(b"\n")
    assert seen.count(deep[:-1]) == 10
    sampled = [line for line in seen if line != deep[:-1]]
    assert 0 < len(sampled) <= len(data) / SAMPLED_BYTES + len(data) / BLOCK_BYTES + 1
    assert sum(map(len, sampled)) <= len(data) / SAMPLED_SHARE + SAMPLED_BYTES


def test_rows_that_are_not_there_are_refused() -> None:
    """Buffers of other types than the columns have are no rows."""
    kernel = digest_kernel({"a": parse_type("long"), "b": parse_type("list<long>")})
    good: KernelArray = (0, None, None, (7).to_bytes(8, "little"), [])
    short: KernelArray = (0, None, None, good[3][1:], [])
    offsets = (0).to_bytes(4, "little") + (1).to_bytes(4, "little")
    lists: list[KernelArray] = [(0, None, offsets, b"", parts) for parts in ([good], [short], [good, good])]
    assert [rows for rows, _ in kernel.rows(KernelRows(1, [(0, good), (1, lists[0])], [1]))] == [1]
    wrong = [(2, 0, good), (1, 2, good), (1, 0, short), (2, 1, lists[0]), (1, 1, lists[1]), (1, 1, lists[2])]
    for rows, number, array in [*wrong, (1, 1, good)]:
        with pytest.raises(ValueError, match="buffers that do not have these rows"):
            kernel.rows(KernelRows(rows, [(number, array)], [rows]))
