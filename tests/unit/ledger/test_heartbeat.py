"""Heartbeats: which runs are alive."""

import subprocess
import sys
import threading
import time
from contextlib import ExitStack, suppress
from datetime import timedelta

import pytest

from compactor.adapters.local.machine import MachineProcesses
from compactor.core.documents.records import LIFE_SECONDS
from compactor.core.ports import ProcessName
from compactor.ledger.heartbeat import FORGET_SECONDS, IDLE_TIMES, Heartbeat, Runs, StoreClock
from tests.support.fakes import FaultyStore
from tests.support.harness import Harness
from tests.support.logged import events_logged
from tests.support.memory_store import ManualClock


class NamedProcesses:
    """Processes that are gone by their number."""

    def __init__(self, process_id: int, *gone: int) -> None:
        self._process_id, self._gone = process_id, gone

    def this(self) -> ProcessName:
        return ProcessName("here", self._process_id)

    def is_gone(self, process: ProcessName) -> bool:
        return process.process_id in self._gone


def heartbeat(harness: Harness, run_id: str, process_id: int = 1) -> Heartbeat:
    return Heartbeat(harness.store, harness.layout, harness.clock, run_id, ProcessName("here", process_id))


def runs(harness: Harness, *gone: int) -> Runs:
    return Runs(harness.store, harness.layout, harness.clock, NamedProcesses(1, *gone))


def test_a_run_lives_as_long_as_its_context() -> None:
    """Others see a run while it lasts, and neither before nor after."""
    harness = Harness()
    assert runs(harness).living() == []
    with heartbeat(harness, "a", 7):
        (beat,) = runs(harness).living()
        assert (beat.run_id, beat.process_id) == ("a", 7)
        assert runs(harness).living_among(["a", "unheard"]) == {"a"}
    assert runs(harness).living_among(["a"]) == set()


def test_a_run_without_a_sign_is_dead() -> None:
    """A run that gave no sign for long is dead, and so is one whose process is known to have ended."""
    harness = Harness()
    with heartbeat(harness, "a", 7):
        harness.clock.advance(LIFE_SECONDS)
        assert runs(harness).living_among(["a"]) == {"a"}
        assert (runs(harness, 7).living_among(["a"]), runs(harness, 7).living()) == (set(), [])
        harness.clock.advance(1)
        assert (runs(harness).living_among(["a"]), runs(harness).living()) == (set(), [])


def test_trouble_with_the_store_hinders_no_run() -> None:
    """A sign that cannot be given, or removed, is no reason to fail; a damaged one counts as none."""
    harness = Harness()
    store = FaultyStore(harness.store)
    for method in ("put", "delete"):
        store.unavailable_at(1, method)
    with Heartbeat(store, harness.layout, harness.clock, "a", ProcessName("here", 1)):
        pass
    harness.store.put(harness.layout.run("c"), b"{")
    assert runs(harness).living_among(["a", "c"]) == set()


def test_signs_of_the_long_dead_are_removed() -> None:
    """Only heartbeats that were not renewed for long are deleted."""
    harness = Harness()
    harness.store.put(harness.layout.run("old"), b"{}")
    harness.clock.advance(FORGET_SECONDS + 1)
    harness.store.put(harness.layout.run("young"), b"{}")
    runs(harness).forget_dead()
    assert [info.uri for info in harness.store.list(harness.layout.runs_folder)] == [harness.layout.run("young")]


def test_a_run_is_told_to_stop(monkeypatch: pytest.MonkeyPatch) -> None:
    """A request reaches its run with the next beat, no other run, and is gone with the run."""
    monkeypatch.setattr("compactor.ledger.heartbeat.HEARTBEAT_INTERVAL_SECONDS", 0.01)
    harness = Harness()
    asked = {"a": threading.Event(), "b": threading.Event()}
    with ExitStack() as stack:
        for run_id, event in asked.items():
            each = heartbeat(harness, run_id)
            each.on_stop_request(event.set)
            stack.enter_context(each)
        runs(harness).ask_to_stop("a")
        assert asked["a"].wait(60)
        assert not asked["b"].wait(0.1)
    assert list(harness.store.list(harness.layout.runs_folder)) == []


def test_a_stop_request_without_a_registered_function() -> None:
    """The heartbeat that sees it does not fail."""
    harness = Harness()
    with events_logged("run.heartbeat_failed") as failures, heartbeat(harness, "a") as each:
        runs(harness).ask_to_stop("a")
        each._write_heartbeat()
    assert failures == []


def test_requests_and_signs_are_dated() -> None:
    """When a run was asked to end, and when any run gave its last sign, can be told; of none there is no time."""
    harness = Harness()
    assert (runs(harness).asked_to_stop_at("a"), runs(harness).last_sign_at()) == (None, None)
    with heartbeat(harness, "a"):
        heartbeat_at = harness.clock.now()
        harness.clock.advance(LIFE_SECONDS + 20)
        runs(harness).ask_to_stop("a")
        assert runs(harness).living() == []
        assert runs(harness).last_sign_at() == heartbeat_at
        assert runs(harness).asked_to_stop_at("a") == harness.clock.now()
    assert (runs(harness).asked_to_stop_at("a"), runs(harness).last_sign_at()) == (None, None)


