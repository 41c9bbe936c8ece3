"""What a run repeats beside its manifests: when each task is done, by which run, and what follows if it fails."""

import threading
import time
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest

from compactor.core.errors import CompactorError, StoreUnavailable
from compactor.ledger.housekeeping import TaskNote, failing_tasks
from compactor.upkeep.tasks import CHECK_SECONDS, FIRST_PAUSE_SECONDS, LONGEST_PAUSE_SECONDS, Task, Tasks
from tests.support.fakes import FaultyStore
from tests.support.harness import Harness
from tests.support.logged import events_logged

HOUR = 3600.0
DAY = 24 * HOUR
SECONDS = 60.0


class World:
    """Tasks of one run after another, on one state; each call is noted by the name of its task, at its hour."""

    def __init__(self) -> None:
        self.harness = Harness()
        self.began_at = self.harness.clock.now()
        self.calls: list[tuple[str, float]] = []

    def task(self, name: str, hours: float, error: Exception | None = None, **how: Any) -> Task:
        def run(_is_stopping: object) -> None:
            hour = (self.harness.clock.now() - self.began_at).total_seconds() / HOUR
            self.calls.append((name, round(hour, 1)))
            if error is not None:
                raise error

        return Task(name=name, every_seconds=hours * HOUR, run=run, **how)

    def run(self, hours: float, *tasks: Task, store: FaultyStore | None = None) -> list[tuple[str, float]]:
        """A run that lasts so long; returns the calls since the start of all."""
        made = Tasks(self.harness.app(store=store).state, tasks)
        made.step()
        for _ in range(int(hours * HOUR / CHECK_SECONDS)):
            self.harness.clock.advance(CHECK_SECONDS)
            made.step()
            made.wait()
        made.stop()
        return self.calls


def test_each_at_its_interval_whatever_the_restarts() -> None:
    """The first run of all begins the interval of a task with a note."""
    world = World()
    tasks = world.task("retention", 24), world.task("merge", 10)
    assert world.run(5, *tasks) == []
    assert world.run(6, *tasks) == [("merge", 10.0)]
    assert world.run(11, *tasks) == [("merge", 10.0), ("merge", 20.0)]
    assert world.run(3, *tasks)[2:] == [("retention", 24.0)]


def test_what_another_run_did_is_not_done_again() -> None:
    """Two runs that share a state do a task once an interval between them."""
    world = World()
    task = world.task("retention", 24)
    both = [Tasks(world.harness.app().state, [task]) for _ in range(2)]
    for _ in range(int(5 * DAY / CHECK_SECONDS)):
        world.harness.clock.advance(CHECK_SECONDS)
        for each in both:
            each.step()
            each.wait()
    assert len(world.calls) == 4


def test_one_of_several_shards_does_it_for_all() -> None:
    """This run leaves it to that one, and takes over once that one is gone."""
    world, leads = World(), False
    task = world.task("merge", 1, leads=lambda: leads)
    world.run(9, task)
    assert world.calls == []
    leads = True
    world.run(1, task)
    world.run(2, task)
    assert len(world.calls) == 2


def test_trouble_ends_nothing_and_is_told() -> None:
    """Pauses grow to an hour, the tasks after it are done, and `status` tells of what keeps failing."""
    world = World()
    failing = world.task("retention", 24, CompactorError("no"))
    with events_logged("task.failed") as told:
        world.run(24 + 6, failing, world.task("closing", 24))
    pauses = [each["pause_seconds"] for each in told]
    assert pauses == [FIRST_PAUSE_SECONDS, 2 * FIRST_PAUSE_SECONDS, *[LONGEST_PAUSE_SECONDS] * (len(told) - 2)]
    assert len(pauses) == 8
    assert [name for name, _ in world.calls].count("closing") == 1
    [found] = failing_tasks(world.harness.app().state)
    assert (found.name, found.error) == ("retention", "no")
    assert found.failed_at - found.failing_since > timedelta(hours=4)
    world.run(1.1, world.task("retention", 24))
    assert failing_tasks(world.harness.app().state) == ()


