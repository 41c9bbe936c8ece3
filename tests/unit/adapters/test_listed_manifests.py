"""The watched prefix without Spark: every manifest that may be seen comes once, in batches, until told to stop."""

import threading
from collections.abc import Sequence

import pytest

from compactor.adapters.listed_manifests import ListedManifests
from tests.support.memory_store import MemoryStore

FOLDER = "/w/manifests/"
WAIT_SECONDS = 30.0


@pytest.fixture
def store() -> MemoryStore:
    store = MemoryStore()
    for name in ("_keep", "a.json", "b.json", "c.json", ".hidden.json", "below/d.json"):
        store.put(FOLDER + name, b"{}")
    store.put(f"{FOLDER}empty.json", b"")
    return store


def test_once_delivers_what_is_there_and_ends(store: MemoryStore) -> None:
    """Names come in their order and in batches, without what Spark's stream would not see; then it has ended."""
    batches: list[Sequence[str]] = []
    source = ListedManifests(store, FOLDER, batch_size=2)
    source.start(batches.append, once=True)
    assert source.wait(WAIT_SECONDS)
    source.stop()
    assert batches == [[f"{FOLDER}a.json", f"{FOLDER}b.json"], [f"{FOLDER}c.json"]]


def test_what_comes_while_it_works_is_delivered_too(store: MemoryStore) -> None:
    """A manifest that is written during a batch comes in a later one, and none comes twice."""
    seen: list[str] = []

    def on_batch(uris: Sequence[str]) -> None:
        seen.extend(uris)
        store.put(f"{FOLDER}late.json", b"{}")

    source = ListedManifests(store, FOLDER)
    source.start(on_batch, once=True)
    assert source.wait(WAIT_SECONDS)
    assert seen == [f"{FOLDER}{name}.json" for name in ("a", "b", "c", "late")]


def test_a_name_that_comes_back_is_delivered_again(store: MemoryStore) -> None:
    """Only what is still there is remembered, so that memory does not grow with what was done."""
    came = [threading.Event(), threading.Event()]

    def on_batch(uris: Sequence[str]) -> None:
        came[1 if came[0].is_set() else 0].set()
        store.delete(uris)

    source = ListedManifests(store, FOLDER, batch_size=9, poll_seconds=0.01)
    source.start(on_batch, once=False)
    assert came[0].wait(WAIT_SECONDS)
    store.put(f"{FOLDER}a.json", b"{}")
    assert came[1].wait(WAIT_SECONDS)
    source.stop()


def test_it_is_idle_when_nothing_new_came_and_stops_when_told(store: MemoryStore) -> None:
    """Without `once` it goes on listing; a stop ends it between two batches, and a start begins anew."""
    began, go_on = threading.Event(), threading.Event()
    seen: list[str] = []

    def on_batch(uris: Sequence[str]) -> None:
        seen.extend(uris)
        began.set()
        go_on.wait(WAIT_SECONDS)

    source = ListedManifests(store, FOLDER, batch_size=1, poll_seconds=0.01)
    source.start(on_batch, once=False)
    assert began.wait(WAIT_SECONDS)
    assert not source.is_idle()
    assert not source.wait(0)
    threading.Timer(0.05, go_on.set).start()
    source.stop()
    assert seen == [f"{FOLDER}a.json"]
    source.start(seen.extend, once=True)
    assert source.wait(WAIT_SECONDS)
    assert len(seen) == 4


def test_an_error_of_a_batch_ends_the_stream(store: MemoryStore) -> None:
    """`wait` raises it."""

    def on_batch(_uris: Sequence[str]) -> None:
        raise RuntimeError("the batch failed")

    source = ListedManifests(store, FOLDER)
    source.start(on_batch, once=True)
    with pytest.raises(RuntimeError, match="the batch failed"):
        source.wait(WAIT_SECONDS)
