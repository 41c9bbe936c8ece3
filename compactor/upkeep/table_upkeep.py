"""Does the upkeep of the table beside the work of a run, and merges its small files, at the intervals of the settings.

Both do what the commands do, which are safe beside jobs and to be repeated after a kill. So a thread of its own does
them, for which nothing of the run waits, and which ends with the process at any point.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from compactor.core.documents.table_records import LastUpkeep
from compactor.core.rules.backoff import is_over
from compactor.ledger.state import State
from compactor.telemetry.logs import log_event
from compactor.upkeep.beside import Beside, LastTime

CHECK_SECONDS = 60.0
"""How often to look whether something is due; a run also works so long before its first look."""

RETRY_SECONDS = 3600.0
"""How long to wait after a failure, unless the interval is shorter."""


@dataclass(frozen=True, slots=True)
class UpkeepTask:
    """What is done at an interval.

    Attributes:
        name: Its name, as that of the command.
        every_seconds: From the end of one call to the beginning of the next.
        run: Does it, and returns how much of what.
    """

    name: str
    every_seconds: float
    run: Callable[[], Mapping[str, int]]


@dataclass(slots=True, kw_only=True)
class TableUpkeep:
    """The tasks of one run, of which one is at work at a time.

    A small object records when each finished, so a restart does not change the time of the next call, and since when
    it fails, for `status` to show.

    Attributes:
        state: Where these objects are.
        tasks: The tasks, in their order.
        leads: Returns whether this run does them for all shards. Two at once are safe.
    """

    state: State
    tasks: Sequence[UpkeepTask]
    leads: Callable[[], bool] = lambda: True
    _thread: Beside = field(init=False)
    _next_check: datetime | None = field(default=None, init=False)
    _paused: dict[str, datetime] = field(default_factory=dict, init=False)

    def __post_init__(self) -> None:
        self._thread = Beside("upkeep", self._run_due)

    def step(self) -> None:
        """Begin what is due, unless something is at work. Meant to be called repeatedly; never raises, never waits."""
        now = self.state.clock.now()
        if self._next_check is None:
            self._next_check = now + timedelta(seconds=CHECK_SECONDS)
        is_time = is_over(self._next_check, now, longest_seconds=CHECK_SECONDS)
        if not self.tasks or self._thread.is_at_work or not is_time:
            return
        self._next_check = now + timedelta(seconds=CHECK_SECONDS)
        self._thread.start()

    def wait(self) -> None:
        """Wait for the end of what is at work; for tests."""
        self._thread.wait()

    def _run_due(self) -> None:
        for task in self.tasks:
            is_due = False
            try:
                is_due = self._is_due(task) and self.leads()
                if is_due:
                    log_event("table.upkeep_done", task=task.name, done=dict(task.run()))
                    self._last(task).finished(self.state.clock.now())
            except Exception as exc:  # noqa: BLE001 - whatever it is, the next call does what is left
                pause, now = min(RETRY_SECONDS, task.every_seconds), self.state.clock.now()
                self._paused[task.name] = now + timedelta(seconds=pause)
                log_event("table.upkeep_failed", task=task.name, pause_seconds=round(pause, 3), error=exc)
                if is_due:
                    self._last(task).failed(now, exc)

    def _is_due(self, task: UpkeepTask) -> bool:
        now = self.state.clock.now()
        is_time = is_over(self._paused.get(task.name, now), now, longest_seconds=RETRY_SECONDS)
        return is_time and self._last(task).is_due(now, task.every_seconds)

    def _last(self, task: UpkeepTask) -> LastTime:
        return LastTime(self.state, self.state.layout.last_upkeep(task.name), LastUpkeep)
