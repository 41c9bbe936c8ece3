"""Columns keep their field ids for ever, whichever release wrote the versions."""

from collections.abc import Sequence
from datetime import UTC, datetime

from hypothesis import given
from hypothesis import strategies as st

from compactor.adapters.memory.store import ManualClock, MemoryStore
from compactor.core.errors import ObjectNotFound
from compactor.core.layout import Layout
from compactor.schema.field_ids import MAX_COLUMN_ID, METADATA_IDS, RESCUED_KEY_ID, RESCUED_VALUE_ID, with_field_ids
from compactor.schema.registry import EMPTY_SCHEMA, SchemaRegistry
from compactor.schema.schema import METADATA_COLUMNS, ColumnLimits, SchemaVersion, extend, without

NOW = datetime(2026, 1, 2, tzinfo=UTC)

STEPS = st.lists(
    st.tuples(
        st.lists(st.sampled_from("abcdefgh"), max_size=3, unique=True),  # keys of a manifest
        st.sets(st.sampled_from("abcdefgh"), max_size=2),  # then retired, where they have a column
        st.booleans(),  # whether the process that wrote the versions was of an earlier release
    ),
    max_size=8,
)


def chain(steps: Sequence[tuple[list[str], set[str], bool]]) -> tuple[list[SchemaVersion], list[bool]]:
    """All versions that come of some steps, from the empty one on; and which of them an earlier release wrote."""
    versions, older = [EMPTY_SCHEMA], [False]
    for keys, retired, is_older in steps:
        added = extend(
            versions[-1], dict.fromkeys(keys, "/raw/1"), names="safe", max_columns=6, manifest_id="m", now=NOW
        )
        names = [column.name for column in added.columns if column.key in retired]
        after = without(added, names, now=NOW) if names else added
        for version in (added, after):
            if version.version > versions[-1].version:
                versions.append(version)
                older.append(is_older)
    return versions, older


def ids_of(schema: SchemaVersion) -> dict[str | None, int]:
    return {column.key: column.field_id for column in (*schema.columns, *schema.retired)}


def as_stored(versions: Sequence[SchemaVersion], older: Sequence[bool]) -> list[SchemaVersion]:
    """The versions without the ids of columns that a process of an earlier release added or retired."""
    stored = []
    for version in versions:
        columns = [
            each.model_copy(update={"field_id": 0}) if older[each.added_in] else each for each in version.columns
        ]
        retired = [
            each.model_copy(update={"field_id": 0}) if older[each.retired_in] else each for each in version.retired
        ]
        stored.append(version.model_copy(update={"columns": tuple(columns), "retired": tuple(retired)}))
    return stored


@given(steps=STEPS)
def test_ids_are_for_ever(steps: list[tuple[list[str], set[str], bool]]) -> None:
    """Over any chain of versions ids are unique, never change and are never given again, even after retirement."""
    versions, _ = chain(steps)
    given_ids: dict[str | None, int] = {}
    for version in versions:
        found = ids_of(version)
        assert len(set(found.values())) == len(found)
        assert given_ids.items() <= found.items()
        assert sorted(found.values()) == list(range(1, version.last_field_id + 1))
        given_ids = found


@given(steps=STEPS)
def test_ids_of_earlier_releases(steps: list[tuple[list[str], set[str], bool]]) -> None:
    """Versions that some process of an earlier release wrote without ids get the same ones, in any order of reading."""
    versions, older = chain(steps)
    stored = as_stored(versions, older)
    known: dict[str | None, int] = {}
    for at in reversed(range(len(versions))):
        assert with_field_ids(stored[at], stored.__getitem__, {}) == versions[at]
        assert with_field_ids(stored[at], stored.__getitem__, known) == versions[at]


def test_version_is_gone() -> None:
    """A column whose version no longer exists has no id, and the others have theirs."""
    versions, _ = chain([(["a", "b"], {"a"}, True), (["c"], set(), True)])
    stored = as_stored(versions, [True] * len(versions))

    def read(number: int) -> SchemaVersion:
        if number == 1:
            raise ObjectNotFound("v1")
        return stored[number]

    found = ids_of(with_field_ids(stored[-1], read, {}))
    assert found == {"a": 0, "b": 0, None: 3, "c": 4}


def test_fixed_ids() -> None:
    """No id is given twice, none is one of Iceberg's own, and all may have statistics in its format version 4."""
    fixed = [*METADATA_IDS.values(), RESCUED_KEY_ID, RESCUED_VALUE_ID]
    assert list(METADATA_IDS) == list(METADATA_COLUMNS)
    assert len(set(fixed)) == len(fixed)
    assert all(MAX_COLUMN_ID < each < (2_147_000_000 - 10_000) // 200 for each in fixed)


def test_registry_of_an_earlier_release() -> None:
    """The registry gives columns that were stored without ids theirs, and later versions are stored with them."""
    store, layout = MemoryStore(), Layout("/w/manifests", "/w/output", "/w/state")
    versions, _ = chain([(["a", "b", "c"], {"b"}, True)])
    for version in as_stored(versions, [True] * len(versions))[1:]:
        store.create(layout.schema(version.version), version.model_dump_json().encode())
    registry = SchemaRegistry(store, layout, ManualClock(), names="safe", limits=ColumnLimits(10))

    assert ids_of(registry.latest()) == {"a": 1, "b": 2, "c": 3, None: 4}
    added = registry.covering({"d": "/raw/2"}, "m2")
    again = SchemaVersion.model_validate_json(store.read(layout.schema(added.version)))
    assert ids_of(again) == {"a": 1, "b": 2, "c": 3, None: 4, "d": 5}


def test_two_drivers() -> None:
    """Of two drivers that add columns at once, the second one numbers its own behind those of the first."""
    store, layout = MemoryStore(), Layout("/w/manifests", "/w/output", "/w/state")
    drivers = [SchemaRegistry(store, layout, ManualClock(), names="safe", limits=ColumnLimits(10)) for _ in range(2)]
    for driver in drivers:
        driver.latest()
    first, second = (driver.covering({key: "/raw"}, key) for driver, key in zip(drivers, "ab", strict=True))
    assert (ids_of(first), ids_of(second)) == ({"a": 1}, {"a": 1, "b": 2})
