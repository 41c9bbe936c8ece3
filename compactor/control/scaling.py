"""How many shards of the job run, between two bounds, by the age of the backlog."""

from dataclasses import dataclass
from datetime import datetime

from pydantic import AwareDatetime, PositiveInt

from compactor.core.documents.document import Document
from compactor.core.errors import ObjectNotFound, RecordUnreadable
from compactor.ledger.backlog import WaitingManifests
from compactor.ledger.state import State
from compactor.telemetry.logs import log_event

GROW_SECONDS = 600.0
"""A new shard starts, joins and takes its part within this time, before which its effect is not judged."""

SHRINK_SECONDS = 3600.0


class ShardCount(Document):
    """The record of how many shards run.

    Attributes:
        shards: How many.
        since: Since when.
    """

    shards: PositiveInt
    since: AwareDatetime


def next_count(
    count: ShardCount, backlog: WaitingManifests, *, sla_seconds: float, bounds: tuple[int, int], now: datetime
) -> ShardCount:
    """The number of shards from now on; the same value if it stays.

    Twice as many once a manifest has waited for half the SLA, one fewer once none has waited for an eighth of it, and
    only after the last change has had its effect.
    """
    steady = (now - count.since).total_seconds()
    wanted = count.shards
    if backlog.oldest_seconds >= sla_seconds / 2 and steady >= GROW_SECONDS:
        wanted = 2 * count.shards
    elif backlog.oldest_seconds < sla_seconds / 8 and steady >= SHRINK_SECONDS:
        wanted = count.shards - 1
    wanted = max(bounds[0], min(wanted, bounds[1]))
    return count if wanted == count.shards else ShardCount(shards=wanted, since=now)


@dataclass(frozen=True, slots=True)
class Scaling:
    """The number of shards, on record unless it is fixed.

    Attributes:
        bounds: The least and the most.
    """

    state: State
    bounds: tuple[int, int]
    sla_seconds: float

    def count(self) -> ShardCount:
        """How many shards run now. Until one is on record, the least."""
        least, most = self.bounds
        found = self._recorded() if most > least else None
        shards = found.shards if found else least
        return ShardCount(shards=max(least, min(shards, most)), since=found.since if found else self.state.clock.now())

    def follow(self, count: ShardCount, backlog: WaitingManifests | None) -> None:
        """Record how many shards will run, if that may change and the backlog of all is known."""
        if self.bounds[1] == self.bounds[0] or backlog is None:
            return
        now = self.state.clock.now()
        wanted = next_count(count, backlog, sla_seconds=self.sla_seconds, bounds=self.bounds, now=now)
        if wanted != count:
            oldest = round(backlog.oldest_seconds)
            log_event("control.shards_changed", shards=wanted.shards, before=count.shards, oldest_seconds=oldest)
        if wanted != self._recorded():
            self.state.store.put(self.state.layout.shard_count, wanted.to_json())

    def _recorded(self) -> ShardCount | None:
        try:
            return self.state.ledger.record(self.state.layout.shard_count, ShardCount)
        except (ObjectNotFound, RecordUnreadable):  # it begins with the least again
            return None
