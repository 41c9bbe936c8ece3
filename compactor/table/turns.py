"""Which run of several shards commits to the table, so that all together make about as many snapshots as one job.

Each run notes what it has placed. The run of the first shard that has one, by the heartbeats, commits what all of them
noted; the others look whether the table has theirs. A run whose manifests have waited for too long commits all that is
noted, too. So no run depends on another one. Two that commit at the same time are safe: a turn only saves commits.
"""

from collections.abc import Callable, Collection
from dataclasses import dataclass, field

from compactor.ledger.state import State
from compactor.ledger.table.progress import noted_placed
from compactor.table.named import Placed

PATIENCE_INTERVALS = 3
"""Intervals between commits after which a run no longer leaves what it placed to another one."""

LOOKS_PER_INTERVAL = 4
"""How often a run that leaves its manifests to another one looks whether the table has them."""


@dataclass(slots=True)
class CommitTurns:
    """The turn of one run.

    Attributes:
        state: Has the notes of all runs.
        shard: The number of the shard of this run, from 1.
        leads: Returns whether this run commits for all.
    """

    state: State
    shard: int
    leads: Callable[[], bool]
    _ended: set[Placed] = field(default_factory=set, init=False)

    def noted(self) -> list[Placed]:
        """What the runs of other shards have placed, but for what was found to be in the table."""
        found = [Placed(each.key, each.generation) for each in noted_placed(self.state, but_shard=self.shard)]
        self._ended &= set(found)  # what is no longer noted needs no memory
        return [each for each in dict.fromkeys(found) if each not in self._ended]

    def note_ended(self, placed: Collection[Placed]) -> None:
        """Note what the next commits may leave out: what the table has or does not get."""
        self._ended.update(placed)
