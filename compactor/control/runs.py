"""Runs of the Glue job, as Glue's run history has them. Values, no I/O."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from compactor.cost.prices import JobSize

_RESTARTED = re.compile(r"(?P<first>.+)_restart_(?P<number>[1-9]\d{0,8})")


class JobState(StrEnum):
    """The states of a run, as Glue names them."""

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
    """A state that this release does not know. It counts as alive, so that no second run is started beside it."""

    @property
    def is_living(self) -> bool:
        """Whether a run in this state may be at work, now or soon."""
        return self in _LIVING


_LIVING = {JobState.WAITING, JobState.STARTING, JobState.RUNNING, JobState.STOPPING, JobState.UNKNOWN}


@dataclass(frozen=True, slots=True)
class JobRun:
    """One run of the job."""

    run_id: str  # Glue's id; a run that Glue itself restarted goes on as `<id>_restart_1`, then `_restart_2`
    state: JobState
    started_at: datetime  # when it was requested
    changed_at: datetime  # when anything about it changed last
    ended_at: datetime | None = None  # when it ended; None while it is alive
    error: str = ""
    size: JobSize | None = None  # its workers; None where Glue does not report them
    timeout_seconds: float | None = None  # how long Glue lets it run; None if it has no timeout, or it is unknown

    @property
    def is_living(self) -> bool:
        return self.state.is_living

    @property
    def last_at(self) -> datetime:
        """When it ended; for a run that is alive, when anything about it changed last."""
        return self.ended_at or self.changed_at

    def lived_seconds(self, now: datetime) -> float:
        """The time from its request to its end, or to now."""
        return ((self.ended_at or now) - self.started_at).total_seconds()


def lineage(run_id: str) -> tuple[str, int]:
    """The first run of a chain of restarts by Glue, and how many restarts later this one came."""
    found = _RESTARTED.fullmatch(run_id)
    return (found["first"], int(found["number"])) if found else (run_id, 0)


def has_successor(run: JobRun, runs: Sequence[JobRun]) -> bool:
    """Whether Glue has restarted a run that it had let expire."""
    first, number = lineage(run.run_id)
    return any(lineage(other.run_id)[0] == first and lineage(other.run_id)[1] > number for other in runs)


def newest_first(runs: Sequence[JobRun]) -> tuple[JobRun, ...]:
    """Runs in order of their start, the newest first; among runs that started together, the later restart first."""
    return tuple(sorted(runs, key=lambda run: (run.started_at, lineage(run.run_id)[1]), reverse=True))
