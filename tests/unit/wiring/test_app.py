"""The ports of a process are opened once, by whichever of its threads asks first."""

import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from compactor.wiring.app import App
from tests.support.fakes import FaultyStore
from tests.support.harness import Harness
from tests.support.memory_store import MemoryClaims


def test_threads_open_a_port_once() -> None:
    """All threads that ask for it at the same time get the one that the first of them opened."""
    app, meeting, opened = Harness().app(), threading.Barrier(4), list[object]()

    def open_port() -> object:
        threading.Event().wait(0.05)
        opened.append(object())
        return opened[-1]

    def ask(_: int) -> object:
        meeting.wait()
        return app.opened("one_port", open_port)

    with ThreadPoolExecutor(4) as threads:
        found = list(threads.map(ask, range(4)))
    assert found == opened * 4


def test_a_port_that_does_not_exist_is_refused() -> None:
    """A replacement under a wrong name would leave the real port in its place."""
    with pytest.raises(TypeError, match=r"no port is called \['kafka'\]"):
        App(Harness().settings, kafka=object())  # type: ignore[call-arg]


def test_a_function_reads_the_latest_commits_once_in_a_while() -> None:
    """Its calls share what the first of them read; after five minutes it is read again."""
    harness = Harness()
    store = FaultyStore(harness.store)
    kept = App(harness.settings, store=store, clock=harness.clock, table_of_claims=MemoryClaims())
    listed = []
    for seconds in (0, 60, 239, 1, 60):
        harness.clock.advance(seconds)
        kept.renewed().manifest_bytes()
        listed.append(store.calls["list"])
    assert listed == [1, 1, 1, 2, 2]
