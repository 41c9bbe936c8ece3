"""A table in SQLite that takes one small file after the other, with upkeep as it is scheduled, or without."""

import os
import time
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from statistics import median

import pyarrow as pa
import pyarrow.parquet as pq

from compactor.adapters.iceberg.iceberg_table import IcebergTable
from compactor.adapters.iceberg.opening import CatalogPlace, open_catalog
from compactor.adapters.memory.store import ManualClock, MemoryStore
from compactor.core.layout import Layout
from compactor.ledger.ledger import Ledger
from compactor.ledger.state import State
from compactor.ledger.table.batches import TableBatches
from compactor.ops.table.maintainer import Maintainer
from compactor.schema.field_ids import METADATA_IDS
from compactor.schema.schema import FILE_DATE, Column, SchemaVersion
from compactor.table.catalog import TableChange, TableFile
from compactor.table.upkeep import KeepRule

NAME, DATE, COLUMNS = "lake.events", "2026-01-02", 10
WINDOW = 100
"""Commits of which a figure is the median: also a round of merging manifests, which a commit in a hundred does."""

_LONG_AGO_SECONDS = 2 * 24 * 3600.0


@dataclass(frozen=True, slots=True)
class Upkeep:
    """A schedule.

    Attributes:
        every: Commits between two calls.
        keep: Snapshots that stay.
    """

    every: int
    keep: int


@dataclass(frozen=True, slots=True)
class Figures:
    """The cost after so many commits.

    Attributes:
        commits: How many the table took.
        seconds: Of one commit with the reading of the head before it, in the median of the window.
        cpu_seconds: Of this process, likewise; other programs on the machine matter less to it.
        metadata_bytes: The file of metadata that each commit reads and writes.
        snapshots: How many there are.
        manifests: Of the current snapshot.
        files: In the folder of metadata.
        folder_bytes: Their length.
        upkeep_seconds: Of the last call of upkeep; 0 without one.
    """

    commits: int
    seconds: float
    cpu_seconds: float
    metadata_bytes: int
    snapshots: int
    manifests: int
    files: int
    folder_bytes: int
    upkeep_seconds: float


def measured(folder: Path, commits: int, at: frozenset[int], upkeep: Upkeep | None) -> Iterator[Figures]:
    """Commit one file after the other, and yield figures after some of them.

    Args:
        folder: For the table and its files.
        commits: How many.
        at: After which there are figures.
        upkeep: When upkeep is done; None for never.
    """
    place = CatalogPlace(kind="sql", uri=f"sqlite:///{folder / 'catalog.db'}", warehouse=(folder / "lake").as_uri())
    table = IcebergTable(place=place, name=NAME, metadata_columns=[FILE_DATE])
    state, original, times = _state(), _file(folder / "file.parquet"), list[tuple[float, float]]()
    batches, upkeep_seconds = TableBatches(state.store, state.layout, state.clock, "bench"), 0.0
    table.create(state.layout.table_owner, _schema(state))
    for number in range(1, commits + 1):
        uri = folder / f"{number}.parquet"
        os.link(folder / "file.parquet", uri)
        began, cpu_began = time.perf_counter(), time.process_time()
        head = table.head()
        if head is None:
            raise RuntimeError("the table is gone")
        table.commit(head, TableChange(number, (TableFile(uri.as_uri(), original.st_size, 1, DATE),)))
        times.append((time.perf_counter() - began, time.process_time() - cpu_began))
        if upkeep is not None and number % upkeep.every == 0:
            batches.create(number, [])
            upkeep_seconds = _maintained(state, table, folder, upkeep)
        if number in at:
            yield _figures(place, number, times[-WINDOW:], upkeep_seconds)


def _maintained(state: State, table: IcebergTable, folder: Path, upkeep: Upkeep) -> float:
    """Do the upkeep, with all files as old as after a long pause; return how long it took."""
    long_ago = time.time() - _LONG_AGO_SECONDS
    for each in (folder / "lake").rglob("metadata/*"):
        os.utime(each, (long_ago, long_ago))
    batches = TableBatches(state.store, state.layout, state.clock, "bench")
    rule = KeepRule(timedelta(0), upkeep.keep)
    began = time.perf_counter()
    Maintainer(state=state, batches=batches, catalog=table, name=NAME, rule=rule).maintain()
    return time.perf_counter() - began


def _figures(place: CatalogPlace, commits: int, times: list[tuple[float, float]], upkeep_seconds: float) -> Figures:
    table = open_catalog(place).load_table(NAME)
    metadata, current = Path(table.metadata_location.removeprefix("file://")), table.current_snapshot()
    sizes = [each.stat().st_size for each in metadata.parent.iterdir()]
    return Figures(
        commits=commits,
        seconds=median(wall for wall, _ in times),
        cpu_seconds=median(cpu for _, cpu in times),
        metadata_bytes=metadata.stat().st_size,
        snapshots=len(table.metadata.snapshots),
        manifests=len(current.manifests(table.io)) if current else 0,
        files=len(sizes),
        folder_bytes=sum(sizes),
        upkeep_seconds=upkeep_seconds,
    )


def _state() -> State:
    store, clock = MemoryStore(), ManualClock()
    clock.set(clock.now().replace(year=clock.now().year + 100))  # later than all snapshots
    layout = Layout(manifests="/w/manifests", output="/w/output", state="/w/state")
    return State(store=store, layout=layout, ledger=Ledger(store, layout, clock, "bench"), clock=clock)


def _schema(state: State) -> SchemaVersion:
    columns = tuple(Column(key=f"c{at}", name=f"c{at}", added_in=1, field_id=at) for at in range(1, COLUMNS + 1))
    return SchemaVersion(version=1, created_at=state.clock.now(), manifest_id="m", columns=columns)


def _file(path: Path) -> os.stat_result:
    """Write a file of one row, as an engine writes it."""
    names = {f"c{at}": at for at in range(1, COLUMNS + 1)}
    fields = [_field(name, pa.string(), number) for name, number in names.items()]
    fields.append(_field(FILE_DATE, pa.date32(), METADATA_IDS[FILE_DATE]))
    row = {**dict.fromkeys(names, "some text"), FILE_DATE: DATE}
    days = pa.array([row[FILE_DATE]]).cast(pa.date32())
    values = [*(pa.array([row[name]]) for name in names), days]
    pq.write_table(pa.Table.from_arrays(values, schema=pa.schema(fields)), path)
    return path.stat()


def _field(name: str, kind: pa.DataType, number: int) -> pa.Field:
    return pa.field(name, kind).with_metadata({"PARQUET:field_id": str(number)})
