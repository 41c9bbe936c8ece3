"""The schema registry: numbered versions that several drivers agree on."""

import threading

import pytest

from compactor.adapters.memory import ManualClock, MemoryStore
from compactor.errors import StoreUnavailable
from compactor.layout import Layout
from compactor.ports import ObjectStore
from compactor.registry import EMPTY_SCHEMA, SchemaRegistry
from tests.twins import FaultyStore

LAYOUT = Layout("/w/manifests", "/w/output", "/w/state")


def registry(store: ObjectStore) -> SchemaRegistry:
    return SchemaRegistry(store, LAYOUT, ManualClock(), names="safe", max_columns=100)


def test_first_versions() -> None:
    """Versions are numbered from 1, stay as they are, and outlive their driver."""
    store = MemoryStore()
    first = registry(store)
    assert first.latest() is EMPTY_SCHEMA
    assert first.covering([], "m0") is EMPTY_SCHEMA
    assert first.covering(["a"], "m1").version == 1
    assert first.covering(["b", "a"], "m2").version == 2
    assert [info.uri for info in store.list(LAYOUT.schemas_folder)] == [LAYOUT.schema(1), LAYOUT.schema(2)]
    later = registry(store)
    assert later.latest() == first.version(2)
    assert [column.key for column in later.version(1).columns] == ["a"]
    assert later.version(0) is EMPTY_SCHEMA


def test_ten_versions_are_ordered_by_number() -> None:
    """Version 10 is later than version 9."""
    store = MemoryStore()
    for number in range(11):
        registry(store).covering([f"k{number}"], "m")
    assert registry(store).latest().version == 11


def test_two_drivers_with_other_keys() -> None:
    """Two drivers that add keys at the same time end with all of them, each at one place for ever."""
    store = MemoryStore()
    one, two = registry(store), registry(store)
    assert (one.latest(), two.latest()) == (EMPTY_SCHEMA, EMPTY_SCHEMA)
    assert one.covering(["a", "shared"], "m1").version == 1
    theirs = two.covering(["shared", "b"], "m2")
    assert (theirs.version, [column.key for column in theirs.columns]) == (2, ["a", "shared", "b"])
    assert one.covering(["b"], "m3") == theirs


def test_many_drivers_at_once() -> None:
    """However many drivers race, each gets a version that holds its keys, and versions only append."""
    store = MemoryStore()
    start = threading.Barrier(8)
    found = {}

    def drive(number: int) -> None:
        start.wait(30)
        found[number] = registry(store).covering([f"k{number}", f"k{number % 3}"], f"m{number}")

    threads = [threading.Thread(target=drive, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    latest = registry(store).latest()
    assert latest.keys == {f"k{number}" for number in range(8)}
    for number, version in found.items():
        assert f"k{number}" in version.keys
        assert latest.columns[: len(version.columns)] == version.columns


def test_lost_answer() -> None:
    """A version whose creation was not confirmed is found again, and not made twice."""
    faulty = FaultyStore(MemoryStore())
    faulty.lose_answer_at(1, "create")
    clock = ManualClock()
    unlucky = SchemaRegistry(faulty, LAYOUT, clock, names="safe", max_columns=100)
    with pytest.raises(StoreUnavailable):
        unlucky.covering(["a"], "m1")
    clock.advance(1)
    assert unlucky.covering(["a"], "m1").version == 1
    assert unlucky.covering(["b"], "m1").version == 2
