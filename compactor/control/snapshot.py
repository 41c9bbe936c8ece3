"""The control plane's view at one moment. Unreadable values are None, which is not zero. Values, no I/O."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Protocol

from pydantic import AwareDatetime, Field, NonNegativeInt

from compactor.core.documents.document import Document
from compactor.core.documents.records import RecentCommit
from compactor.core.results import as_document
from compactor.cost.prices import JobSize
from compactor.ledger.backlog import WaitingManifests
from compactor.ledger.landing.progress import LogSeen

_RESTARTED = re.compile(r"(?P<first>.+)_restart_(?P<number>[1-9]\d{0,8})")


class JobState(StrEnum):
    """The states of a run, with Glue's names."""

    WAITING = "WAITING"
    STARTING = "STARTING"
    RUNNING = "RUNNING"
    STOPPING = "STOPPING"
    STOPPED = "STOPPED"
    SUCCEEDED = "SUCCEEDED"
    FAILED = "FAILED"
    TIMEOUT = "TIMEOUT"
    ERROR = "ERROR"
    EXPIRED = "EXPIRED"
    UNKNOWN = "UNKNOWN"
    """A state unknown to this release. It counts as alive, so that no second run is started."""

    @property
    def is_living(self) -> bool:
        """Whether a run in this state may be active, now or soon."""
        return self in _LIVING


_LIVING = {JobState.WAITING, JobState.STARTING, JobState.RUNNING, JobState.STOPPING, JobState.UNKNOWN}


@dataclass(frozen=True, slots=True)
class JobRun:
    """One run of the job."""

    run_id: str  # Glue's id; a run restarted by Glue continues as `<id>_restart_1`, then `_restart_2`
    state: JobState
    started_at: datetime  # when it was requested
    changed_at: datetime  # its latest change
    ended_at: datetime | None = None  # when it ended; None while it is alive
    error: str = ""
    size: JobSize | None = None  # its workers; None if they are unknown, or their price
    timeout_seconds: float | None = None  # Glue's time limit for it; None if it has no timeout, or if unknown

    @property
    def is_living(self) -> bool:
        return self.state.is_living

    @property
    def last_at(self) -> datetime:
        """When it ended; for a living run, its latest change."""
        return self.ended_at or self.changed_at

    def lived_seconds(self, now: datetime) -> float:
        """The time from its request to its end, or to now."""
        return ((self.ended_at or now) - self.started_at).total_seconds()


def lineage(run_id: str) -> tuple[str, int]:
    """The first run in a chain of restarts by Glue, and how many restarts later this one came."""
    found = _RESTARTED.fullmatch(run_id)
    return (found["first"], int(found["number"])) if found else (run_id, 0)


def has_successor(run: JobRun, runs: Sequence[JobRun]) -> bool:
    """Whether Glue has restarted an expired run."""
    first, number = lineage(run.run_id)
    return any(lineage(other.run_id)[0] == first and lineage(other.run_id)[1] > number for other in runs)


def newest_first(runs: Sequence[JobRun]) -> tuple[JobRun, ...]:
    """Runs by start time, newest first; among runs with the same start, the later restart first."""
    return tuple(sorted(runs, key=lambda run: (run.started_at, lineage(run.run_id)[1]), reverse=True))


class Source(StrEnum):
    """A source of a snapshot; each may fail separately."""

    RUNS = "the run history"
    HEARTBEATS = "the heartbeats"
    QUEUE = "the queue depth"
    QUEUE_AGE = "the queue age"
    DEAD_LETTERS = "the dead-letter queue"
    MANIFESTS = "the watched prefix"
    BEGUN = "the index of open manifests"
    LEDGER = "the ledger's latest commits"
    LOGS = "the progress of topics and streams"
    BREAKER = "the record of the breaker's closing"
    DEFINITION = "the job's definition"
    SEEN = "the record of the job's observed states"


@dataclass(frozen=True, slots=True)
class LivingRun:
    """A run of the compactor with a recent heartbeat. It does not know its Glue id."""

    run_id: str
    host: str  # the machine and its boot id
    started_at: datetime
    heartbeat_at: datetime
    asked_to_stop_at: datetime | None = None  # when it was asked to stop; None if it was not
    release: str = ""  # its compactor release; empty if unknown
    shard: str = ""  # its shard, such as "2/4"; empty if it takes all manifests


