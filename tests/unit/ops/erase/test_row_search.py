"""Finds the rows of a Parquet file that hold a value, and reads no row group whose statistics rule it out."""

from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from compactor.adapters.local.store import LocalStore
from compactor.engines.parquet_files import arrow_field, open_parquet
from compactor.ops.erase.search import RowSearch
from compactor.ops.erase.wanted import Wanted, compared_type, path_of
from compactor.schema.schema import RESCUED_COLUMN, Column
from compactor.table.merging.committed_rows import OpenedRows

RESCUED = pa.map_(pa.string(), pa.string())
TYPES: dict[str, tuple[pa.DataType, Any, Any]] = {
    "long": (pa.int64(), 7, 8),
    "double": (pa.float64(), 7.5, 8.0),
    "decimal(10,2)": (pa.decimal128(10, 2), Decimal("7.50"), Decimal("8.00")),
    "boolean": (pa.bool_(), True, False),
    "date": (pa.date32(), date(2026, 1, 2), date(2026, 1, 3)),
    "timestamp": (pa.timestamp("us", "UTC"), datetime(2026, 1, 2, tzinfo=UTC), datetime(2026, 1, 3, tzinfo=UTC)),
}
TEXTS = frozenset({"7", "7.5", "true", "2026-01-02", "2026-01-02T00:00:00Z"})


class CountingStore(LocalStore):
    """Counts the bytes that are read."""

    read_bytes = 0

    def read_range(self, uri: str, start: int, length: int, *, etag: str | None = None) -> bytes:
        self.read_bytes += length
        return super().read_range(uri, start, length, etag=etag)


def found(path: Path, column: Column | None, key: str, values: frozenset[str]) -> tuple[list[int], int]:
    """The numbers of the rows that hold a value, and how many bytes were read."""
    store = CountingStore()
    # The registry only tells the column, which is given here.
    keys = path_of(key)
    wanted = Wanted(keys, values, compared_type(column, keys))
    search = RowSearch(rows=None, registry=None, wanted=wanted)  # type: ignore[arg-type]
    parquet, size_bytes = open_parquet(store, str(path))
    opened = OpenedRows(str(path), parquet, size_bytes, range(parquet.metadata.num_rows), is_moved=False)
    rows, first = list[int](), 0
    for group, mask in search.masks(opened, column):
        rows += [first + at for at, holds in enumerate(mask.to_pylist() if mask is not None else ()) if holds]
        first += group.rows
    return rows, store.read_bytes


def column(name: str, type_: str = "string") -> Column:
    return Column(key=name, name=name, added_in=1, type=type_)


def test_text_is_found_where_it_can_be(tmp_path: Path) -> None:
    """One of forty row groups is read."""
    path, ids = tmp_path / "a.parquet", [f"{number:06d}" for number in range(20_000)]
    pq.write_table(pa.table({"id": ids, "n": ids}), path, row_group_size=500, use_dictionary=False)
    assert found(path, column("id"), "id", frozenset({"001234", "9"}))[0] == [1234]
    all_bytes = found(path, column("id"), "id", frozenset(ids))[1]
    footer_bytes = found(path, column("id"), "id", frozenset({"none"}))[1]
    one_group = found(path, column("id"), "id", frozenset({"001234"}))[1] - footer_bytes
    assert 0 < one_group < (all_bytes - footer_bytes) / 10


def test_nested_values_are_found(tmp_path: Path) -> None:
    """In JSON text of the column, also without statistics; nulls and other texts do no harm."""
    texts = [
        None,
        "ann",
        '["bob"]',
        '["ann"]',
        '{"id": "ann"}',
        '{"id": "\\u0061nn"}',
        '[{"id": "ann"}]',
        "{broken ann",
    ]
    for statistics in (True, False):
        path = tmp_path / f"{statistics}.parquet"
        pq.write_table(pa.table({"user": texts}), path, row_group_size=2, write_statistics=statistics)
        assert found(path, column("user"), "user", frozenset({"ann"}))[0] == [1, 3, 7]
        assert found(path, column("user"), "/user/id", frozenset({"ann"}))[0] == [4, 5, 6, 7]


@pytest.mark.parametrize("name", TYPES)
def test_typed_values_are_found(tmp_path: Path, name: str) -> None:
    """By what the text means in the type of the column."""
    kind, wanted, other = TYPES[name]
    path = tmp_path / "a.parquet"
    pq.write_table(pa.table({"id": pa.array([other, None, wanted, other], kind)}), path, row_group_size=2)
    assert found(path, column("id", name), "id", TEXTS)[0] == [2]
    assert found(path, column("id", name), "id", frozenset({"no value of it"}))[0] == []


def test_values_of_nested_columns_are_found(tmp_path: Path) -> None:
    """By what the text means in the type of the part at the path, or of its elements, and by text in JSON below it."""
    kind = "struct<ids:list<double>,by:map<string,string>>"
    rows = [None, {"ids": [8.0, 7.0]}, {"ids": None, "by": [("x", "ann"), ("y", '{"z":"bob"}')]}, {"ids": [70.0]}]
    path = tmp_path / "a.parquet"
    field = arrow_field("user", kind, 1)
    pq.write_table(pa.table({"user": pa.array(rows, field.type)}, pa.schema([field])), path)
    for key, value, expected in (
        ("/user/ids", "7", [1]),
        ("/user/ids", "70e-1", [1]),
        ("/user/by/x", "ann", [2]),
        ("/user/by/y/z", "bob", [2]),
        ("/user/by", "ann", []),
        ("user", "7", []),
        ("/user/other", "7", []),
    ):
        assert found(path, column("user", kind), key, frozenset({value}))[0] == expected, key
    line = b'{"user": {"ids": ["8", 70.0e-1]}}'
    for key, is_there in (("/user/ids", True), ("/user/by", False)):
        path_to = path_of(key)
        wanted = Wanted(path_to, frozenset({"7"}), compared_type(column("user", kind), path_to))
        assert wanted.in_line(line) is is_there


def test_rescued_values_are_found(tmp_path: Path) -> None:
    """Those of the key, beside its column or without one, and none of other keys."""
    rescued = pa.array([[("id", "ann")], [("n", "ann")], None, [("n", "x"), ("id", '["ann"]')]], RESCUED)
    path = tmp_path / "a.parquet"
    table = pa.table({"id": ["x", "ann", "y", "z"], RESCUED_COLUMN: rescued})
    pq.write_table(table, path, row_group_size=3)
    assert found(path, column("id"), "id", frozenset({"ann"}))[0] == [0, 1, 3]
    assert found(path, None, "id", frozenset({"ann"}))[0] == [0, 3]
    assert found(path, None, "other", frozenset({"ann"}))[0] == []
