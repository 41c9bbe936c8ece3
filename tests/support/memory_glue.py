"""A Glue job, a queue and a notifier in memory."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import KW_ONLY, dataclass, field, replace
from datetime import datetime, timedelta

from compactor.control.snapshot import JobRun, JobState, QueueDepth, lineage, newest_first
from compactor.core.errors import AccessError, CompactorError, StoreUnavailable
from compactor.core.ports import Clock


@dataclass(frozen=True, slots=True)
class _Change:
    at: datetime
    run_id: str
    state: JobState


@dataclass
class MemoryGlue:
    """One Glue job, whose runs change state with a clock.

    New runs spend some seconds in the states WAITING and STARTING, stopped ones in STOPPING.
    """

    clock: Clock
    _: KW_ONLY
    max_concurrent_runs: int = 1
    waiting_seconds: float = 0
    starting_seconds: float = 60
    stopping_seconds: float = 30
    timeout_seconds: float | None = None
    definition_changed_at: datetime | None = None  # set by a deployment

    def __post_init__(self) -> None:
        self.calls = 0
        self.started: list[str] = []
        self._runs: dict[str, JobRun] = {}
        self._changes: list[_Change] = []
        self._trouble: CompactorError | None = None

    def list(self, since: datetime) -> Sequence[JobRun]:
        self._call()
        return newest_first([run for run in self._runs.values() if run.started_at >= since])

    def defined_at(self) -> datetime | None:
        self._call()
        return self.definition_changed_at

    def start(self) -> str | None:
        self._call()
        living = [run for run in self._runs.values() if run.is_living]
        if len(living) >= self.max_concurrent_runs:
            return None
        run_id = f"jr_{len(self.started) + 1:06d}"
        self.started.append(run_id)
        self._begin(run_id)
        return run_id

    def stop(self, run_id: str) -> None:
        self._call()
        run = self._runs.get(run_id)
        if run is None:
            raise AccessError(f"run {run_id}: no such run")
        if not run.is_living:
            raise AccessError(f"run {run_id}: is {run.state}, expected a live run")
        self._changes = [change for change in self._changes if change.run_id != run_id]
        self._set(run_id, JobState.STOPPING)
        self._later(self.stopping_seconds, run_id, JobState.STOPPED)

    def end(self, run_id: str, state: JobState, error: str = "") -> None:
        """End a run: a crash, a timeout, or a normal end."""
        self.pass_time()
        self._changes = [change for change in self._changes if change.run_id != run_id]
        self._set(run_id, state, error)

    def expire(self, run_id: str, *, restart_after_seconds: float | None = 0) -> str:
        """Let a living run expire, as Glue does after seven days; return the id of its restart, made or not.

        Glue never restarts it if `restart_after_seconds` is None.
        """
        self.end(run_id, JobState.EXPIRED)
        first, number = lineage(run_id)
        successor = f"{first}_restart_{number + 1}"
        if restart_after_seconds is not None:
            self._later(restart_after_seconds, successor, JobState.STARTING)
            self.pass_time()
        return successor

    @contextmanager
    def trouble(self, error: CompactorError | None = None) -> Iterator[None]:
        """Let every call fail for a while with an error, by default with throttling."""
        self._trouble = error or StoreUnavailable("Glue answered with ThrottlingException: Rate exceeded")
        try:
            yield
        finally:
            self._trouble = None

    def living(self) -> Sequence[JobRun]:
        """The live runs, without a call."""
        self.pass_time()
        return [run for run in self._runs.values() if run.is_living]

    def pass_time(self) -> None:
        """Make the changes that are due."""
        while due := [change for change in self._changes if change.at <= self.clock.now()]:
            change = min(due, key=lambda each: each.at)
            self._changes.remove(change)
            if change.run_id in self._runs:
                self._set(change.run_id, change.state, at=change.at)
            else:
                self._begin(change.run_id)

    def _call(self) -> None:
        self.calls += 1
        if self._trouble is not None:
            raise self._trouble
        self.pass_time()

    def _begin(self, run_id: str) -> None:
        now = self.clock.now()
        state = JobState.WAITING if self.waiting_seconds else JobState.STARTING
        self._runs[run_id] = JobRun(run_id, state, started_at=now, changed_at=now, timeout_seconds=self.timeout_seconds)
        if self.waiting_seconds:
            self._later(self.waiting_seconds, run_id, JobState.STARTING)
        self._later(self.waiting_seconds + self.starting_seconds, run_id, JobState.RUNNING)

    def _later(self, seconds: float, run_id: str, state: JobState) -> None:
        self._changes.append(_Change(self.clock.now() + timedelta(seconds=seconds), run_id, state))

    def _set(self, run_id: str, state: JobState, error: str = "", at: datetime | None = None) -> None:
        moment = at or self.clock.now()
        ended_at = None if state.is_living else moment
        self._runs[run_id] = replace(self._runs[run_id], state=state, changed_at=moment, ended_at=ended_at, error=error)


@dataclass(slots=True)
class MemoryQueue:
    """A queue with a preset depth and age."""

    waiting: int = 0
    in_flight: int = 0
    age_seconds: float | None = None

    def depth(self) -> QueueDepth:
        return QueueDepth(self.waiting, self.in_flight)

    def oldest_seconds(self, now: datetime) -> float | None:  # noqa: ARG002 - a port's method
        return self.age_seconds


@dataclass(frozen=True, slots=True)
class MemoryNotifier:
    """Keeps every message."""

    messages: list[tuple[str, str]] = field(default_factory=list)

    def tell(self, subject: str, text: str) -> None:
        self.messages.append((subject, text))
