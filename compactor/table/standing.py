"""A stream's table as commands see it, with its state from its jobs' notes."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime

from compactor.core.map_ordered import map_ordered
from compactor.core.text.formatting import count, shown_seconds
from compactor.ledger.state import State
from compactor.ledger.table.batches import RefusedBatches
from compactor.ledger.table.progress import read_progress
from compactor.table.catalog import TableCatalog


@dataclass(frozen=True, slots=True, kw_only=True)
class ListedTable:
    """The table that lists a stream's output.

    Attributes:
        name: The name with its namespace: `lake.events`.
        catalog: Connects to its catalog; raises only the compactor's errors, even if a package is missing.
        late_seconds: How long a published manifest may wait for the table before it needs attention.
        shards: How many jobs commit to it.
        upkeep: The upkeep that jobs do: maintain, merge.
    """

    name: str
    catalog: Callable[[], TableCatalog]
    late_seconds: float
    shards: int = 1
    upkeep: tuple[str, ...] = ()


def waiting_words(waiting: int, seconds: float | None) -> str:
    """How commands describe the manifests that wait for the table."""
    if not waiting:
        return "no manifest waits for the table"
    since = "" if seconds is None else f", the first for {shown_seconds(seconds)}"
    return f"{count(waiting, 'manifest')} {'waits' if waiting == 1 else 'wait'} for the table{since}"


def held_words(reason: str) -> str:
    """How commands explain that a held-back manifest is not in the table."""
    return f"held back, because the catalog refuses it: {reason}"


def held_count_words(held: int) -> str:
    """How commands describe the number of held-back manifests."""
    are, them = ("is", "it") if held == 1 else ("are", "them")
    return f"{count(held, 'manifest')} {are} held back, because the catalog refuses {them}"


MANY_FAILURES = 6
"""Failed commits in a row that need attention: the pauses between them add up to some minutes."""


@dataclass(frozen=True, slots=True)
class TableSeen:
    """The table that lists the output, by the jobs' notes after their latest commits."""

    name: str  # name of the table, as namespace.table
    noted_at: datetime | None = None  # time of the latest job note; null before the first commit
    waiting: int = 0  # published manifests that wait for the table
    waiting_seconds: float | None = None  # how long the first of these has waited; null without one
    held: int = 0  # held-back manifests, because the catalog refuses them
    last_batch: int = 0  # the last batch that the table took from a job; 0 before the first
    committed_at: datetime | None = None  # time of that batch; null before the first
    failures: int = 0  # failed commits since then
    error: str = ""  # why the latest one failed; empty if none did
    late_seconds: float = 0.0  # how long a manifest may wait before it needs attention

    @property
    def is_behind(self) -> bool:
        """Whether it needs attention."""
        return self.failures >= MANY_FAILURES or (self.waiting_seconds or 0.0) > self.late_seconds

    @property
    def words(self) -> str:
        failed = f"; {count(self.failures, 'commit')} failed in a row" if self.failures else ""
        return waiting_words(self.waiting, self.waiting_seconds) + failed

    @property
    def held_words(self) -> str:
        return held_count_words(self.held) if self.held else ""

    def last_words(self, now: datetime) -> str:
        if self.committed_at is None:
            return "no batch yet"
        return f"up to batch {self.last_batch:,}, {shown_seconds((now - self.committed_at).total_seconds())} ago"


def table_seen(state: State, table: ListedTable, now: datetime) -> TableSeen:
    """Read the jobs' notes, one small record per job, and which manifests are held back."""
    noted = map_ordered(lambda shard: read_progress(state, shard), range(1, table.shards + 1))
    found = [each for each in noted if each is not None]
    held = RefusedBatches(state).due()
    if not found:
        return TableSeen(table.name, held=held, late_seconds=table.late_seconds)
    since = min((each.waiting_since for each in found if each.waiting_since is not None), default=None)
    last = max(found, key=lambda each: each.last_batch)
    worst = max(found, key=lambda each: (each.failures, each.as_of))
    return TableSeen(
        table.name,
        noted_at=max(each.as_of for each in found),
        waiting=sum(each.waiting for each in found),
        waiting_seconds=None if since is None else max((now - since).total_seconds(), 0.0),
        held=held,
        last_batch=last.last_batch,
        committed_at=last.committed_at,
        failures=worst.failures,
        error=worst.error,
        late_seconds=table.late_seconds,
    )
