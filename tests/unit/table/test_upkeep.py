"""What upkeep decides: which snapshots expire, when manifests are merged, and which files nothing needs."""

import uuid
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from compactor.ledger.table.batches import CLOCKS_DIFFER
from compactor.table.upkeep import (
    LOOSE_MANIFESTS,
    SAFE_AGE,
    KeepRule,
    MetadataFile,
    TableFolder,
    TableHistory,
    TableRef,
    TableSnapshot,
    expired,
    leftovers,
    needs_merge,
)

NOW = datetime(2026, 3, 1, tzinfo=UTC)
DAY = timedelta(days=1)
ONE = KeepRule(DAY, 1)


def history(*days_ago: float, refs: tuple[TableRef, ...] | None = None) -> TableHistory:
    """Snapshots 1, 2 and so on, each after the one before, with the last as the current one."""
    made = tuple(TableSnapshot(at, at - 1 or None, NOW - days * DAY) for at, days in enumerate(days_ago, 1))
    return TableHistory(made, refs or (TableRef(len(made)),), (), 8)


def test_a_snapshot_that_a_fast_clock_dated_stays_for_no_time() -> None:
    """Where no time is asked for, a snapshot that is younger than now goes as well, as erased rows have to."""
    assert expired(history(3, -0.001, 0.0), KeepRule(timedelta(), 1), NOW) == [1, 2]
    assert expired(history(3, -0.001, 0.0), ONE, NOW) == []


def test_a_snapshot_ages_once_it_is_replaced() -> None:
    """Readers begin with the current one, however old it is, and go on while a later one takes its place."""
    assert expired(history(9, 8, 7), ONE, NOW) == [1, 2]
    assert expired(history(9, 8, 0.5), ONE, NOW) == [1]
    assert expired(history(9, 0.9, 0.5), ONE, NOW) == []
    assert expired(history(9), KeepRule(timedelta(), 1), NOW) == []


def test_how_many_stay() -> None:
    """The latest ones, of any age; the current one in any case."""
    assert expired(history(9, 8, 7, 6), KeepRule(DAY, 3), NOW) == [1]
    assert expired(history(9, 8, 7, 6), KeepRule(DAY, 9), NOW) == []
    assert expired(history(9, 8, 7, 6), KeepRule(DAY, 0), NOW) == [1, 2, 3]


def test_branches_and_tags() -> None:
    """A tag keeps its snapshot; a branch keeps its own line, and more of it if it asks for more."""
    old = (9.0, 8.0, 7.0, 6.0)
    assert expired(history(*old, refs=(TableRef(4), TableRef(2, is_branch=False))), ONE, NOW) == [1, 3]
    assert expired(history(*old, refs=(TableRef(4), TableRef(2))), ONE, NOW) == [1, 3]
    assert expired(history(*old, refs=(TableRef(4, keep_snapshots=3),)), ONE, NOW) == [1]
    assert expired(history(*old, refs=(TableRef(4, keep_for=6.5 * DAY),)), ONE, NOW) == [1, 2]


def test_snapshots_of_no_branch() -> None:
    """One that is staged, or was rolled back, stays as long as others do."""
    rolled_back = history(9, 8, 7, 0.5, refs=(TableRef(2),))
    assert expired(rolled_back, ONE, NOW) == [1, 3]


def test_a_table_that_others_need() -> None:
    """Nothing of it expires."""
    assert expired(replace(history(9, 8, 7), keeps_all=True), ONE, NOW) == []


def test_a_line_that_goes_round() -> None:
    """Such metadata is damaged: it ends nowhere, but the decision does."""
    made = (TableSnapshot(1, 2, NOW - 9 * DAY), TableSnapshot(2, 1, NOW - 8 * DAY))
    assert expired(TableHistory(made, (TableRef(2),), (), 8), ONE, NOW) == [1]


@given(
    st.lists(st.integers(0, 30), min_size=1, max_size=12),
    st.sets(st.integers(1, 12), max_size=3),
    st.integers(1, 12),
    st.tuples(st.integers(0, 20), st.integers(0, 20)),
)
def test_what_never_expires(ages: list[int], tags: set[int], least: int, days: tuple[int, int]) -> None:
    """The head of a branch, what has a tag, the latest ones, what was current a moment ago; and longer keeps more."""
    ages.sort(reverse=True)
    tagged = {tag for tag in tags if tag <= len(ages)}
    found = history(*ages, refs=(TableRef(len(ages)), *(TableRef(tag, is_branch=False) for tag in tagged)))
    shorter, longer = (set(expired(found, KeepRule(each * DAY, least), NOW)) for each in sorted(days))
    assert longer <= shorter
    assert not shorter & {*tagged, *range(len(ages) - least + 1, len(ages) + 1)}
    for at, replaced_days_ago in enumerate(ages[1:], 1):
        assert replaced_days_ago >= min(days) or at not in shorter


def test_when_manifests_are_merged() -> None:
    """If there are many more than their entries fill; never if they are full."""
    few, target = history(1), 8
    assert not needs_merge(few)
    for lengths, expected in [
        ((1,) * LOOSE_MANIFESTS, False),
        ((1,) * (2 * LOOSE_MANIFESTS), True),
        ((target,) * 1000, False),
        ((target // 2 + 1,) * 1000, False),
        ((target,) * 1000 + (1,) * 2000, True),
    ]:
        assert needs_merge(replace(few, manifest_bytes=lengths, manifest_target_bytes=target)) is expected


LIST = f"snap-7-0-{uuid.UUID(int=1)}.avro"
MANIFEST = f"{uuid.UUID(int=2)}-m12.avro"
METADATA = f"00007-{uuid.UUID(int=3)}.metadata.json"


def folder(*names: str, age: timedelta = 2 * DAY, since: datetime | None = NOW, named: str = "") -> TableFolder:
    files = tuple(MetadataFile(name, 10, NOW - age) for name in names)
    return TableFolder(files, frozenset({named}), since)


def test_files_that_nothing_needs() -> None:
    """Lists, manifests and metadata go, compressed or not; what a table needs stays."""
    zipped = METADATA.replace(".metadata", ".gz.metadata")
    found = folder(LIST, MANIFEST, METADATA, zipped, named=MANIFEST)
    assert [each.name for each in leftovers(found, NOW)] == [LIST, METADATA, zipped]


@pytest.mark.parametrize(
    "name",
    ["notes.txt", f"x{LIST}", f"{MANIFEST}.bak", "v7.metadata.json", "stats.puffin", f"{uuid.UUID(int=2)}.parquet"],
)
def test_files_of_others(name: str) -> None:
    """Stay, whatever their age."""
    assert leftovers(folder(name, age=99 * DAY), NOW) == []


def test_files_that_are_young() -> None:
    """Stay: their change may be on its way."""
    assert leftovers(folder(LIST, age=SAFE_AGE), NOW) == []
    assert leftovers(folder(LIST, age=SAFE_AGE + timedelta(seconds=1)), NOW) != []


def test_files_of_a_change_that_may_still_land() -> None:
    """It lands at the snapshot that it was made for; a current one that is later, by any clock, ends that."""
    old = 9 * DAY
    for since, goes in [
        (NOW - old - DAY, False),
        (NOW - old, False),
        (NOW - old + CLOCKS_DIFFER, False),
        (NOW - old + 1.1 * CLOCKS_DIFFER, True),
        (None, False),
    ]:
        assert bool(leftovers(folder(LIST, age=old, since=since), NOW)) is goes
