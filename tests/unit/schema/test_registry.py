"""The schema registry: numbered versions that several drivers agree on."""

import threading
from pathlib import Path

import pytest

from compactor.adapters.local.store import LocalStore
from compactor.core.errors import RecordUnreadable, SettingsError, StoreUnavailable
from compactor.core.layout import Layout
from compactor.core.ports import ObjectStore
from compactor.schema.registry import EMPTY_SCHEMA, SchemaRegistry
from compactor.schema.schema import ColumnLimits, DeclaredColumn
from tests.support.fakes import FaultyStore
from tests.support.memory_store import ManualClock, MemoryStore

LAYOUT = Layout("/w/manifests", "/w/output", "/w/state")


def registry(store: ObjectStore, *declared: DeclaredColumn, layout: Layout = LAYOUT) -> SchemaRegistry:
    return SchemaRegistry(store, layout, ManualClock(), names="safe", limits=ColumnLimits(100), declared=declared)


def of(*keys: str) -> dict[str, str]:
    """Keys, each with the file that has it."""
    return {key: f"/raw/{key}" for key in keys}


def test_first_versions() -> None:
    """Versions are numbered from 1, stay as they are, and outlive their driver."""
    store = MemoryStore()
    first = registry(store)
    assert first.latest() is EMPTY_SCHEMA
    assert first.covering(of(), "m0") is EMPTY_SCHEMA
    assert first.covering(of("a"), "m1").version == 1
    assert first.covering(of("b", "a"), "m2").version == 2
    assert [info.uri for info in store.list(LAYOUT.schemas_folder)] == [LAYOUT.schema(1), LAYOUT.schema(2)]
    later = registry(store)
    assert later.latest() == first.version(2)
    assert [column.key for column in later.version(1).columns] == ["a"]
    assert later.version(0) is EMPTY_SCHEMA


@pytest.mark.parametrize("name", ["x", "\u00b2", "\u0663"])
def test_a_file_without_a_number_is_no_version(name: str) -> None:
    """Another file in the folder is passed over, also one that is named by a digit which is no number in ASCII."""
    store = MemoryStore()
    first = registry(store).covering(of("a"), "m")
    store.put(f"{LAYOUT.schemas_folder}{name}.json", b"{}")
    assert registry(store).latest() == first


def test_two_drivers_with_other_keys() -> None:
    """Two drivers that add keys at the same time end with all of them, each at one place for ever."""
    store = MemoryStore()
    one, two = registry(store), registry(store)
    assert (one.latest(), two.latest()) == (EMPTY_SCHEMA, EMPTY_SCHEMA)
    assert one.covering(of("a", "shared"), "m1").version == 1
    theirs = two.covering(of("shared", "b"), "m2")
    assert (theirs.version, [column.key for column in theirs.columns]) == (2, ["a", "shared", "b"])
    assert one.covering(of("b"), "m3") == theirs


@pytest.mark.parametrize("place", ["memory", "disk"])
def test_many_drivers_at_once(place: str, tmp_path: Path) -> None:
    """However many drivers race, each gets a version that holds its keys, and versions only append."""
    store: ObjectStore = MemoryStore() if place == "memory" else LocalStore()
    layout = Layout(*(f"{tmp_path}/{name}" for name in ("manifests", "output", "state")))
    declared = DeclaredColumn("n", "n", "long")
    start = threading.Barrier(8)
    found = {}

    def drive(number: int) -> None:
        start.wait(30)
        found[number] = registry(store, declared, layout=layout).covering(
            of(f"k{number}", f"k{number % 3}"), f"m{number}"
        )

    threads = [threading.Thread(target=drive, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    latest = registry(store, layout=layout).latest()
    assert latest.keys == {"n", *(f"k{number}" for number in range(8))}
    assert (latest.columns[0].name, latest.columns[0].type) == ("n", "long")
    assert len({column.name for column in latest.columns}) == len(latest.columns)
    for number, version in found.items():
        assert f"k{number}" in version.keys
        assert latest.columns[: len(version.columns)] == version.columns


def test_lost_answer() -> None:
    """A version whose creation was not confirmed is found again, and not made twice."""
    faulty = FaultyStore(MemoryStore())
    faulty.lose_answer_at(1, "create")
    clock = ManualClock()
    unlucky = SchemaRegistry(faulty, LAYOUT, clock, names="safe", limits=ColumnLimits(100))
    with pytest.raises(StoreUnavailable):
        unlucky.covering(of("a"), "m1")
    clock.advance(1)
    assert unlucky.covering(of("a"), "m1").version == 1
    assert unlucky.covering(of("b"), "m1").version == 2


def test_where_columns_come_from() -> None:
    """Each version records from which file its new columns came; those of the schema file from none."""
    declared = DeclaredColumn("n", "n", "long")
    version = registry(MemoryStore(), declared).covering({"a": "/raw/1", "b": "/raw/2"}, "m1")
    assert [(column.name, column.source_uri) for column in version.columns] == [
        ("n", ""), ("a", "/raw/1"), ("b", "/raw/2"), ("_rescued_data", ""),
    ]  # fmt: skip


def test_declared_columns_wait_for_a_manifest() -> None:
    """The schema file makes no version by itself; the first manifest does, whatever its keys are."""
    store = MemoryStore()
    registry(store, DeclaredColumn("n", "n")).check_declared()
    assert list(store.list(LAYOUT.schemas_folder)) == []
    assert registry(store, DeclaredColumn("n", "n")).covering({}, "m").keys == {"n"}


def test_two_drivers_with_other_files() -> None:
    """The recorded version holds; a driver with a contradicting schema file stops without a change."""
    store = MemoryStore()
    one, two = registry(store, DeclaredColumn("n", "n", "long")), registry(store, DeclaredColumn("n", "n", "double"))
    one.check_declared()
    two.check_declared()
    first = one.covering(of("a"), "m1")
    for _ in range(2):
        with pytest.raises(SettingsError, match="expected 'long', as it has been since schema version 1"):
            two.covering(of("b"), "m2")
    with pytest.raises(SettingsError, match=r"schema\.file: the column of key 'n': type 'double'"):
        registry(store, DeclaredColumn("n", "n", "double")).check_declared()
    assert registry(store).latest() == first


def test_a_key_that_was_found_first_stays_a_string() -> None:
    """A driver without the schema file that is first decides what its keys are."""
    store = MemoryStore()
    late = registry(store, DeclaredColumn("n", "n", "long"))
    late.check_declared()
    registry(store).covering(of("n"), "m1")
    with pytest.raises(SettingsError, match="type 'long' -> expected 'string'"):
        late.covering(of("n"), "m2")


VERSION_OF_AN_UNKNOWN_TYPE = (
    b'{"version":1,"created_at":"2026-01-02T00:00:00Z","manifest_id":"m",'
    b'"columns":[{"key":"a","name":"a","added_in":1,"type":"uuid"}]}'
)


@pytest.mark.parametrize("data", [b"", b"{", b"[]", b'{"version": 1}', b"\xff", VERSION_OF_AN_UNKNOWN_TYPE])
def test_a_damaged_version(data: bytes) -> None:
    """A version that cannot be parsed is reported as such."""
    store = MemoryStore()
    store.put(LAYOUT.schema(1), data)
    for read in (registry(store).latest, lambda: registry(store).version(1), lambda: list(registry(store).versions())):
        with pytest.raises(RecordUnreadable, match=r"schemas/1\.json: .*; expected a schema version"):
            read()
