"""What the control plane sees at one moment. What could not be read is None, which is not zero. Values, no I/O."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum

from compactor.control.runs import JobRun
from compactor.core.records import RecentCommit


class Source(StrEnum):
    """What a snapshot is read from; each of them may fail alone."""

    GLUE = "Glue's runs"
    SIGNS = "signs of life"
    QUEUE = "the queue"
    QUEUE_AGE = "the queue's age"
    DEAD_LETTERS = "the dead-letter queue"
    MANIFESTS = "the watched prefix"
    LEDGER = "the ledger's latest commits"
    BREAKER = "the order to close the breaker"


@dataclass(frozen=True, slots=True)
class LivingRun:
    """A run of the compactor that gives signs of life; it knows nothing of Glue's id for it.

    Attributes:
        run_id: The compactor's own id of it.
        started_at: When it began.
        heartbeat_at: When it gave the last sign.
        asked_at: When it was asked to end; None if it was not.
    """

    run_id: str
    started_at: datetime
    heartbeat_at: datetime
    asked_at: datetime | None = None


@dataclass(frozen=True, slots=True)
class Signs:
    """Signs of life of all runs.

    Attributes:
        living: The runs that gave one lately.
        last_at: The last sign of any run, dead ones too; None if there is none on record.
    """

    living: tuple[LivingRun, ...] = ()
    last_at: datetime | None = None


@dataclass(frozen=True, slots=True)
class QueueDepth:
    """How much is in a queue, about.

    Attributes:
        waiting: Messages that anybody may receive.
        in_flight: Messages that somebody is working on.
    """

    waiting: int
    in_flight: int = 0


@dataclass(frozen=True, slots=True)
class Backlog:
    """Manifests that wait in the watched prefix.

    Attributes:
        manifests: How many.
        oldest_seconds: The age of the oldest; 0 if there is none.
    """

    manifests: int
    oldest_seconds: float = 0.0


@dataclass(frozen=True, slots=True)
class Snapshot:
    """Everything that is decided on.

    Attributes:
        runs: Glue's runs of the last weeks, the newest first.
        signs: Signs of life.
        queue: The queue of S3 events; None also where there is none.
        queue_oldest_seconds: The age of the oldest message; None also where there is none.
        dead_letters: Messages that nobody could read; None also where there is no such queue.
        backlog: Manifests that wait.
        recent: Summaries of the latest commits, oldest first.
        breaker_closed_at: When somebody last closed the breaker by hand.
        unknown: Why a source could not be read.
    """

    runs: tuple[JobRun, ...] | None = ()
    signs: Signs | None = field(default_factory=Signs)
    queue: QueueDepth | None = None
    queue_oldest_seconds: float | None = None
    dead_letters: int | None = None
    backlog: Backlog | None = field(default_factory=lambda: Backlog(0))
    recent: tuple[RecentCommit, ...] | None = ()
    breaker_closed_at: datetime | None = None
    unknown: Mapping[Source, str] = field(default_factory=dict)

    @property
    def living_runs(self) -> tuple[JobRun, ...]:
        """Glue's runs that may be at work."""
        return tuple(run for run in self.runs or () if run.is_living)

    @property
    def last_commit_at(self) -> datetime | None:
        """When the latest commit was made that is on record."""
        return max((commit.decided_at for commit in self.recent or ()), default=None)
