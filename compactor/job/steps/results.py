"""What came of a manifest in one call."""

from dataclasses import dataclass
from enum import StrEnum

from compactor.core.documents.records import Commit, DeadLetter


class Ending(StrEnum):
    """The effect of a call on a manifest."""

    COMMITTED = "committed"
    DEAD_LETTERED = "dead_lettered"
    ALREADY_DONE = "already_done"
    ELSEWHERE = "elsewhere"  # a living run of another shard works on it
    PLACED = "placed"  # its files are in their final places; it is done once the table has them


@dataclass(frozen=True, slots=True)
class CompactionResult:
    """The state of a manifest after a call.

    Attributes:
        ending: What this call did.
        outcome: What is on record.
        attempts: How many attempts there were, this one included.
        new_columns: How many columns this manifest added to the schema.
        arrival_seconds: For each file whose rows this call made visible, the time since its arrival.
        wasted: Whether this call made an attempt, and another run decided first.
    """

    manifest_id: str
    ending: Ending
    outcome: Commit | DeadLetter | None = None
    attempts: int = 0
    new_columns: int = 0
    arrival_seconds: tuple[float, ...] = ()
    wasted: bool = False