@dataclass(frozen=True, slots=True)
class Heartbeats:
    """The heartbeats of all runs."""

    living: tuple[LivingRun, ...] = ()  # the runs with a recent one
    last_at: datetime | None = None  # the latest of any run, including dead ones; None if there is none on record


@dataclass(frozen=True, slots=True)
class QueueDepth:
    """How many messages are in a queue, approximately."""

    waiting: int  # messages that a consumer may receive
    in_flight: int = 0  # messages that a consumer has received and not yet deleted

    @property
    def messages(self) -> int:
        return self.waiting + self.in_flight


class JobSeen(Document):
    """The record of the checks' observations of the job, which are missing from Glue's run history.

    Attributes:
        refused_starts: How many starts in a row Glue has refused because the job has its maximum number of runs, while
            no run is known; 0 once it has accepted one.
        refused_since: When the first of them was refused; None if there are none.
        run_id: The latest run seen alive; empty if there was none.
        since_by_state: When a check first saw this run in each state.
    """

    refused_starts: NonNegativeInt = 0
    refused_since: AwareDatetime | None = None
    run_id: str = ""
    since_by_state: dict[str, AwareDatetime] = Field(default_factory=dict)


@as_document(omits=("backlogs", "whole_backlog"))
@dataclass(frozen=True, slots=True)
class Snapshot:
    """The control plane's view. None means unknown, never zero."""

    runs: tuple[JobRun, ...] | None = ()  # Glue's runs in the last weeks, newest first
    heartbeats: Heartbeats | None = field(default_factory=Heartbeats)
    queue: QueueDepth | None = None  # of S3 events; None also without a queue
    queue_oldest_seconds: float | None = None  # the oldest message's age; None also without a message
    dead_letters: int | None = None  # unreadable S3 events; None also without such a queue
    backlog: WaitingManifests | None = field(default_factory=WaitingManifests)  # waiting manifests
    backlogs: Mapping[str, WaitingManifests] = field(default_factory=dict)  # of each stream; empty without streams
    whole_backlog: WaitingManifests | None = None  # of all shards; None without shards
    # Manifests outside the watched prefix that a job has to finish, and when they were started
    begun: Mapping[str, datetime] | None = field(default_factory=dict)
    logs: tuple[LogSeen, ...] | None = ()  # the topics and streams that the job lands, by its notes
    recent: tuple[RecentCommit, ...] | None = ()  # summaries of the latest commits, oldest first
    breaker_closed_at: datetime | None = None  # when an operator last closed the breaker
    job_defined_at: datetime | None = None  # latest change of its definition; None if unknown, or if no run failed
    seen: JobSeen = field(default_factory=JobSeen)  # the earlier checks' observations of the job
    unknown: Mapping[Source, str] = field(default_factory=dict)  # why a source could not be read, by source

    @property
    def living_runs(self) -> tuple[JobRun, ...]:
        """Glue's runs that may be active."""
        return tuple(run for run in self.runs or () if run.is_living)

    @property
    def refused_since(self) -> datetime | None:
        """When the first refused start was refused; None if there are none, or if a run has lived since."""
        since = self.seen.refused_since
        is_over = since and any(run.is_living or run.last_at > since for run in self.runs or ())
        return None if is_over else since

    @property
    def last_commit_at(self) -> datetime | None:
        return max((commit.decided_at for commit in self.recent or ()), default=None)


class JobRuns(Protocol):
    """A Glue job's runs."""

    def list(self, since: datetime) -> Sequence[JobRun]:
        """The runs started since a moment, newest first."""

    def defined_at(self) -> datetime | None:
        """When the job's definition last changed; None if unknown."""

    def start(self) -> str | None:
        """Start a run; return its id, or None if the job already has its maximum number of runs, which is no error."""

    def stop(self, run_id: str) -> None:
        """Let Glue kill a run. It ends some time later."""


class Queue(Protocol):
    """One queue's depth and age."""

    def depth(self) -> QueueDepth:
        """The approximate number of messages."""

    def oldest_seconds(self, now: datetime) -> float | None:
        """The latest measured age of the oldest message; None without a recent measurement."""


class Notifier(Protocol):
    """Sends messages to operators."""

    def tell(self, subject: str, text: str) -> None:
        """Send a message; the subject is one short line."""
