"""Signs of life: who is still at work."""

import subprocess
import sys
import threading
from contextlib import ExitStack, suppress

import pytest

from compactor.adapters.local.processes import MachineProcesses
from compactor.core.ports import ProcessName
from compactor.ledger.heartbeat import FORGET_SECONDS, LIFE_SECONDS, Presence, Runs
from tests.support.fakes import FaultyStore
from tests.support.harness import World


class NamedProcesses:
    """Processes that are gone by their number."""

    def __init__(self, process_id: int, *gone: int) -> None:
        self._process_id, self._gone = process_id, gone

    def this(self) -> ProcessName:
        return ProcessName("here", self._process_id)

    def is_gone(self, process: ProcessName) -> bool:
        return process.process_id in self._gone


def presence(world: World, run_id: str, process_id: int = 1) -> Presence:
    return Presence(world.store, world.layout, world.clock, run_id, ProcessName("here", process_id))


def runs(world: World, *gone: int) -> Runs:
    return Runs(world.store, world.layout, world.clock, NamedProcesses(1, *gone))


def test_a_run_lives_as_long_as_its_context() -> None:
    """Others see a run while it lasts, and neither before nor after."""
    world = World()
    assert runs(world).living() == []
    with presence(world, "a", 7):
        (beat,) = runs(world).living()
        assert (beat.run_id, beat.process_id) == ("a", 7)
        assert runs(world).living_among(["a", "unheard"]) == {"a"}
    assert runs(world).living_among(["a"]) == set()


def test_a_run_without_a_sign_is_dead() -> None:
    """A run that gave no sign for long is dead, and so is one whose process is known to have ended."""
    world = World()
    with presence(world, "a", 7):
        world.clock.advance(LIFE_SECONDS)
        assert runs(world).living_among(["a"]) == {"a"}
        assert (runs(world, 7).living_among(["a"]), runs(world, 7).living()) == (set(), [])
        world.clock.advance(1)
        assert (runs(world).living_among(["a"]), runs(world).living()) == (set(), [])


def test_trouble_with_the_store_hinders_no_run() -> None:
    """A sign that cannot be given, or removed, is no reason to fail; a damaged one counts as none."""
    world = World()
    store = FaultyStore(world.store)
    for method in ("put", "delete"):
        store.unavailable_at(1, method)
    with Presence(store, world.layout, world.clock, "a", ProcessName("here", 1)):
        pass
    world.store.put(world.layout.run("c"), b"{")
    assert runs(world).living_among(["a", "c"]) == set()


def test_signs_of_the_long_dead_are_removed() -> None:
    """Only those that nobody has renewed for long."""
    world = World()
    world.store.put(world.layout.run("old"), b"{}")
    world.clock.advance(FORGET_SECONDS + 1)
    world.store.put(world.layout.run("young"), b"{}")
    runs(world).forget_dead()
    assert [info.uri for info in world.store.list(world.layout.runs_folder)] == [world.layout.run("young")]


def test_a_run_is_told_to_stop(monkeypatch: pytest.MonkeyPatch) -> None:
    """A request reaches its run with the next beat, no other run, and is gone with the run."""
    monkeypatch.setattr("compactor.ledger.heartbeat.BEAT_SECONDS", 0.01)
    world = World()
    asked = {"a": threading.Event(), "b": threading.Event()}
    with ExitStack() as stack:
        for run_id, event in asked.items():
            each = presence(world, run_id)
            each.on_stop_request(event.set)
            stack.enter_context(each)
        runs(world).ask_to_stop("a")
        assert asked["a"].wait(60)
        assert not asked["b"].wait(0.1)
    assert list(world.store.list(world.layout.runs_folder)) == []


def test_requests_and_signs_are_dated() -> None:
    """When a run was asked to end, and when any run gave its last sign, can be told; of none there is no time."""
    world = World()
    assert (runs(world).asked_to_stop_at("a"), runs(world).last_sign_at()) == (None, None)
    with presence(world, "a"):
        beat_at = world.clock.now()
        world.clock.advance(LIFE_SECONDS + 20)
        runs(world).ask_to_stop("a")
        assert runs(world).living() == []
        assert runs(world).last_sign_at() == beat_at
        assert runs(world).asked_to_stop_at("a") == world.clock.now()
    assert (runs(world).asked_to_stop_at("a"), runs(world).last_sign_at()) == (None, None)


@pytest.mark.parametrize("reaped", [False, True])
def test_processes_of_this_machine(reaped: bool) -> None:
    """A process is there until it has ended, also as long as nobody asked for its end; elsewhere nobody can tell."""
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