def test_what_was_not_due_has_not_failed() -> None:
    """Trouble of the store while a run reads its note is none of the task."""
    world = World()
    world.run(1, world.task("retention", 24))
    store = FaultyStore(world.harness.store)
    store.unavailable_at(1, "read")
    with events_logged("task.failed") as told:
        world.run(1, world.task("retention", 24), store=store)
    assert (len(told), world.calls) == (1, [])
    note = TaskNote(world.harness.app().state, "retention").read()
    assert note is not None
    assert note.failing_since is None


@pytest.mark.parametrize("record", [b"{", b'{"finished_at": "2020-01-01T00:00:00"}', b'{"finished_at": "2099-01-01"}'])
def test_a_note_that_makes_no_sense_begins_the_interval(record: bytes) -> None:
    """It holds the task up for one interval at most."""
    world = World()
    world.harness.store.put(world.harness.layout.last_run("retention"), record)
    world.run(25, world.task("retention", 24))
    assert len(world.calls) == 1


def test_a_clock_that_the_first_heartbeat_corrects() -> None:
    """A run on a machine that is days ahead of the store does what is due as soon as any other."""
    world = World()
    world.run(1, world.task("retention", 24))
    world.harness.clock.advance(DAY)
    app = world.harness.app()
    app.clock.learn(world.harness.clock.now() + timedelta(days=365))  # until now it was wrong
    made = Tasks(app.state, [world.task("retention", 24)])
    made.step()
    app.clock.learn(world.harness.clock.now())
    made.step()
    made.wait()
    assert len(world.calls) == 1


class Loop:
    """A task without a note that fails twice, though it should not, and then says when its next turn is."""

    def __init__(self) -> None:
        self.calls = 0

    def run(self, is_stopping: Callable[[], bool]) -> float:
        assert not is_stopping()
        self.calls += 1
        if self.calls < 3:
            raise ValueError("none that was expected")
        return 0.0 if self.calls < 5 else HOUR

    def task(self, **how: Any) -> Task:
        return Task(name="topics", every_seconds=1.0, run=self.run, has_note=False, first_pause_seconds=1.0, **how)


def test_a_task_says_when_its_next_turn_is() -> None:
    """At once, if it likes. One without a note is done at once, and an unexpected error is over with the next turn."""
    harness, loop = Harness(), Loop()
    made = Tasks(harness.app().state, [loop.task()])
    found = []
    for seconds in (0.0, 0.5, 0.5, 2.0, HOUR - 1, 1.0):
        harness.clock.advance(seconds)
        made.step()
        made.wait()
        found.append(loop.calls)
    assert found == [1, 1, 2, 5, 5, 6]


def test_a_run_that_is_to_end() -> None:
    """It does what tasks have for its start and for its end, and hears why some failed."""

    def fail(_is_stopping: object) -> None:
        raise StoreUnavailable("503")

    done = list[str]()
    tasks = [
        Loop().task(at_start=fail),
        Task(name="columns", every_seconds=1.0, run=fail, at_end=lambda _: done.append("columns")),
    ]
    made = Tasks(Harness().app().state, tasks)
    [error] = made.start_once(lambda: False)
    assert (str(error), done) == ("503", [])
    assert made.end_once(lambda: False) == []
    assert done == ["columns"]


def test_a_stop_leaves_alone_what_hangs() -> None:
    """Brokers may never answer; a task that asks whether to stop ends."""
    begun, never, ended = threading.Event(), threading.Event(), list[bool]()

    def hang(_is_stopping: object) -> None:
        begun.set()
        never.wait(SECONDS)

    def polite(is_stopping: Callable[[], bool]) -> None:
        while not is_stopping():
            time.sleep(0.01)
        ended.append(True)

    tasks = [Task(name="hangs", every_seconds=1.0, run=hang, at_start=hang, has_note=False, thread="hangs")]
    tasks.append(Task(name="polite", every_seconds=1.0, run=polite, has_note=False))
    made = Tasks(Harness().app().state, tasks)
    made.step()
    assert begun.wait(SECONDS)
    made.stop()
    assert ended == [True]
    made.start_once(lambda: True)
    never.set()
