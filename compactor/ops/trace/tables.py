"""Finds what carried a manifest to the table of the output: a batch on record, and the snapshot that took it."""

from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from typing import Literal

from compactor.core.errors import CompactorError, RecordUnreadable
from compactor.core.formatting import shown_seconds
from compactor.core.records import Commit
from compactor.ledger.state import State
from compactor.ledger.table_batches import TableBatches
from compactor.table.listed import ListedTable
from compactor.table.named import needs_table
from compactor.telemetry.error_text import described

TableState = Literal["listed", "waiting", "unlisted"]


@dataclass(frozen=True, slots=True)
class TracedTable:
    """Where a manifest with rows is between the ledger and the table of the output."""

    name: str  # name of the table, as namespace.table
    state: TableState  # listed in the table, waiting for it, or in no batch that was found
    batch: int | None = None  # the batch on record that has the manifest; null without one
    snapshot_id: int | None = None  # the snapshot that took the batch; null if it expired, or is not known
    waiting_seconds: float | None = None  # for how long it has waited for the table; null if it does not
    error: str = ""  # why the snapshot is not known; empty if the catalog was read

    @property
    def meaning(self) -> str:
        """All of it in words."""
        if self.state == "unlisted":
            return f"{self.name}: in no batch that was found, as if done before the table was set"
        if self.state == "waiting":
            batch = f"; it is in batch {self.batch:,}" if self.batch else ""
            return f"{self.name}: waits for the table, for {shown_seconds(self.waiting_seconds or 0.0)}{batch}"
        unknown = f"not known: {self.error}" if self.error else "expired"
        return f"{self.name}: in batch {self.batch:,}, snapshot {self.snapshot_id or unknown}"


@dataclass(frozen=True, slots=True)
class TableTracer:
    """Follows manifests to one table. Writes nothing."""

    state: State
    table: ListedTable

    def of(self, commit: Commit, now: datetime, *, is_done: bool) -> TracedTable | None:
        """Where a commit is; None if it changes nothing in a table."""
        if not needs_table(commit):
            return None
        batch = self._batch(commit)
        if not is_done:
            seconds = max((now - commit.decided_at).total_seconds(), 0.0)
            return TracedTable(self.table.name, "waiting", batch, waiting_seconds=seconds)
        if batch is None:
            return TracedTable(self.table.name, "unlisted")
        try:
            return TracedTable(self.table.name, "listed", batch, self.table.catalog().snapshot_of(batch))
        except CompactorError as exc:
            return TracedTable(self.table.name, "listed", batch, error=described(exc))

    def _batch(self, commit: Commit) -> int | None:
        batches = TableBatches(self.state.store, self.state.layout, self.state.clock, commit.run_id)
        with suppress(RecordUnreadable):  # the rest of the trace does not need it
            return batches.number_of(commit.key, commit.generation, since=commit.decided_at)
        return None
