"""Runs simulated processes one step at a time, in the order that a seed gives, on a clock of its own.

Each task has a stack of its own, and one task runs at a time. When it pauses, waits or ends, the task whose moment
comes next goes on, and the clock jumps to that moment. Nothing else decides who runs: a seed always gives the same run.
"""

import heapq
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from random import Random

from tests.simulation.carriers import Carrier, carrier, home

START = datetime(2026, 3, 2, tzinfo=UTC)
SOON_SECONDS = 1e-4
"""A task that is woken runs at most so much later: several of them in an order by chance."""


class Death(BaseException):
    """The process of this task has died: nothing of it reaches the world any more."""


class Broken(Exception):
    """Something that must never happen."""


class Stalled(Broken):
    """Work that does not end although nothing goes wrong any more: the promise of liveness is broken, not of safety."""


@dataclass(eq=False)
class Process:
    """A simulated process: its threads die together.

    Attributes:
        name: Unique in a run.
        skew_seconds: How far its clock is ahead.
        paused_until: Until then nothing of it runs.
        on_end: Called once, when it has ended or died.
        error: What ended its first task.
        tasks: Those that have not ended, by number.
    """

    name: str
    skew_seconds: float = 0.0
    paused_until: float = 0.0
    is_dead: bool = False
    has_died: bool = False
    error: BaseException | None = None
    on_end: Callable[["Process"], None] = lambda _: None
    tasks: dict[int, "Task"] = field(default_factory=dict)

    def check(self) -> None:
        """Raise in the tasks of a dead process."""
        if self.is_dead:
            raise Death


@dataclass(eq=False)
class Task:
    """One thread of a simulated process."""

    number: int
    process: Process
    name: str
    work: Callable[[], object]
    carrier: Carrier | None = None
    ticket: int = 0  # an entry of the agenda with another ticket is out of date
    has_ended: bool = False
    waiters: list["Task"] = field(default_factory=list)


class Scheduler:
    """Holds the agenda. One at a time in an operating system process: `SCHEDULER.current` is it.

    Args:
        seed: Of everything that happens by chance.
    """

    current: "Scheduler | None" = None

    def __init__(self, seed: int) -> None:
        self.seed = seed
        self.now = 0.0
        self.steps = 0
        self.task: Task | None = None
        self.broken: BaseException | None = None
        self.processes: dict[str, Process] = {}
        self.order_chance = self.chance("order")
        self.code_chance = self.chance("code")
        self._agenda: list[tuple[float, int, Task, int]] = []
        self._numbers = 0
        self._home = home()

    def chance(self, purpose: str) -> Random:
        """Chance for one purpose: what is drawn for another one does not change it."""
        return Random(f"{self.seed}/{purpose}")

    def moment(self) -> datetime:
        """The time now."""
        return START + timedelta(seconds=self.now)

    def run(self, process: Process, work: Callable[[], object]) -> None:
        """Run a task and all that it starts, until it ends; then kill the rest. Raises what broke.

        Raises:
            Broken: Something that must never happen.
        """
        Scheduler.current = self
        first = self.spawn(process, work, "main")
        self._first = first
        while (task := self._next()) is not None:  # a task that ends returns here
            self.task = task
            assert task.carrier is not None
            task.carrier.switch(self._home)
        self.task = None
        Scheduler.current = None
        if self.broken is not None:
            raise self.broken
        if not first.has_ended:
            raise Broken("all tasks wait for each other")

    def spawn(self, process: Process, work: Callable[[], object], name: str, delay: float = 0.0) -> Task:
        """Add a task."""
        self._numbers += 1
        task = Task(self._numbers, process, name, work)
        task.carrier = carrier(lambda: self._carried(task), self._home)
        process.tasks[task.number] = task
        self._push(self.now + delay + self.order_chance.random() * SOON_SECONDS, task)
        return task

    def start(self, process: Process, work: Callable[[], object], delay: float = 0.0) -> Process:
        """Start a process. It ends with its first task."""
        if process.name in self.processes:
            raise ValueError(f"process {process.name}: there is one already")
        self.processes[process.name] = process

        def first() -> None:
            try:
                work()
            except Death:
                raise
            except BaseException as exc:  # noqa: BLE001 - it is how the process ended
                process.error = exc
            self._end_process(process)

        self.spawn(process, first, "main", delay)
        return process

    def pause(self, seconds: float) -> None:
        """Let time pass."""
        task = self.task
        if task is None:
            return
        task.process.check()
        self._push(self.now + seconds, task)
        self._switch(task)
        task.process.check()

    def block(self, timeout: float | None = None) -> bool:
        """Wait until `wake` is called for this task; returns False if the timeout came first."""
        task = self.task
        if task is None:
            raise RuntimeError("only a simulated task can wait")
        task.process.check()
        ticket = task.ticket
        if timeout is not None:
            self._push(self.now + max(timeout, 0.0), task)
        self._switch(task)
        task.process.check()
        return task.ticket != ticket + 1  # `_next` counts once, `wake` once more

    def wake(self, task: Task) -> None:
        """Let a waiting task go on, soon."""
        task.ticket += 1
        self._push(self.now + self.order_chance.random() * SOON_SECONDS, task)

    def kill(self, process: Process) -> None:
        """End a process in the midst of what it does. If one of its own tasks calls, that one has to raise `Death`."""
        if not process.is_dead:
            process.has_died = True
            self._end_process(process)

    def stop_all(self) -> None:
        """End everything."""
        for process in [*self.processes.values()]:
            self.kill(process)

    def break_off(self, error: BaseException) -> None:
        """Note that something happened that must never happen, and end everything."""
        if self.broken is None:
            self.broken = error
            self.stop_all()
            self._end_process(self._first.process)

    def _end_process(self, process: Process) -> None:
        if process.is_dead:
            return
        process.is_dead = True
        for task in process.tasks.values():
            if task is not self.task and not task.has_ended:
                self.wake(task)  # it raises `Death` where it waits
        process.on_end(process)

    def _push(self, at: float, task: Task) -> None:
        self._numbers += 1
        heapq.heappush(self._agenda, (at, self._numbers, task, task.ticket))

    def _next(self) -> Task | None:
        """The task whose moment comes next; the clock is set to it."""
        while self._agenda:
            at, _, task, ticket = heapq.heappop(self._agenda)
            if task.has_ended or ticket != task.ticket:
                continue
            paused_until = task.process.paused_until
            if paused_until > at and not task.process.is_dead:
                self._push(paused_until, task)
                continue
            self.now = max(self.now, at)
            self.steps += 1
            task.ticket += 1
            return task
        return None

    def _switch(self, task: Task) -> None:
        """Let the next task go on, and return when it is this one's turn again."""
        following = self._next()
        if following is task:
            return
        assert task.carrier is not None
        self.task = following
        there = self._home if following is None else following.carrier
        assert there is not None
        there.switch(task.carrier)

    def _carried(self, task: Task) -> None:
        """The whole life of a task, on its stack."""
        try:
            if not task.process.is_dead:
                task.work()
        except Death:
            pass
        except BaseException as exc:  # noqa: BLE001 - a thread that ends so has a bug
            self.break_off(exc)
        task.has_ended = True
        del task.process.tasks[task.number]
        for waiter in task.waiters:
            self.wake(waiter)
        if task is self._first:
            self.stop_all()
            self._end_process(task.process)
