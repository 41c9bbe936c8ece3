"""Columns of lists, structs and maps: both engines make the same rows, and what verifies them expects these rows."""

import io
import json
import re
from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any

import orjson
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from compactor.adapters.local.native.kernel import NativeKernel, digest_kernel
from compactor.engines.parquet_files import arrow_field, python_values, type_name
from compactor.engines.spark.python_rows import PythonRows
from compactor.ndjson.nested_values import fitted
from compactor.ops.verify.native_sums import NativeSums
from compactor.ops.verify.row_sums import FileColumns, RowShape, Sum
from compactor.schema.column_types import MAX_LEVELS, MAX_SLOTS, ColumnType, canonical_text, parse_type
from compactor.schema.schema import SchemaVersion
from tests.support import extras
from tests.support.memory_store import MemoryStore
from tests.support.native_rows import ended, feed, plan_of, schema_of
from tests.support.row_sums import read

pytest.importorskip("compactor_native", reason=extras.NATIVE.reason)

KEYS = ("a", "b", "long key", "é", "`")
PLAIN = ("string", "long", "double", "decimal(5,2)", "boolean", "date", "timestamp", "timestamp_ntz", "timestamp_ns")


def nested(inner: st.SearchStrategy[ColumnType]) -> st.SearchStrategy[ColumnType]:
    fields = st.lists(st.tuples(st.sampled_from(KEYS), inner), min_size=1, max_size=3, unique_by=lambda pair: pair[0])
    return st.one_of(
        inner.map(lambda part: ColumnType("list", parts=(part,))),
        inner.map(lambda part: ColumnType("map", parts=(part,))),
        fields.map(lambda pairs: ColumnType("struct", names=(*dict(pairs),), parts=(*dict(pairs).values(),))),
    )


SCALARS = st.sampled_from(PLAIN).map(parse_type)
TYPES = nested(st.one_of(SCALARS, nested(st.one_of(SCALARS, nested(SCALARS)))))
WORDS = ("1", "-7", "1.50", "1e400", "0.125", "true", "null", '"x"', '"5"', '"\\u00e9\\n"', '"2025-12-21"', '"1.5"')
TIMES = ('"2025-12-21T01:02:03.5Z"', '"2025-12-21 01:02:03"', '"2025-12-21T01:02:03.123456789Z"', '{"$date": 5}')
BROKEN = ('"[1"', '"[1],[2]"', '"{}}"', '"[1,\\n2]"', '"[01]"', '" []"', '"[1e400]"', f'"{"[" * 1023}{"]" * 1023}"')
DEEP = f'"{"[" * 1024}{"]" * 1024}"'
SPACES = st.sampled_from(["", "", " ", "\t\r"])


@st.composite
def texts(draw: st.DrawFn, column_type: ColumnType, depth: int = 3) -> str:
    """JSON that fits a type, or nearly, or by chance."""
    kind = draw(st.sampled_from([column_type.kind, column_type.kind, column_type.kind, "list", "map", "string"]))
    if depth == 0 or kind not in ("list", "struct", "map"):
        return draw(st.sampled_from((*WORDS, *TIMES, *BROKEN, DEEP)))
    parts = column_type.parts or (ColumnType("long"),)
    space = draw(SPACES)
    if kind == "list":
        found = draw(st.lists(texts(parts[0], depth - 1), max_size=4))
        text = f"[{space}{f',{space}'.join(found)}{space}]"
    else:
        count = draw(st.integers(0, 4)) if kind == "struct" else draw(st.sampled_from([0, 1, 2, 3, 20, 40]))
        known = [*zip(column_type.names, parts, strict=True)] if kind == column_type.kind == "struct" else []
        pairs = []
        for at in range(count):
            key, part = draw(st.sampled_from(known)) if known and draw(st.booleans()) else (None, parts[0])
            written = json.dumps(key or draw(st.sampled_from([*KEYS, str(at)])), ensure_ascii=draw(st.booleans()))
            pairs.append(f"{written}{space}:{draw(texts(part, depth - 1 if count < 5 else 0))}")
        text = f"{{{space}{f',{space}'.join(pairs)}{space}}}"
    return json.dumps(text) if draw(st.integers(0, 5)) == 0 else text


COLUMN = TYPES.flatmap(lambda kind: st.tuples(st.just(kind), st.lists(st.one_of(st.none(), texts(kind)), max_size=6)))


def by_kernel(files: Sequence[bytes], schema: SchemaVersion, withdrawn: bytes) -> tuple[pa.Table, int]:
    """The rows of files, between which one was withdrawn; without that, each row is written by itself."""
    kernel = NativeKernel(plan_of(schema, held_bytes=1 << 24 if withdrawn else 1))
    for data in files:
        kernel.begin_file("file")
        feed(kernel, data)
        kernel.end_file()
        kernel.begin_file("withdrawn")
        feed(kernel, withdrawn)
        assert kernel.withdraw_file()
    return pq.read_table(io.BytesIO(ended(kernel))), kernel.rescued_values


def in_python(lines: bytes, schema: SchemaVersion, folder: Any) -> tuple[pa.Table, int]:
    store, rows, path = MemoryStore(), PythonRows(plan_of(schema)), folder / "lines"
    path.write_bytes(lines)
    (uri,) = rows.write(store, "s3://out/", 0, [(path, "s3://in/a")])
    return pq.read_table(pa.BufferReader(store.read(uri))), rows.rescued_values


def sum_of(sums: NativeSums, table: pa.Table) -> Sum:
    """The sum of rows that were read, in Python."""
    found = Sum()
    columns = [python_values(table[name].combine_chunks()) for name in sums.shape.names.values()]
    types = [sums.shape.types[key] for key in sums.shape.names]
    for rescued, *values in zip(table["_rescued_data"].to_pylist(), *columns, strict=True):
        pairs = zip(values, types, strict=True)
        row = [None if value is None else canonical_text(value, kind) for value, kind in pairs]
        found.add([*row, sorted(rescued or ())])
    return found


