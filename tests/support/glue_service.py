"""Glue's API for one streaming job, on a clock that a test moves; what it does is what AWS's documents say.

- A run goes from STARTING to RUNNING; one that is told to stop is STOPPING first [Glue API, JobRun, JobRunState].
- "Jobs must have timeout values less than 7 days or 10080 minutes": a run with a timeout ends as TIMEOUT [CreateJob].
- "If the timeout is less than 7 days, then the job will not be restarted." A run without one is restarted within three
  hours of the maintenance window's start. It ends as EXPIRED, and goes on as `<id>_restart_1` [Maintenance windows for
  AWS Glue Streaming].
- "The maximum number of concurrent runs allowed for the job. The default is 1. An error is returned when this threshold
  is reached." Glue may count a run that is not listed yet, or no more [Glue API, ExecutionProperty].
- GetJobRuns lists the newest first; GetJob has LastModifiedOn, "the last point in time when this job definition was
  modified" [Glue API].
- Any call may be throttled, and every call about a job that was deleted is answered with EntityNotFoundException.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from functools import partial
from random import Random
from types import SimpleNamespace
from typing import Any

from botocore.exceptions import ClientError

from compactor.control.snapshot import lineage
from compactor.core.ports import Clock
from compactor.wiring.control import ATTEMPTS

STARTING_SECONDS = 90
STOPPING_SECONDS = 30
LIVING = {"STARTING", "RUNNING", "STOPPING"}


def error(code: str, message: str = "") -> ClientError:
    return ClientError({"Error": {"Code": code, "Message": message}}, "Call")


@dataclass(frozen=True, slots=True)
class Definition:
    """What a run is started with.

    Attributes:
        timeout_minutes: 0 for none.
        is_bad: Whether its runs fail soon.
    """

    timeout_minutes: int = 0
    is_bad: bool = False


@dataclass(slots=True)
class Run:
    """A run."""

    run_id: str
    definition: Definition
    started_at: datetime
    state: str
    changed_at: datetime
    ended_at: datetime | None = None
    error: str = ""


@dataclass(slots=True)
class GlueService:
    """A client of Glue, and what happens behind it.

    Attributes:
        chance: Decides which calls are throttled.
        throttled: The share of requests that are; the client sends each a few times.
        refused_until: Until then Glue counts a run that it does not list.
        max_concurrent_runs: 1 in the template; a loose lock shows whether the caller starts a run beside another one.
        started: Each start, with the runs that lived then.
    """

    clock: Clock
    chance: Random
    definition: Definition
    throttled: float = 0.0
    refused_until: datetime | None = None
    max_concurrent_runs: int = 1
    is_away: bool = False
    is_deleted: bool = False
    runs: dict[str, Run] = field(default_factory=dict)
    started: list[tuple[datetime, list[str]]] = field(default_factory=list)
    refusals: list[datetime] = field(default_factory=list)
    asked: dict[str, int] = field(default_factory=dict)
    modified_at: datetime = field(init=False)
    _due: list[tuple[datetime, Callable[[], None]]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.modified_at = self.clock.now()

    # ------------------------------------------------------------------------------------------------- what boto3 shows
    def get_paginator(self, operation: str) -> Any:
        assert operation == "get_job_runs"
        return SimpleNamespace(paginate=self._pages)

    def _pages(self, JobName: str, PaginationConfig: Mapping[str, int]) -> Iterator[dict[str, Any]]:  # noqa: N803
        listed = sorted(self.runs.values(), key=lambda run: run.started_at, reverse=True)
        size = PaginationConfig["PageSize"]
        for at in range(0, max(1, len(listed)), size):
            self._call("GetJobRuns", JobName)
            yield {"JobRuns": [_shown(run) for run in listed[at : at + size]]}

    def get_job(self, JobName: str) -> dict[str, Any]:  # noqa: N803
        self._call("GetJob", JobName)
        return {"Job": {"LastModifiedOn": self.modified_at}}

    def start_job_run(self, JobName: str) -> dict[str, str]:  # noqa: N803
        self._call("StartJobRun", JobName)
        now, living = self.clock.now(), self.living()
        is_held = self.refused_until is not None and now < self.refused_until
        if is_held or len(living) >= self.max_concurrent_runs:
            self.refusals.append(now)
            raise error("ConcurrentRunsExceededException", f"Concurrent runs exceeded for {JobName}")
        self.started.append((now, [run.run_id for run in living]))
        run_id = f"jr_{len(self.started):06d}"
        self._begin(run_id)
        return {"JobRunId": run_id}

    def batch_stop_job_run(self, JobName: str, JobRunIds: list[str]) -> dict[str, Any]:  # noqa: N803
        self._call("BatchStopJobRun", JobName)
        for run_id in JobRunIds:
            self._set(run_id, "STOPPING")
            self._later(STOPPING_SECONDS, partial(self._set, run_id, "STOPPED"))
        return {"Errors": []}

    def _call(self, operation: str, name: str) -> None:
        self.pass_time()
        self.asked[operation] = self.asked.get(operation, 0) + 1
        if self.is_away:
            raise error("InternalServiceException", "An internal service error occurred")
        if self.is_deleted:
            raise error("EntityNotFoundException", f"Job {name} is not found")
        if all(self.chance.random() < self.throttled for _ in range(ATTEMPTS)):
            raise error("ThrottlingException", "Rate exceeded")

    # ------------------------------------------------------------------------------------------------ what else happens
    def living(self) -> list[Run]:
        self.pass_time()
        return [run for run in self.runs.values() if run.state in LIVING]

    def end(self, run_id: str, state: str, words: str = "") -> None:
        """End a run: a crash, or an end by itself."""
        self._set(run_id, state, words)

    def expire(self, run_id: str, *, restart_after_seconds: float | None) -> None:
        """End a run in the window; it is restarted after a while, or never."""
        self._set(run_id, "EXPIRED")
        first, number = lineage(run_id)
        if restart_after_seconds is not None:
            self._later(restart_after_seconds, lambda: self._begin(f"{first}_restart_{number + 1}"))

    def deploy(self, definition: Definition) -> None:
        """Change the definition, as UpdateJob does. A run that lives keeps its own."""
        self.definition, self.modified_at = definition, self.clock.now()

    def delete(self) -> None:
        """Delete the job: its runs end, and their history is gone with it."""
        self.runs.clear()
        self._due.clear()
        self.is_deleted = True

    def create(self) -> None:
        """Create the job again, without a history."""
        self.is_deleted, self.modified_at = False, self.clock.now()

    def pass_time(self) -> None:
        """Make the changes that are due by now, and let runs whose timeout is over end."""
        now = self.clock.now()
        for due in sorted((each for each in self._due if each[0] <= now), key=lambda each: each[0]):
            self._due.remove(due)
            due[1]()
        for run in self.runs.values():
            limit = run.definition.timeout_minutes
            if run.state in LIVING and limit and now >= run.started_at + timedelta(minutes=limit):
                self._set(run.run_id, "TIMEOUT")

    def _begin(self, run_id: str) -> None:
        now = self.clock.now()
        self.runs[run_id] = Run(run_id, replace(self.definition), now, "STARTING", now)
        self._later(STARTING_SECONDS, lambda: self._run(run_id))

    def _run(self, run_id: str) -> None:
        run = self.runs.get(run_id)
        if run is not None and run.state == "STARTING":
            self._set(run_id, "RUNNING")

    def _later(self, seconds: float, change: Callable[[], None]) -> None:
        self._due.append((self.clock.now() + timedelta(seconds=seconds), change))

    def _set(self, run_id: str, state: str, words: str = "") -> None:
        run = self.runs.get(run_id)
        if run is None or run.ended_at:
            return
        run.state, run.changed_at, run.error = state, self.clock.now(), words
        run.ended_at = None if state in LIVING else run.changed_at


def _shown(run: Run) -> dict[str, Any]:
    shown: dict[str, Any] = {
        "Id": run.run_id,
        "JobRunState": run.state,
        "StartedOn": run.started_at,
        "LastModifiedOn": run.changed_at,
        "ErrorMessage": run.error,
    }
    if run.definition.timeout_minutes:
        shown["Timeout"] = run.definition.timeout_minutes
    return shown | ({"CompletedOn": run.ended_at} if run.ended_at else {})
