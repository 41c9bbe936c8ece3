"""Columns keep their field ids for ever."""

from collections.abc import Sequence
from datetime import UTC, datetime

from hypothesis import given
from hypothesis import strategies as st

from compactor.core.layout import Layout
from compactor.schema.field_ids import MAX_COLUMN_ID, METADATA_IDS, RESCUED_KEY_ID, RESCUED_VALUE_ID
from compactor.schema.registry import EMPTY_SCHEMA, SchemaRegistry
from compactor.schema.schema import METADATA_COLUMNS, ColumnLimits, SchemaVersion, extend, without
from tests.support.memory_store import ManualClock, MemoryStore

NOW = datetime(2026, 1, 2, tzinfo=UTC)

STEPS = st.lists(
    st.tuples(
        st.lists(st.sampled_from("abcdefgh"), max_size=3, unique=True),  # keys of a manifest
        st.sets(st.sampled_from("abcdefgh"), max_size=2),  # then retired, where they have a column
    ),
    max_size=8,
)


def chain(steps: Sequence[tuple[list[str], set[str]]]) -> list[SchemaVersion]:
    """All versions that come of some steps, from the empty one on."""
    versions = [EMPTY_SCHEMA]
    for keys, retired in steps:
        added = extend(
            versions[-1], dict.fromkeys(keys, "/raw/1"), names="safe", max_columns=6, manifest_id="m", now=NOW
        )
        names = [column.name for column in added.columns if column.key in retired]
        after = without(added, names, now=NOW) if names else added
        versions += [version for version in (added, after) if version.version > versions[-1].version]
    return versions


def ids_of(schema: SchemaVersion) -> dict[str | None, int]:
    return {column.key: column.field_id for column in (*schema.columns, *schema.retired)}


@given(steps=STEPS)
def test_ids_are_for_ever(steps: list[tuple[list[str], set[str]]]) -> None:
    """Over any chain of versions ids are unique, never change and are never given again, even after retirement."""
    given_ids: dict[str | None, int] = {}
    for version in chain(steps):
        found = ids_of(version)
        assert len(set(found.values())) == len(found)
        assert given_ids.items() <= found.items()
        assert sorted(found.values()) == list(range(1, version.last_field_id + 1))
        given_ids = found


def test_fixed_ids() -> None:
    """No id is given twice, none is one of Iceberg's own, and all may have statistics in its format version 4."""
    fixed = [*METADATA_IDS.values(), RESCUED_KEY_ID, RESCUED_VALUE_ID]
    assert list(METADATA_IDS) == list(METADATA_COLUMNS)
    assert len(set(fixed)) == len(fixed)
    assert all(MAX_COLUMN_ID < each < (2_147_000_000 - 10_000) // 200 for each in fixed)


def test_two_drivers() -> None:
    """Of two drivers that add columns at once, the second one numbers its own behind those of the first."""
    store, layout = MemoryStore(), Layout("/w/manifests", "/w/output", "/w/state")
    drivers = [SchemaRegistry(store, layout, ManualClock(), names="safe", limits=ColumnLimits(10)) for _ in range(2)]
    for driver in drivers:
        driver.latest()
    first, second = (driver.covering({key: "/raw"}, key) for driver, key in zip(drivers, "ab", strict=True))
    assert (ids_of(first), ids_of(second)) == ({"a": 1}, {"a": 1, "b": 2})
