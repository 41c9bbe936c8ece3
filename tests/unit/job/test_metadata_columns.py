"""The column `file_date`, beside files without it, and beside a key that has its name since an earlier release."""

import io
from collections import Counter
from dataclasses import replace
from datetime import UTC, date, datetime

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from compactor.adapters.memory.store import MemoryStore
from compactor.ops.rebuild.same_rows import Found, found_at
from compactor.schema.catalog import catalog_columns
from compactor.schema.schema import Column, RetiredColumn, SchemaVersion
from tests.support.fakes import PlainEngine
from tests.support.harness import DAY, Harness
from tests.support.logged import events_logged
from tests.support.parquet_ids import field_ids

DEFAULT = {"metadata_columns": ["file_date"]}
WITH_KEY = b'{"id":"1","file_date":"the first"}\n{"id":"2"}\n'


class EarlierEngine(PlainEngine):
    """Writes files without field ids."""

    def _table(self, *args):
        found = super()._table(*args)
        return pa.table({name: found.column(name) for name in found.column_names})


def with_default(harness: Harness) -> None:
    """Go on with the default of this release."""
    schema = harness.settings.schema.model_copy(update={"metadata_columns": ("file_date",)})
    harness.settings = replace(harness.settings, schema=schema)


def store_version(harness: Harness, version: SchemaVersion) -> None:
    """Store a version as earlier releases did: without field ids."""
    text = version.model_dump_json(exclude={"columns": {"__all__": {"field_id"}}})
    harness.store.put(harness.layout.schema(version.version), text.encode())


def files(harness: Harness, manifest_id: str) -> list[io.BytesIO]:
    return [io.BytesIO(harness.store.read(file.final)) for file in harness.commit(manifest_id).outputs]


def test_files_of_two_releases() -> None:
    """Files without the column and without ids stay valid beside new ones, which have the ids of the registry."""
    harness = Harness()
    harness.deliver("m1", b'{"b":"1","a":"2"}\n')
    harness.run_once(engine=EarlierEngine(harness.store))
    store_version(harness, harness.app().registry.latest())
    with_default(harness)
    harness.deliver("m2", b'{"c":"1","a":"2"}\n')
    harness.run_once()

    (old,), (new,) = files(harness, "m1"), files(harness, "m2")
    assert field_ids(old) == {"b": None, "a": None}
    assert field_ids(new) == {"file_date": 10_000_004, "b": 1, "a": 2, "c": 3}
    assert pq.read_table(new).column("file_date").to_pylist() == [date.fromisoformat(DAY)]
    report = harness.verification()
    assert (report.discrepancies, report.manifests) == ([], 2)
    both = pa.concat_tables([pq.read_table(old), pq.read_table(new)], promote_options="default")
    assert Counter(both.column("a").to_pylist()) == {"2": 2}


@pytest.mark.parametrize("is_retired", [False, True])
def test_key_has_the_name_already(is_retired: bool) -> None:
    """It keeps its column, there is no other of that name, and the log says so; also if its column was retired."""
    harness = Harness(schema=DEFAULT)
    version = 1
    columns = (Column(key="id", name="id", added_in=1), Column(key="file_date", name="file_date", added_in=1))
    first = SchemaVersion(version=1, created_at=datetime(2026, 1, 1, tzinfo=UTC), manifest_id="m0", columns=columns)
    store_version(harness, first)
    if is_retired:
        version = harness.app().registry.retire(["file_date"]).version
    harness.deliver("m1", WITH_KEY)
    with events_logged("columns.left_out") as told:
        harness.app().threaded_service(1)
    harness.run_once()

    assert told == [{"column": "file_date"}]
    schema = harness.app().registry.latest()
    assert schema.version == version
    (file,) = files(harness, "m1")
    rows = pq.read_table(file).to_pylist()
    if is_retired:
        assert schema.retired == (RetiredColumn(key="file_date", name="file_date", retired_in=2, field_id=2),)
        assert rows[0] == {"id": "1", "_rescued_data": [("file_date", "the first")]}
        assert "file_date" not in catalog_columns(schema, ["file_date"])
    else:
        assert rows[0] == {"id": "1", "file_date": "the first"}
        assert catalog_columns(schema, ["file_date"])["file_date"] == "string"
    assert harness.verification().discrepancies == []


def test_key_of_a_new_registry() -> None:
    """It gets another name, as keys with the names of other metadata columns do."""
    harness = Harness(schema=DEFAULT)
    harness.deliver("m1", WITH_KEY)
    with events_logged("columns.left_out") as told:
        harness.app().threaded_service(1)
    harness.run_once()
    (file,) = files(harness, "m1")
    day = date.fromisoformat(DAY)
    rows = [
        {"file_date": day, "id": "1", "file_date__2": "the first"},
        {"file_date": day, "id": "2", "file_date__2": None},
    ]
    assert pq.read_table(file).to_pylist() == rows
    assert told == []
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