@pytest.mark.parametrize("reaped", [False, True])
def test_processes_of_this_machine(reaped: bool) -> None:
    """A process is there until it has ended, also before its parent asks for its end; another machine cannot tell."""
    processes = MachineProcesses()
    host = processes.this().host
    assert not processes.is_gone(processes.this())
    child = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    name = ProcessName(host, child.pid)
    try:
        assert not processes.is_gone(name)
    finally:
        child.kill()
        if reaped:
            child.wait()
    while not processes.is_gone(name):
        with suppress(subprocess.TimeoutExpired):
            child.wait(0.01) if reaped else None
    assert not processes.is_gone(ProcessName("elsewhere", child.pid))
    child.wait()


@pytest.mark.parametrize("hours", [-3, 3])
def test_a_clock_that_is_wrong_changes_nothing(hours: int) -> None:
    """A dead run whose machine's clock ran hours ahead or behind is as dead, and as alive before, as any other."""
    harness = Harness()
    wrong = ManualClock(harness.clock.now() + timedelta(hours=hours))
    right = StoreClock(wrong)
    with Heartbeat(harness.store, harness.layout, right, "a", ProcessName("here", 1), learn_time=right.learn):
        assert right.now() == harness.clock.now()
        assert runs(harness).living_among(["a"]) == {"a"}
        assert Runs(harness.store, harness.layout, right, NamedProcesses(1)).living_among(["a"]) == {"a"}
        harness.clock.advance(LIFE_SECONDS + 1)
        assert (runs(harness).living_among(["a"]), runs(harness).living()) == (set(), [])


def test_a_difference_that_no_store_can_tell_is_none() -> None:
    """Times that are given to the second do not make the clock jump."""
    machine = ManualClock()
    clock = StoreClock(machine)
    clock.learn(machine.now() - timedelta(seconds=1.9))
    assert clock.now() == machine.now()
    clock.learn(machine.now() - timedelta(seconds=2.1))
    assert clock.now() == machine.now() - timedelta(seconds=2.1)


def test_no_error_ends_the_heartbeats(monkeypatch: pytest.MonkeyPatch) -> None:
    """Also one that no one foresaw: the control plane would stop a run that works."""
    monkeypatch.setattr("compactor.ledger.heartbeat.HEARTBEAT_INTERVAL_SECONDS", 0.001)
    harness, written = Harness(), threading.Event()

    class Odd(FaultyStore):
        puts = 0

        def put(self, uri: str, data: bytes) -> None:
            self.puts += 1
            if self.puts == 2:  # the first one of the thread
                raise LookupError("unforeseen")
            if self.puts > 2:
                written.set()
            super().put(uri, data)

    with Heartbeat(Odd(harness.store), harness.layout, harness.clock, "a", ProcessName("here", 1)):
        assert written.wait(10)


def test_a_slow_answer_does_not_set_the_clock_back() -> None:
    """A store that answers late, or a process that was stopped meanwhile, tells nothing about the clock."""
    harness = Harness()
    clock = StoreClock(harness.clock)

    class Late(FaultyStore):
        def put(self, uri: str, data: bytes) -> None:
            super().put(uri, data)
            harness.clock.advance(30)

    store = Late(harness.store)
    with Heartbeat(store, harness.layout, clock, "a", ProcessName("here", 1), learn_time=clock.learn):
        assert clock.now() == harness.clock.now()


@pytest.mark.parametrize(("shard", "times"), [("", IDLE_TIMES), ("1/2", 1)], ids=["whole", "of a shard"])
def test_an_idle_run_writes_less_often_and_at_once_when_work_comes(
    monkeypatch: pytest.MonkeyPatch, shard: str, times: int
) -> None:
    """An idle run lives longer by its own record; a shard does not, and the first work shortens it again."""
    monkeypatch.setattr("compactor.ledger.heartbeat.HEARTBEAT_INTERVAL_SECONDS", 0.01)
    harness = Harness()

    def wait_for(life_seconds: float) -> None:
        until = time.monotonic() + 60
        while runs(harness).living()[0].life_seconds != life_seconds:
            assert time.monotonic() < until
            time.sleep(0.01)

    store = FaultyStore(harness.store)
    beat = Heartbeat(store, harness.layout, harness.clock, "a", ProcessName("here", 1), shard=shard)
    with beat:
        wait_for(LIFE_SECONDS)
        written = store.calls["put"]
        beat.note_work(is_idle=True)
        while store.calls["put"] < written + 3:  # by then one has begun after the note
            time.sleep(0.01)
        wait_for(times * LIFE_SECONDS)
        monkeypatch.setattr("compactor.ledger.heartbeat.HEARTBEAT_INTERVAL_SECONDS", 60.0)
        beat.note_work(is_idle=False)
        wait_for(LIFE_SECONDS)


def test_work_that_comes_and_goes_writes_no_more_often(monkeypatch: pytest.MonkeyPatch) -> None:
    """A run that rests for moments, as between small manifests, has the interval of a run with work."""
    monkeypatch.setattr("compactor.ledger.heartbeat.HEARTBEAT_INTERVAL_SECONDS", 60.0)
    harness = Harness()
    with Heartbeat(harness.store, harness.layout, harness.clock, "a", ProcessName("here", 1)) as beat:
        for _ in range(100):
            beat.note_work(is_idle=True)
            beat.note_work(is_idle=False)
        assert not beat._woken.is_set()
