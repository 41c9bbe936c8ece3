"""The columns file, by which readers of the whole output find every column."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest

from compactor.adapters.local.store import LocalStore
from compactor.core.crash_points import CrashPoint
from compactor.core.ports import ObjectStore
from compactor.engines.parquet_files import FIELD_ID
from compactor.schema.schema import SchemaVersion
from compactor.wiring import operating, streaming
from tests.support.fakes import FaultyStore
from tests.support.harness import DiedError, Harness, dying_at
from tests.support.sampling import few

FIRST = b'{"id": 1, "text": "a"}\n'
SECOND = b'{"id": 2, "late": "b", "at": {"x": 1}}\n'
PARTITION = {"folder": "date={date}", "partition_by": ["identity(text)", "bucket(id, 4)", "day(at)", "hour(at)"]}


def local(tmp_path: Path, **settings: Any) -> Harness:
    return Harness(root=str(tmp_path), store=LocalStore(), **settings)


def columns_of(harness: Harness) -> list[str]:
    """The columns that pyarrow finds in the whole output, with nothing said about them."""
    return list(ds.dataset(harness.layout.output).to_table().column_names)


def run(harness: Harness, manifest_id: str, lines: bytes, **options: Any) -> None:
    harness.runner(**options).run([harness.deliver(manifest_id, lines)])


@pytest.mark.parametrize("output", [{}, {"folder": "date={date}"}, {"folder": "by/day-{date}-utc"}, PARTITION])
def test_every_column_is_found(tmp_path: Path, output: dict[str, Any]) -> None:
    """A folder with later keys; the file has a level for each partition."""
    harness = local(tmp_path, output=output)
    run(harness, "m1", FIRST)
    assert harness.store.stat(harness.layout.columns_file()) is None, "all files have the same columns"
    run(harness, "m2", SECOND)
    assert columns_of(harness) == ["id", "text", "late", "at"]
    assert ds.dataset(harness.layout.output).count_rows() == 2
    assert not operating.verifier(harness.app()).verify_all().discrepancies
    [found] = list(Path(harness.layout.output).rglob("columns.parquet"))
    assert len(found.relative_to(harness.layout.columns_folder).parts) == 1 + len(output.get("partition_by", ()))
    assert found == min(Path(harness.layout.output).rglob("*.parquet"), key=str)


def test_a_damaged_name_is_named_and_rewritten(tmp_path: Path) -> None:
    harness = local(tmp_path)
    run(harness, "m1", FIRST)
    run(harness, "m2", SECOND)
    uri = harness.layout.columns_file()
    harness.store.put(uri, harness.store.read(uri).replace(b"late", b"lafe"))
    [found] = operating.verifier(harness.app()).verify_all().discrepancies
    assert (found.where, found.found) == (uri, "a column lafe of type string")
    run(harness, "m3", SECOND)
    assert not operating.verifier(harness.app()).verify_all().discrepancies
    assert columns_of(harness) == ["id", "text", "late", "at"]


def test_ids_and_types(tmp_path: Path) -> None:
    """The file has the names and types of the newest file of rows, and a field id for each column."""
    schema = tmp_path / "schema.toml"
    kinds = {"i": "long", "d": "double", "n": "decimal(18,2)", "b": "boolean", "o": "date", "t": "timestamp"}
    schema.write_text("".join(f'[[columns]]\nname = "{name}"\ntype = "{kind}"\n' for name, kind in kinds.items()))
    harness = local(tmp_path, schema={"file": str(schema), "metadata_columns": ["_source_file", "file_date"]})
    run(harness, "m1", FIRST)
    run(harness, "m2", SECOND)
    [rows] = [each.final for each in harness.commit("m2").outputs]
    found, expected = (pq.read_schema(each) for each in (harness.layout.columns_file(), rows))
    assert found.equals(expected)
    assert [int(each.metadata[FIELD_ID]) for each in found] == [10_000_001, 10_000_004, *range(1, 12)]


def test_a_whole_file_is_not_written_again(tmp_path: Path) -> None:
    """Each process looks once; one that finds what it would write leaves the file as it is."""
    harness = local(tmp_path)
    run(harness, "m1", FIRST)
    run(harness, "m2", SECOND)
    before = harness.store.stat(harness.layout.columns_file())
    app = local(tmp_path).app()
    streaming.publisher(app).cover_columns(app.registry.latest().version)
    assert before is not None
    assert harness.store.stat(harness.layout.columns_file()) == before


def test_retired_and_former_columns_stay(tmp_path: Path) -> None:
    """Older files have them."""
    harness = local(tmp_path, schema={"metadata_columns": ["_source_file"]})
    run(harness, "m1", FIRST)
    run(harness, "m2", SECOND)
    harness.app().registry.retire(["text"])
    after = local(tmp_path)
    run(after, "m3", b'{"id": 3, "last": 1}\n')
    assert columns_of(after) == ["id", "text", "late", "at", "_rescued_data", "last", "_source_file"]


def test_other_partitions_later(tmp_path: Path) -> None:
    """The file of former settings, which may sort before the new one, has new columns, too."""
    harness = local(tmp_path)
    run(harness, "m1", FIRST)
    run(harness, "m2", SECOND)
    after = local(tmp_path, output={"partition_by": ["identity(id)"]})
    run(after, "m3", b'{"id": 3, "last": 1}\n')
    assert columns_of(after) == ["id", "text", "late", "at", "last"]


@pytest.mark.parametrize("step", few(list(CrashPoint)[2:], 5))
def test_killed_at_any_step(tmp_path: Path, step: CrashPoint) -> None:
    """What is visible of a manifest with new keys has all its columns found, and the next run makes it whole."""
    harness = local(tmp_path)
    run(harness, "m1", FIRST)
    with pytest.raises(DiedError):
        run(harness, "m2", SECOND, on_crash_point=dying_at(step))
    visible = {name for file in Path(harness.layout.output).rglob("*.parquet") for name in pq.read_schema(file).names}
    assert set(columns_of(harness)) == visible
    harness.clock.advance(3600)
    harness.runner().run([harness.layout.manifest("m2")])
    assert columns_of(harness) == ["id", "text", "late", "at"]


@pytest.mark.parametrize("content", [None, b"", b"PAR1 damaged"])
def test_made_again(tmp_path: Path, content: bytes | None) -> None:
    """It is a cache: the next process makes it again, from the registry alone."""
    harness = local(tmp_path)
    run(harness, "m1", FIRST)
    run(harness, "m2", SECOND)
    uri = harness.layout.columns_file()
    harness.store.delete([uri]) if content is None else harness.store.put(uri, content)
    run(harness, "m3", FIRST)
    assert columns_of(harness) == ["id", "text", "late", "at"]


class Overtaken(FaultyStore):
    """Another process does something right before this one writes the columns file."""

    def __init__(self, inner: ObjectStore, first: Callable[[], None]) -> None:
        super().__init__(inner)
        self.first = first

    def put(self, uri: str, data: bytes) -> None:
        if uri.endswith("/columns.parquet") and (first := self.first):
            self.first = lambda: None
            first()
        super().put(uri, data)


def test_the_last_writer_knows_fewer_columns(tmp_path: Path) -> None:
    """It looks once more after it has written, and writes the columns of the other one, too."""
    harness = local(tmp_path)
    run(harness, "m1", FIRST)
    store = Overtaken(harness.store, lambda: run(harness, "m3", b'{"id": 3, "last": 1}\n'))
    run(harness, "m2", SECOND, store=store)
    assert columns_of(harness) == ["id", "text", "late", "at", "last"]


def test_steady_state_costs_nothing(tmp_path: Path) -> None:
    """A process reads the file once, and then only when there are new columns."""
    harness = local(tmp_path)
    run(harness, "m1", FIRST)
    run(harness, "m2", SECOND)
    app = harness.app()
    columns = streaming.publisher(app).columns
    assert columns is not None
    columns.cover(2)
    store = harness.store
    columns.store = None  # type: ignore[assignment]
    columns.registry = None  # type: ignore[assignment]
    for version in (1, 2):
        columns.cover(version)
    assert store.stat(harness.layout.columns_file()) is not None


def test_a_table_needs_none() -> None:
    """Readers of a table do not look into folders, where there are files that are in no snapshot."""
    harness = Harness(table={})
    run(harness, "m1", FIRST)
    run(harness, "m2", SECOND)
    assert not list(harness.store.list(harness.layout.columns_folder))
    assert isinstance(harness.app().registry.latest(), SchemaVersion)
