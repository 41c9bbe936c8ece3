"""Signs of life: who is still at work."""

import subprocess
import sys
from contextlib import suppress

import pytest

from compactor.adapters.processes import MachineProcesses
from compactor.ports import Processes, ProcessName
from compactor.presence import LIFE_SECONDS, Presence
from tests.scenes import World
from tests.twins import FaultyStore


class NamedProcesses:
    """Processes that are gone by their number."""

    def __init__(self, process_id: int, *gone: int) -> None:
        self._process_id, self._gone = process_id, gone

    def this(self) -> ProcessName:
        return ProcessName("here", self._process_id)

    def is_gone(self, process: ProcessName) -> bool:
        return process.process_id in self._gone


def presence(world: World, run_id: str, processes: Processes | None = None) -> Presence:
    return Presence(world.store, world.layout, world.clock, run_id, processes or NamedProcesses(1))


def test_a_run_lives_as_long_as_its_context() -> None:
    """Others see a run while it lasts, and neither before nor after."""
    world = World()
    asking = presence(world, "b")
    assert asking.living(["a", "b"]) == {"b"}
    with presence(world, "a"):
        assert asking.living(["a", "unheard"]) == {"a"}
    assert asking.living(["a"]) == set()


def test_a_run_without_a_sign_is_dead() -> None:
    """A run that gave no sign for long is dead, and so is one whose process is known to have ended."""
    world = World()
    with presence(world, "a", NamedProcesses(7)):
        world.clock.advance(LIFE_SECONDS)
        assert presence(world, "b").living(["a"]) == {"a"}
        assert presence(world, "b", NamedProcesses(1, 7)).living(["a"]) == set()
        world.clock.advance(1)
        assert presence(world, "b").living(["a"]) == set()


def test_trouble_with_the_store_hinders_no_run() -> None:
    """A sign that cannot be given, or removed, is no reason to fail; a damaged one counts as none."""
    world = World()
    store = FaultyStore(world.store)
    for method in ("put", "delete"):
        store.unavailable_at(1, method)
    with Presence(store, world.layout, world.clock, "a", NamedProcesses(1)):
        pass
    world.store.put(world.layout.run("c"), b"{")
    assert presence(world, "b").living(["a", "c"]) == set()


def test_signs_of_the_long_dead_are_removed() -> None:
    """Only those that nobody has renewed for long."""
    world = World()
    world.store.put(world.layout.run("old"), b"{}")
    world.clock.advance(100 * LIFE_SECONDS + 1)
    world.store.put(world.layout.run("young"), b"{}")
    presence(world, "b").forget_dead()
    assert [info.uri for info in world.store.list(world.layout.runs_folder)] == [world.layout.run("young")]


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
