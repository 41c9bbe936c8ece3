"""The watched prefix without Spark: every manifest that may be seen comes once, in batches, until told to stop."""

import threading
import time
from collections.abc import Iterator, Sequence

import pytest

from compactor.adapters.listed_manifests import ListedManifests
from compactor.core.errors import AccessError
from compactor.core.ports import ObjectInfo
from tests.support.logged import events_logged
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


class HandBell:
    """A bell that a test rings, or breaks."""

    def __init__(self) -> None:
        self.rung = threading.Event()
        self.is_broken = False
        self.waits = 0

    def wait(self) -> bool:
        self.waits += 1
        if self.is_broken:
            raise AccessError("queue: denied")
        has_rung = self.rung.wait(0.01)
        self.rung.clear()
        return has_rung


class CountedStore(MemoryStore):
    """Counts listings."""

    listings = 0

    def list(self, prefix: str) -> Iterator[ObjectInfo]:
        self.listings += 1
        return super().list(prefix)


@pytest.mark.parametrize("is_broken", [False, True], ids=["rings", "is broken"])
def test_a_bell_replaces_the_interval(is_broken: bool) -> None:
    """With a bell the prefix is listed when it rings, and not in between; a broken one leaves the interval."""
    store, bell, came = CountedStore(), HandBell(), threading.Event()
    bell.is_broken = is_broken
    source = ListedManifests(store, FOLDER, poll_seconds=0.01, bell=bell)
    with events_logged("manifests.queue_failed") as failures:
        source.start(lambda _: came.set(), once=False)
        while bell.waits < 20 or not source.is_idle():
            time.sleep(0.01)
        listings = store.listings
        assert (listings > 2) == is_broken
        store.put(f"{FOLDER}a.json", b"{}")
        bell.rung.set()
        assert came.wait(WAIT_SECONDS)
        source.stop()
    assert len(failures) == (1 if is_broken else 0)


def test_a_stopped_source_does_not_wait_for_its_bell() -> None:
    """A stop ends the pause at once, and a source that is started again listens anew."""
    store, bell, came = MemoryStore(), HandBell(), threading.Event()
    source = ListedManifests(store, FOLDER, bell=bell)
    for _ in range(2):
        source.start(lambda _: came.set(), once=False)
        while not source.is_idle():
            time.sleep(0.01)
        began = time.monotonic()
        source.stop()
        assert time.monotonic() - began < WAIT_SECONDS
        store.put(f"{FOLDER}a.json", b"{}")
    assert came.wait(WAIT_SECONDS)
