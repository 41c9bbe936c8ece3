"""Promises about reading stored Parquet files."""

import io
import threading
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from compactor.engines.parquet_files import DAMAGED, StoredParquet, open_parquet
from compactor.sources.inventory import tables
from tests.support.memory_store import MemoryStore

COLUMNS = tuple(f"column_{number}" for number in range(20))


@pytest.fixture
def readers(monkeypatch: pytest.MonkeyPatch) -> set[int]:
    """The threads that read a stored object."""
    found: set[int] = set()
    read_range = MemoryStore.read_range

    def noted(self: MemoryStore, *args: Any, **options: Any) -> bytes:
        found.add(threading.get_ident())
        return read_range(self, *args, **options)

    monkeypatch.setattr(MemoryStore, "read_range", noted)
    return found


def stored() -> MemoryStore:
    """A store with one file of two row groups."""
    pq.write_table(pa.table({name: ["a", "b"] for name in COLUMNS}), sink := io.BytesIO(), row_group_size=1)
    store = MemoryStore()
    store.put("/s/file", sink.getvalue())
    return store


def test_a_page_whose_bytes_have_changed() -> None:
    """It is not read as a value of the file: a merge or an erasure would write it anew, with a checksum."""
    sink = io.BytesIO()
    options = {"use_dictionary": False, "write_statistics": False, "compression": "none"}
    pq.write_table(pa.table({"a": ["value"]}), sink, write_page_checksum=True, **options)
    content = sink.getvalue()
    store = MemoryStore()
    store.put("/s/file", content.replace(b"value", b"valve", 1))
    file, _ = open_parquet(store, "/s/file")
    with pytest.raises(DAMAGED, match="CRC"):
        file.read_row_group(0)


def test_arrows_threads_read_nothing(readers: set[int]) -> None:
    """They would call Python, perhaps while it ends, and the process would abort after its work."""
    file, _ = open_parquet(stored(), "/s/file")
    assert isinstance(file, StoredParquet)
    assert [batch.num_rows for batch in file.iter_batches(batch_size=2)] == [2]
    assert [batch.num_columns for batch in file.iter_batches(row_groups=[1], columns=["column_3", "column_4"])] == [2]
    assert file.read_row_group(0).num_columns == len(COLUMNS)
    assert readers == {threading.get_ident()}


def test_arrows_threads_read_no_inventory() -> None:
    """As above: its files are read through Python, too."""
    readers: set[int] = set()

    class Noted(io.BytesIO):
        def read(self, size: int | None = -1, /) -> bytes:
            readers.add(threading.get_ident())
            return super().read(size)

    names = ("bucket", "key", "size", "last_modified_date", "e_tag", "storage_class", "is_latest", "is_delete_marker")
    table = pa.table({name: [f"{number:x}" for number in range(30_000)] for name in names})
    pq.write_table(table, file := Noted(), row_group_size=10_000)
    assert sum(len(batch["key"]) for batch in tables._parquet_batches(file, "here")) == len(table)
    assert readers == {threading.get_ident()}
