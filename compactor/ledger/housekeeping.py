"""Notes on recurring tasks of jobs: when each last finished, and whether it keeps failing.

No other work waits for these tasks, so their failures show nowhere else.
"""

from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime, timedelta

from compactor.core.documents.records import LastRun
from compactor.core.map_ordered import map_ordered
from compactor.ledger.state import State
from compactor.telemetry.error_text import described

REPORTED_FOR = timedelta(days=2)
"""An active task fails again within a day; one that failed earlier was switched off, or no job runs."""


@dataclass(frozen=True, slots=True)
class FailingTask:
    """A task that has failed more than once since it last finished."""

    name: str  # retention, closing, table maintain or table merge
    failing_since: datetime  # when its first call since then failed
    failed_at: datetime  # time of the latest failure
    error: str  # latest error


@dataclass(frozen=True, slots=True)
class TaskNote:
    """Records when a task last finished, and since when it has been failing."""

    state: State
    task: str

    def read(self) -> LastRun | None:
        """The latest result; None without a readable record."""
        return LastRun.find_readable(self.state.store, self.state.layout.last_run(self.task))

    def left_seconds(self, every_seconds: float) -> float:
        """The time until the task is due. Without a record, its interval starts now.

        A record dated in the future, by a wrong clock, delays the task by at most one interval.
        """
        last = self.read()
        if last is None:
            self.finished()
            return every_seconds
        passed_seconds = abs((self.state.clock.now() - last.finished_at).total_seconds())
        return max(0.0, every_seconds - passed_seconds)

    def finished(self) -> None:
        self._overwrite(LastRun(finished_at=self.state.clock.now()))

    def failed(self, error: BaseException) -> None:
        """Record a failure, if possible. The task remains due."""
        now = self.state.clock.now()
        with suppress(Exception):
            last = self.read() or LastRun(finished_at=now)
            since = min(last.failing_since or now, now)
            changes = {"failing_since": since, "failed_at": now, "error": described(error)}
            self._overwrite(last.model_copy(update=changes))

    def _overwrite(self, last: LastRun) -> None:
        self.state.store.put(self.state.layout.last_run(self.task), last.to_json())


def failing_tasks(state: State, upkeep: Iterable[str] = ()) -> tuple[FailingTask, ...]:
    """The tasks that keep failing; a single failure does not count.

    Args:
        state: Source of the records.
        upkeep: The table upkeep that jobs do: maintain, merge.
    """
    now = state.clock.now()

    def failing(task: str) -> FailingTask | None:
        last = TaskNote(state, task).read()
        if last is None or last.failing_since is None or last.failed_at is None or last.failing_since == last.failed_at:
            return None
        if abs(now - last.failed_at) > REPORTED_FOR:
            return None
        return FailingTask(task, last.failing_since, last.failed_at, last.error)

    tasks = ("retention", "closing", *(f"table {each}" for each in upkeep))
    return tuple(found for found in map_ordered(failing, tasks) if found is not None)
