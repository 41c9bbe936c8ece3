"""The column `file_date`, beside files without it, and beside a key of its name."""

import io
from datetime import date

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from compactor.ops.rebuild.successor import Found, found_at
from tests.support.harness import DAY, Harness
from tests.support.memory_store import MemoryStore

DEFAULT = {"metadata_columns": ["file_date"]}
WITH_KEY = b'{"id":"1","file_date":"the first"}\n{"id":"2"}\n'


def files(harness: Harness, manifest_id: str) -> list[io.BytesIO]:
    return [io.BytesIO(harness.store.read(file.final)) for file in harness.commit(manifest_id).outputs]


def test_key_of_that_name() -> None:
    """It gets another name, as keys with the names of other metadata columns do."""
    harness = Harness(schema=DEFAULT)
    harness.deliver("m1", WITH_KEY)
    harness.run_once()
    (file,) = files(harness, "m1")
    day = date.fromisoformat(DAY)
    rows = [
        {"file_date": day, "id": "1", "file_date__2": "the first"},
        {"file_date": day, "id": "2", "file_date__2": None},
    ]
    assert pq.read_table(file).to_pylist() == rows
    assert harness.verification().discrepancies == []


@pytest.mark.parametrize(
    ("added", "expected"),
    [(pa.array([date(2026, 1, 2)] * 2), Found.SAME_ROWS), (pa.array(["x", "y"]), Found.OTHER_ROWS)],
)
def test_rows_with_and_without_the_date(added: pa.Array, expected: Found) -> None:
    """A rebuilt file with the date has the rows of the one without; a column of a key is no such date."""
    store = MemoryStore()
    for name, table in (("old", pa.table({"a": ["1", "2"]})), ("new", pa.table({"file_date": added, "a": ["1", "2"]}))):
        pq.write_table(table, sink := io.BytesIO())
        store.put(f"/s/{name}", sink.getvalue())
    assert found_at(store, "/s/old", "/s/new") is expected
    assert found_at(store, "/s/new", "/s/old") is expected