def natively(sums: NativeSums, table: pa.Table) -> Sum:
    """The sum of rows that were read, by the kernel."""
    opened: Any = SimpleNamespace(
        parquet=SimpleNamespace(metadata=SimpleNamespace(row_group=None), num_row_groups=0),
        batches=lambda _, names: table.select(names).to_batches(max_chunksize=3),
    )
    found = Sum()
    for _, part in sums.written(opened, FileColumns({"v": "c0"}, frozenset(), {}, "_rescued_data"), by_source=False):
        found.merge(part)
    return found


@given(COLUMN)
@example((parse_type("list<long>"), ["[1]", "[ ]", "[null]", '["x"]', DEEP, *BROKEN]))
@example((parse_type("map<string,long>"), ['{"\\u0061":1,"a":2}', '{"a":null}', "[]"]))
@example((parse_type("struct<a:string>"), ['{"a":[1, 2]}', '{"b":null}', '{"b":1}', '{"a":1,"a":null}']))
@example((parse_type("list<list<long>>"), [*[None] * 40, '["[1]",[2]]', *[None] * 3, "[[]]"]))
def test_both_engines_make_the_rows_that_are_expected(tmp_path_factory, column):
    """The same table by both engines, whatever the text; nothing is lost; and all sums of its rows are equal."""
    kind, values = column
    schema = schema_of({"v": str(kind)})
    each = [b"{}\n" if text is None else f'{{"v":{text}}}\n'.encode() for text in values]
    lines = b"".join(each)
    files = [b"".join(each[: len(each) // 2]), b"".join(each[len(each) // 2 :])]
    sums = NativeSums(RowShape(schema), digest_kernel)
    assert read(sums.lines({}), lines) == read(sums.slow_lines({}), lines)
    if not values:
        return
    found, misfits = by_kernel(files, schema, withdrawn=b"".join(each[::-1]))
    assert by_kernel([lines], schema, withdrawn=b"") == (found, misfits)
    expected, expected_misfits = in_python(lines, schema, tmp_path_factory.mktemp("rows"))
    assert (found.schema, misfits) == (expected.schema, expected_misfits)
    assert found.equals(expected)
    assert [type_name(each) for each in found.schema.types] == [str(kind), "map<string,string>"]
    in_lines = Sum()
    for line in lines.split(b"\n")[:-1]:
        values_of_row, rescued = sums.shape.row(line, {})
        in_lines.add([*values_of_row, sorted(rescued)])
    assert in_lines == sum_of(sums, found)
    assert natively(sums, found) == read(sums.lines({}), lines)[2]


def test_a_value_of_very_many_parts_is_rescued(tmp_path_factory):
    """A short text would take much memory: `{}` is a value of each part of a struct."""
    kind = parse_type(f"list<struct<{','.join(f'a{at}:long' for at in range(400))}>>")
    most = MAX_SLOTS // kind.field_ids
    values = [f"[{','.join(['{}'] * count)}]" for count in (most, most + 1)]
    written = [*values, json.dumps(values[1]), json.dumps(values[1]).replace("{", "\\u007b")]
    lines, schema = b"".join(f'{{"v":{each}}}\n'.encode() for each in written), schema_of({"v": str(kind)})
    found, misfits = by_kernel([lines], schema, withdrawn=b"")
    assert (found["c0"].is_valid().to_pylist(), misfits) == ([True, False, False, False], 3)
    expected, _ = in_python(lines, schema, tmp_path_factory.mktemp("rows"))
    assert found["_rescued_data"].to_pylist() == expected["_rescued_data"].to_pylist()
    assert expected["c0"].is_valid().to_pylist() == [True, False, False, False]
    sums = NativeSums(RowShape(schema), digest_kernel)
    assert natively(sums, found) == read(sums.lines({}), lines)[2] == read(sums.slow_lines({}), lines)[2]


@given(COLUMN)
def test_a_canonical_text_has_the_same_value(column):
    kind, values = column
    for text in filter(None, values):
        parsed = text if text[0] != '"' else orjson.loads(text)
        value, _ = fitted(parsed, kind)
        if value is not None:
            assert fitted(canonical_text(value, kind), kind) == (value, True)


@given(TYPES)
def test_the_text_of_a_type_is_read_again(kind):
    assert parse_type(str(kind)) == kind
    assert parse_type(str(kind).replace(",", ", ").replace("<", "< ")) == kind
    field = arrow_field("c", str(kind), 7)
    assert (type_name(field.type), field.metadata) == (str(kind), {b"PARQUET:field_id": b"7"})


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("list<>", "string, long, "),
        ("list<text>", "string, long, "),
        ("list<long", "> at character 10"),
        ("list<long>>", "the end at character 11"),
        ("map<long,long>", "string, as all keys are"),
        ("struct<>", "a key, in backquotes unless it is a word, and a colon at character 8"),
        ("struct<a-b:long>", "a key, in backquotes"),
        ("struct<a:long,A:long>", "a key that differs from the others, ignoring case at character 15"),
        ("struct<a:long b:long>", ", or > at character 15"),
        (f"{'list<' * (MAX_LEVELS + 1)}long{'>' * (MAX_LEVELS + 1)}", f"at most {MAX_LEVELS} levels"),
        (f"struct<{','.join(f'a{at}:long' for at in range(500))}>", "a type of at most 500 parts"),
    ],
)
def test_a_wrong_type_is_refused_with_what_was_expected(text, expected):
    with pytest.raises(ValueError, match=f"^{re.escape(expected)}"):
        parse_type(text)
