"""A copy of a Parquet file has ids for the keys and values of its rescued data, and is otherwise the same."""

import io
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from compactor.core.errors import StagingError
from compactor.engines.spark.footers import COPY_BYTES, WholeFooterTask, copy_with_whole_footer
from tests.support.memory_store import MemoryStore
from tests.support.parquet_ids import field_ids

TASK = WholeFooterTask("/s/out/part-0.parquet", "/s/ids/")
MAP = pa.map_(pa.string(), pa.string())


def with_id(name: str, kind: pa.DataType, number: int) -> pa.Field:
    return pa.field(name, kind, metadata={"PARQUET:field_id": str(number)})


def stored(table: pa.Table, **options: Any) -> MemoryStore:
    """A store with a file."""
    pq.write_table(table, sink := io.BytesIO(), **options)
    store = MemoryStore()
    store.put(TASK.uri, sink.getvalue())
    return store


def table_of(rows: int) -> pa.Table:
    """Rows with a map between other columns, one of which is called as what is in the map."""
    fields = [
        with_id("a", pa.string(), 1),
        with_id("_rescued_data", MAP, 2),
        with_id("key_value", pa.decimal128(9, 2), 3),
        with_id("t", pa.timestamp("us", "UTC"), 4),
    ]
    rescued: list[Any] = [[("k", "v"), ("n", None)] if at % 2 else None for at in range(rows)]
    values = [[f"{at:09d}" for at in range(rows)], rescued, [None] * rows, list(range(rows))]
    return pa.table(values, schema=pa.schema(fields))


@pytest.mark.parametrize("compression", ["snappy", "zstd"])
@pytest.mark.parametrize("rows", [0, 3, 2_000])
def test_copy(compression: str, rows: int) -> None:
    """The rows, row groups, statistics and other ids stay; all columns can be read one by one."""
    table = table_of(rows)
    store = stored(table, compression=compression, row_group_size=700)
    copy = copy_with_whole_footer(store, TASK)
    assert copy.startswith("/s/ids/part-0-")
    data = store.read(copy)
    assert field_ids(io.BytesIO(data)) == {
        "a": 1,
        "_rescued_data": 2,
        "_rescued_data.key": 10_000_101,
        "_rescued_data.value": 10_000_102,
        "key_value": 3,
        "t": 4,
    }
    assert pq.read_table(io.BytesIO(data)).equals(table)
    for name in table.column_names:
        assert pq.read_table(io.BytesIO(data), columns=[name]).equals(table.select([name]))
    before, after = (pq.read_metadata(io.BytesIO(each)).to_dict() for each in (store.read(TASK.uri), data))
    assert {**after, "serialized_size": 0} == {**before, "serialized_size": 0}


def test_nothing_is_lacking() -> None:
    """A file without a map, or whose map has its ids, is taken as it is; so is a column that is no map."""
    for table in (pa.table({"_rescued_data": ["text"], "a": [1]}), pa.table({"a": pa.array([{"_rescued_data": 1}])})):
        assert copy_with_whole_footer(stored(table), TASK) == TASK.uri
    store = stored(table_of(3))
    done = WholeFooterTask(copy_with_whole_footer(store, TASK), TASK.folder)
    assert copy_with_whole_footer(store, done) == done.uri


def test_several_pieces() -> None:
    """A file is copied in pieces, and no two copies have the same name."""
    table = pa.table(
        [["x" * COPY_BYTES, "y" * 10], [None, None]], schema=pa.schema([("a", pa.string()), ("_rescued_data", MAP)])
    )
    store = stored(table, compression="none", use_dictionary=False)
    copies = [copy_with_whole_footer(store, TASK) for _ in range(2)]
    assert copies[0] != copies[1]
    assert all(pq.read_table(io.BytesIO(store.read(copy))).equals(table) for copy in copies)


@pytest.mark.parametrize("damage", ["gone", "empty", "short", "not parquet", "footer"])
def test_damaged(damage: str) -> None:
    """A file that is not whole is an error that names it."""
    store = stored(table_of(3))
    data = store.read(TASK.uri)
    footer = int.from_bytes(data[-8:-4], "little")
    damaged = {
        "empty": b"",
        "short": data[:-1],
        "not parquet": b"x" * 100,
        "footer": data[: -8 - footer] + b"\xff" * footer + data[-8:],
    }
    store.put(TASK.uri, damaged.get(damage, b""))
    if damage == "gone":
        store.delete([TASK.uri])
    with pytest.raises(StagingError, match="part-0"):
        copy_with_whole_footer(store, TASK)
