"""Footers say which columns are variants."""

import io
from collections.abc import Sequence
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from compactor.core.errors import SettingsError
from compactor.engines.parquet_files import is_variant, nulls, type_name
from compactor.engines.variant_footers import check_arrow, parquet_writer

HALVES = ("metadata", "value")
VALUE = {"metadata": b"\x11\x00\x00", "value": b"\x03\x00\x00"}


def variant(halves: Sequence[str] = HALVES, kind: pa.DataType = None) -> pa.DataType:
    return pa.struct([pa.field(half, kind or pa.binary(), nullable=False) for half in halves])


def written(schema: pa.Schema, table: pa.Table, **options: Any) -> bytes:
    sink = io.BytesIO()
    with parquet_writer(sink, schema, **options) as writer:
        writer.write_table(table)
    return sink.getvalue()


@pytest.mark.parametrize("halves", [HALVES, HALVES[::-1]])
@pytest.mark.parametrize("rows", [0, 1, 3_000])
def test_columns_of_variants(halves: Sequence[str], rows: int) -> None:
    """Alone of all columns, whichever half comes first; the rest of the file is as Arrow writes it."""
    fields = [pa.field("a", pa.string()), pa.field("v.x", variant(halves)), pa.field("metadata", pa.binary())]
    schema = pa.schema([field.with_metadata({"PARQUET:field_id": str(at)}) for at, field in enumerate(fields, 1)])
    values = [VALUE if at % 3 else None for at in range(rows)]
    columns = {"a": ["x"] * rows, "v.x": pa.array(values, variant(halves)), "metadata": [b""] * rows}
    table = pa.table(columns, schema=schema)
    data = written(schema, table, compression="zstd")
    found = pq.ParquetFile(io.BytesIO(data))
    assert str(found.schema).count("(Variant(1))") == 1
    assert "group field_id=2 v.x (Variant(1))" in str(found.schema)
    assert found.read().equals(table)
    assert found.schema_arrow.equals(schema, check_metadata=True)
    for group in map(found.metadata.row_group, range(found.metadata.num_row_groups if rows else 0)):
        columns = {each.path_in_schema: each for each in map(group.column, range(group.num_columns))}
        assert {name for name, each in columns.items() if each.statistics is None} == {"v.x.metadata", "v.x.value"}
        assert "RLE_DICTIONARY" not in columns["v.x.value"].encodings
        assert "RLE_DICTIONARY" in columns["v.x.metadata"].encodings


def test_files_without_variants() -> None:
    """Are those that Arrow writes."""
    table = pa.table({"a": ["x", None], "s": [{"b": 1}, None]})
    plain = io.BytesIO()
    pq.write_table(table, plain, store_schema=False)
    assert written(table.schema, table) == plain.getvalue()


@pytest.mark.parametrize(
    ("kind", "is_one"),
    [
        (variant(), True),
        (variant(HALVES[::-1]), True),
        (variant(("metadata",)), False),
        (variant((*HALVES, "typed_value")), False),
        (variant(kind=pa.string()), False),
        (pa.binary(), False),
    ],
)
def test_types(kind: pa.DataType, is_one: bool) -> None:
    assert is_variant(kind) is is_one
    assert (type_name(kind) == "variant") is is_one


@pytest.mark.parametrize("kind", [variant(), variant(HALVES[::-1]), pa.string(), pa.map_(pa.string(), pa.string())])
def test_nulls(kind: pa.DataType) -> None:
    """Can be written, and are read as such."""
    table = pa.table({"a": nulls(3, kind)})
    assert pq.read_table(io.BytesIO(written(table.schema, table))).column("a").to_pylist() == [None] * 3


def test_versions_of_arrow() -> None:
    """Earlier ones could not read what they write."""
    check_arrow()
    check_arrow("21.0.0")
    with pytest.raises(SettingsError, match=r"type variant with pyarrow 20\.0\.0 -> expected pyarrow 21 or later"):
        check_arrow("20.0.0")
