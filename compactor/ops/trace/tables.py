"""Finds how a manifest got into the output's table: its recorded batch, and the batch's snapshot."""

from collections.abc import Collection, Iterator
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from typing import Literal

from compactor.core.documents.changes import Commit
from compactor.core.errors import CompactorError, RecordUnreadable
from compactor.core.text.formatting import count, shown_seconds
from compactor.ledger.state import State
from compactor.ledger.table.batches import RefusedBatches, TableBatches
from compactor.ledger.visible import Visible
from compactor.table.catalog import TableCatalog
from compactor.table.named import needs_table
from compactor.table.standing import ListedTable, held_words
from compactor.table.unmerged import looked_up
from compactor.telemetry.error_text import described

TableState = Literal["listed", "waiting", "held_back", "unlisted"]


@dataclass(frozen=True, slots=True)
class TracedTable:
    """A manifest's state between the ledger and the output's table."""

    name: str  # name of the table, as namespace.table
    state: TableState  # listed in the table, waiting for it, held back from it, or in no batch
    # The recorded batch that contains it, or that was refused with only it; null if it is in none, or in a much later
    # one
    batch: int | None = None
    snapshot_id: int | None = None  # the batch's snapshot; null if expired or unknown
    waiting_seconds: float | None = None  # how long it has waited for the table; null if it does not
    error: str = ""  # why the snapshot is unknown; empty if the catalog was read
    reason: str = ""  # why the catalog refuses the manifest; empty if it is not held back
    merged_files: tuple[str, ...] = ()  # merged files with its rows, in place of its own files
    removed_originals: int = 0  # its own files that were removed after merging

    @property
    def meaning(self) -> str:
        """The full text."""
        if self.state == "unlisted" and self.error:
            return f"{self.name}: in no batch of its time; whether the table has its files is not known: {self.error}"
        if self.state == "unlisted":
            return f"{self.name}: in no batch found; probably done before the table was configured"
        if self.state == "listed" and self.batch is None:
            return f"{self.name}: the table has its files, by a batch long after it was decided"
        if self.state == "held_back":
            return f"{self.name}: {held_words(self.reason)}"
        if self.state == "waiting":
            batch = f"; it is in batch {self.batch:,}" if self.batch else ""
            return f"{self.name}: waits for the table, for {shown_seconds(self.waiting_seconds or 0.0)}{batch}"
        unknown = f"not known: {self.error}" if self.error else "expired"
        merged = f"; its rows are in {count(len(self.merged_files), 'merged file')}" if self.merged_files else ""
        if self.removed_originals:
            merged += f", and {count(self.removed_originals, 'file')} of its own removed"
        return f"{self.name}: in batch {self.batch:,}, snapshot {self.snapshot_id or unknown}{merged}"


def traced_table(
    state: State, table: ListedTable, commit: Commit, now: datetime, *, is_done: bool
) -> TracedTable | None:
    """A commit's way into a table; None if it changes no table."""
    if not needs_table(commit):
        return None
    if not is_done and (held := _held(state, table.name, commit)) is not None:
        return held
    batch = _batch(state, commit)
    if not is_done:
        seconds = max((now - commit.decided_at).total_seconds(), 0.0)
        return TracedTable(table.name, "waiting", batch, waiting_seconds=seconds)
    if batch is None:  # a rebuilt table may refuse what the previous one took
        return _held(state, table.name, commit) or _by_files(state, table, commit)
    try:
        catalog, finals = table.catalog(), {file.final for file in commit.outputs}
        merged = tuple(_merged(state, catalog, finals))
        removed = sum(state.store.stat(uri) is None for uri in finals) if merged else 0
        snapshot_id = catalog.snapshot_of(batch)
    except CompactorError as exc:
        return TracedTable(table.name, "listed", batch, error=described(exc))
    return TracedTable(table.name, "listed", batch, snapshot_id, merged_files=merged, removed_originals=removed)


def _by_files(state: State, table: ListedTable, commit: Commit) -> TracedTable | None:
    """Look for a commit in the table itself: a rebuild of the table adds older commits at any later time."""
    if Visible(state).has_expired_rows(commit.key, commit.generation):
        return None
    left = {file.final for file in commit.outputs}
    try:
        for live in looked_up(state, table.catalog().live_files()):
            left.difference_update(live.uris)
            if not left:
                return TracedTable(table.name, "listed")
    except CompactorError as exc:
        return TracedTable(table.name, "unlisted", error=described(exc))
    return TracedTable(table.name, "unlisted")


def _merged(state: State, catalog: TableCatalog, finals: Collection[str]) -> Iterator[str]:
    """The merged files of the table with rows of these files."""
    if next(state.store.list(state.layout.merged_folder), None) is None:
        return  # so the table need not be listed
    for each in looked_up(state, catalog.live_files()):
        if each.merged is not None and not set(each.uris).isdisjoint(finals):
            yield each.file.uri


def _held(state: State, name: str, commit: Commit) -> TracedTable | None:
    """Why the catalog refuses a commit; None if it does not."""
    try:
        held = RefusedBatches(state).held(commit.key, commit.generation)
    except RecordUnreadable as exc:  # the job still leaves it out
        return TracedTable(name, "held_back", reason=described(exc))
    return None if held is None else TracedTable(name, "held_back", held.batch, reason=held.reason)


def _batch(state: State, commit: Commit) -> int | None:
    with suppress(RecordUnreadable):  # the rest of the trace does not need it
        return TableBatches(state).number_of(commit.key, commit.generation, since=commit.decided_at)
    return None
