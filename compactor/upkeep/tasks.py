"""Tasks that a run repeats in addition to its manifests: when each is due, in which thread, and what failures cause.

No manifest waits for a task, and a thread of tasks ends with the process at any point: all that they do is safe to
repeat, also after a kill and beside other runs.
"""

import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import partial
from itertools import chain
from threading import Event, Thread

from compactor.core.rules.backoff import is_over, pause_seconds
from compactor.ledger.housekeeping import TaskNote
from compactor.ledger.state import State
from compactor.telemetry.logs import log_event

CHECK_SECONDS = 60.0
"""How long a run works before it reads when a task last finished: its first heartbeat may correct the clock."""

FIRST_PAUSE_SECONDS = 900.0
LONGEST_PAUSE_SECONDS = 3600.0
"""Pauses after failures; they double. A task with a note waits at most for its interval."""

STOP_SECONDS = 2.0
"""How long a stop waits for running tasks."""

_POLL_SECONDS = 0.2

IsStopping = Callable[[], bool]


@dataclass(frozen=True, slots=True, kw_only=True)
class Task:
    """A recurring task of a run.

    Attributes:
        name: Its name in the log, and in `status` if it has a note.
        every_seconds: From the end of one call to the start of the next.
        run: Does the work, and ends early when asked to stop. May return the seconds until the next call.
        has_note: Whether a record has its last finish, and since when it has been failing. A restart then does not
            change the next call's time. A task without a note first runs at once.
        thread: Tasks in one thread wait for each other.
        leads: Whether this run does it: one of several shards does it for all. Running it twice is safe.
        first_pause_seconds: The pause after the first failure.
        longest_pause_seconds: The longest pause after any number of failures.
        at_start: The part that a run with `once` does before its manifests; None for nothing.
        at_end: The part that such a run does after them.
    """

    name: str
    every_seconds: float
    run: Callable[[IsStopping], float | None]
    has_note: bool = True
    thread: str = "upkeep"
    leads: Callable[[], bool] = lambda: True
    first_pause_seconds: float = FIRST_PAUSE_SECONDS
    longest_pause_seconds: float = LONGEST_PAUSE_SECONDS
    at_start: Callable[[IsStopping], object] | None = None
    at_end: Callable[[IsStopping], object] | None = None


@dataclass(slots=True)
class _Turn:
    """When a task is next due, and its failures in a row. Written by its thread, or by others if there is none."""

    next_at: datetime | None = None
    pause_seconds: float = 0.0
    failures: int = 0

    def wait(self, now: datetime, seconds: float) -> None:
        self.next_at, self.pause_seconds = now + timedelta(seconds=seconds), seconds

    def is_due(self, now: datetime) -> bool:
        return self.next_at is not None and is_over(self.next_at, now, longest_seconds=self.pause_seconds)


class Tasks:
    """The tasks of one run."""

    def __init__(self, state: State, tasks: Iterable[Task] = ()) -> None:
        self._state = state
        self._threads: dict[str, Thread] = {}
        self._by_thread: dict[str, list[Task]] = {}
        self._turns: dict[str, _Turn] = {}
        self._stopping = Event()
        for task in tasks:
            self._by_thread.setdefault(task.thread, []).append(task)
            self._turns[task.name] = _Turn()

    def step(self) -> None:
        """Start due tasks, except in busy threads. Never waits, never raises. One thread calls it."""
        for name, tasks in self._by_thread.items():
            thread = self._threads.get(name)
            if (thread is None or not thread.is_alive()) and any(map(self._is_due, tasks)):
                self._start(name, partial(self._work, tasks, self._stopping.is_set))

    def halt(self) -> None:
        """Ask running tasks to end. Takes no lock, so that a signal handler may call it."""
        self._stopping.set()

    def stop(self) -> None:
        """End running tasks, but abandon those that do not end soon. Safe to call twice."""
        self.halt()
        ends_at = time.monotonic() + STOP_SECONDS
        for thread in self._threads.values():
            thread.join(max(0.0, ends_at - time.monotonic()))
        self._threads, self._stopping = {}, Event()

    def wait(self) -> None:
        """Wait until running tasks have ended."""
        for thread in self._threads.values():
            thread.join()

    def start_once(self, is_stopping: IsStopping) -> list[Exception]:
        """Do what a run with `once` does before its manifests, or until a stop; return the tasks' errors."""
        return self._once({task: task.at_start for task in self._tasks() if task.at_start}, is_stopping)

    def end_once(self, is_stopping: IsStopping) -> list[Exception]:
        """Do what a run with `once` does after its manifests; see `start_once`."""
        return self._once({task: task.at_end for task in self._tasks() if task.at_end}, is_stopping)

    def _tasks(self) -> Iterator[Task]:
        return chain.from_iterable(self._by_thread.values())

    def _once(self, works: Mapping[Task, Callable[[IsStopping], object]], is_stopping: IsStopping) -> list[Exception]:
        errors: list[Exception] = []

        def work(task: Task) -> None:
            try:
                works[task](is_stopping)
            except Exception as exc:  # noqa: BLE001 - the caller raises it at the end of the run, or leaves it
                log_event("task.failed", task=task.name, failures=1, pause_seconds=0, error=exc)
                errors.append(exc)

        for task in works:
            self._start(task.name, partial(work, task))
        for task in works:
            while self._threads[task.name].is_alive() and not is_stopping():
                self._threads[task.name].join(_POLL_SECONDS)
        return list(errors)

    def _start(self, name: str, work: Callable[[], None]) -> None:
        # A task that waits for brokers or a catalog does not keep a process from ending.
        self._threads[name] = Thread(target=work, name=name, daemon=True)
        self._threads[name].start()

    def _is_due(self, task: Task) -> bool:
        turn, now = self._turns[task.name], self._state.clock.now()
        if turn.next_at is None:
            turn.wait(now, CHECK_SECONDS if task.has_note else 0.0)
        return turn.is_due(now)

    def _work(self, tasks: Sequence[Task], is_stopping: IsStopping) -> None:
        while due := [task for task in tasks if self._is_due(task)]:
            for task in due:
                if is_stopping():
                    return
                self._call(task, is_stopping)

    def _call(self, task: Task, is_stopping: IsStopping) -> None:
        """Run a task, unless it turns out not to be due; whatever it raises, it gets its turn again."""
        turn, note = self._turns[task.name], TaskNote(self._state, task.name)
        is_begun = False
        try:
            pause = self._left_seconds(task, note)
            if not pause:
                is_begun = True
                asked = task.run(is_stopping)
                pause = task.every_seconds if asked is None else asked
                if task.has_note and not is_stopping():
                    note.finished()
            turn.failures = 0
        except Exception as exc:  # noqa: BLE001 - without its thread, nothing would do it any more
            turn.failures += 1
            longest = (
                min(task.longest_pause_seconds, task.every_seconds) if task.has_note else task.longest_pause_seconds
            )
            pause = pause_seconds(
                turn.failures, first_seconds=task.first_pause_seconds, longest_seconds=longest, chance=1.0
            )
            log_event("task.failed", task=task.name, failures=turn.failures, pause_seconds=round(pause, 3), error=exc)
            if task.has_note and is_begun:
                note.failed(exc)
        turn.wait(self._state.clock.now(), pause)

    def _left_seconds(self, task: Task, note: TaskNote) -> float:
        """How long until a task that seems due to this run is really due, considering other runs."""
        if not task.leads():
            return CHECK_SECONDS
        return note.left_seconds(task.every_seconds) if task.has_note else 0.0
