"""Batches that a real catalog refuses for ever: all but the file to blame are in the table, and none comes late."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyiceberg.partitioning import PartitionSpec

from compactor.core.documents.table_records import BatchedManifest
from compactor.core.errors import TableConflict, TableRefused
from compactor.core.layout import Layout
from compactor.table.named import Published
from tests.faults.table_world import CatalogWorld
from tests.support.iceberg_tables import client, sql_place
from tests.support.table_catalogs import version


@dataclass
class SqlWorld(CatalogWorld):
    """One state and one table in SQLite."""

    def __post_init__(self) -> None:
        """Without what only a table in memory tells."""


@pytest.fixture
def world(tmp_path: Path) -> SqlWorld:
    layout = Layout(*(str(tmp_path / name) for name in ("manifests", "output", "state")))
    table: Any = client(sql_place(tmp_path))
    return SqlWorld(table=table, layout=layout)


def gone(path: Path) -> None:
    path.unlink()


def damaged(path: Path) -> None:
    path.write_bytes(b"PAR1 no more")


def with_a_damaged_footer(path: Path) -> None:
    found = path.read_bytes()
    length = int.from_bytes(found[-8:-4], "little")
    path.write_bytes(found[: -8 - length] + bytes(length) + found[-8:])


def of_another_type(path: Path) -> None:
    """With a number where the table has a text."""
    found = pq.read_table(path)
    at = found.schema.get_field_index("c1")
    field = pa.field("c1", pa.int64(), metadata=found.schema.field("c1").metadata)
    pq.write_table(found.set_column(at, field, pa.array([1, 2, 3])), path)


@pytest.mark.parametrize("spoil", [gone, damaged, with_a_damaged_footer, of_another_type])
def test_a_file_that_cannot_be_adopted(world: SqlWorld, spoil: Callable[[Path], None]) -> None:
    """Its manifest is held back and the others are in the table; once it is well, an operator has it taken in."""
    published = [world.place(name, files=1) for name in "abc"]
    bad = Path(world.commits[published[1]].outputs[0].final)
    good = bad.read_bytes()
    spoil(bad)
    process = world.process(published)
    stuck: dict[Published, Exception] = {}
    while process.published:
        stuck.update(process.step().stuck)
    assert [*stuck] == [published[1]]
    assert bad.name in str(stuck[published[1]])
    assert len(world.live()) == 2
    refused = world.batches().refused
    [held] = refused.all_held()
    bad.write_bytes(good)
    refused.release(held)
    assert world.process([published[1]]).step().visible == [published[1]]
    assert len(world.live()) == 3


def test_what_was_sent_before_never_lands(world: SqlWorld) -> None:
    """A committer that was paused with the batch finds that the table has moved on, and learns that it was refused."""
    published = world.place("a")
    table: Any = world.table
    head = table.create(world.layout.table_owner, version(1))
    late = world.process([published])
    change = late.committer.changes.of(world.batches().create(1, [_batched(published)]), 1, list)
    final = Path(world.commits[published].outputs[0].final)
    good = final.read_bytes()
    final.unlink()
    assert [*world.process([published]).step().stuck] == []
    now = table.head()
    assert (now.fence, now.refused, now.schema_version) == (1, 1, head.schema_version)
    final.write_bytes(good)
    with pytest.raises(TableConflict):
        table.commit(head, change)
    assert [*late.step().stuck] == [published]
    assert world.live() == []


def test_a_table_with_other_partitions_blames_no_batch(world: SqlWorld, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nor does anything else that any change would meet: all wait until it is put right."""
    world.process([world.place("a")]).step()
    process = world.process([world.place("b")])
    with monkeypatch.context() as other:
        other.setattr("compactor.adapters.iceberg.partitions.PARTITIONS", PartitionSpec())
        for _ in range(2):
            with pytest.raises(TableRefused, match="its partitions are not by"):
                process.step()
    assert world.held() == []
    process.step()
    assert len(world.live()) == 4


def _batched(published: Published) -> BatchedManifest:
    return BatchedManifest(date=published.key.date, manifest_id=published.key.id)
