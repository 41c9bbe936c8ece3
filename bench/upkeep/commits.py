"""A table in SQLite that takes one small file after the other, with upkeep as it is scheduled, or without."""

import os
import time
from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import timedelta
from pathlib import Path
from statistics import fmean, median

from compactor.adapters.iceberg.iceberg_table import IcebergTable
from compactor.adapters.iceberg.opening import CatalogPlace, open_catalog
from compactor.core.layout import Layout
from compactor.ledger.ledger import Ledger
from compactor.ledger.state import State
from compactor.ledger.table.batches import TableBatches
from compactor.ops.table.maintainer import Maintainer
from compactor.table.catalog import TableChange
from compactor.table.upkeep import KeepRule
from tests.support.iceberg_tables import NAME, client, metadata_folder, sql_place, written
from tests.support.memory_store import ManualClock, MemoryStore
from tests.support.table_catalogs import version

COLUMNS = 10
WINDOW = 100
"""Commits of which there are median, mean and maximum: one in a hundred merges manifests, which no median shows."""

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
        mean_cpu_seconds: In the mean of the window.
        most_cpu_seconds: Of the commit in the window that took the most: one that merges manifests.
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
    mean_cpu_seconds: float
    most_cpu_seconds: float
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
    place, schema, state = sql_place(folder), version(COLUMNS), _state()
    table, times = client(place), list[tuple[float, float]]()
    row = {column.name: "some text" for column in schema.columns}
    original = written(folder / "file.parquet", schema, [row])
    batches, upkeep_seconds = TableBatches(state), 0.0
    table.create(state.layout.table_owner, schema)
    for number in range(1, commits + 1):
        uri = folder / f"{number}.parquet"
        os.link(folder / "file.parquet", uri)
        began, cpu_began = time.perf_counter(), time.process_time()
        head = table.head()
        if head is None:
            raise RuntimeError("the table is gone")
        table.commit(head, TableChange(number, (replace(original, uri=uri.as_uri()),)))
        times.append((time.perf_counter() - began, time.process_time() - cpu_began))
        if upkeep is not None and number % upkeep.every == 0:
            batches.create(number, [])
            upkeep_seconds = _maintained(state, batches, table, upkeep)
        if number in at:
            yield _figures(place, number, times[-WINDOW:], upkeep_seconds)


def _maintained(state: State, batches: TableBatches, table: IcebergTable, upkeep: Upkeep) -> float:
    """Do the upkeep, with all files as old as after a long pause; return how long it took."""
    long_ago = time.time() - _LONG_AGO_SECONDS
    for each in metadata_folder(table.place).iterdir():
        os.utime(each, (long_ago, long_ago))
    rule = KeepRule(timedelta(0), upkeep.keep)
    began = time.perf_counter()
    Maintainer(state=state, batches=batches, catalog=table, name=NAME, rule=rule).maintain()
    return time.perf_counter() - began


def _figures(place: CatalogPlace, commits: int, times: list[tuple[float, float]], upkeep_seconds: float) -> Figures:
    table = open_catalog(place).load_table(NAME)
    metadata, current = Path(table.metadata_location.removeprefix("file://")), table.current_snapshot()
    sizes = [each.stat().st_size for each in metadata.parent.iterdir()]
    cpu = [each for _, each in times]
    return Figures(
        commits=commits,
        seconds=median(wall for wall, _ in times),
        cpu_seconds=median(cpu),
        mean_cpu_seconds=fmean(cpu),
        most_cpu_seconds=max(cpu),
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
