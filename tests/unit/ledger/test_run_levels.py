"""An index in sorted runs finds what was added, with few calls however long the log is."""

from random import Random

import pytest

from compactor.core.errors import RecordUnreadable, StoreUnavailable
from compactor.ledger.history.run_levels import FANOUT, PAGE_ROWS, RunLevels, digest_of, open_run, write_run
from tests.support.fakes import FaultyStore
from tests.support.memory_store import MemoryStore

FOLDER = "/log-index/"


def rows_of(place: int, rows: int = 3) -> list[tuple[int, int]]:
    return sorted((digest_of(f"{place}-{row}"), place) for row in range(rows))


def filled(places: int, **options: int) -> RunLevels:
    levels = RunLevels(MemoryStore(), FOLDER, **options)
    for place in range(1, places + 1):
        levels.add(place, rows_of(place), f"note {place}")
    return levels


def fresh(levels: RunLevels, store: object = None) -> RunLevels:
    return RunLevels(store or levels.store, FOLDER)  # type: ignore[arg-type]


@pytest.mark.parametrize("asked", [1, 40, 3 * PAGE_ROWS])
def test_a_run_of_many_pages(asked: int) -> None:
    """Each digest is found with all of its numbers, also where it goes over the end of a page."""
    random, store = Random(asked), MemoryStore()
    rows = sorted((random.getrandbits(64), number) for number in range(3 * PAGE_ROWS))
    repeated = rows[PAGE_ROWS - 2][0]
    rows = sorted([*rows, *((repeated, number) for number in range(5))])
    write_run(store, "/r", rows, "a note")
    run = open_run(store, "/r")
    assert run is not None
    assert (run.rows, run.note) == (len(rows), "a note")
    assert list(run.all_rows()) == rows
    wanted = sorted([repeated, *(row[0] for row in random.sample(rows, asked)), *(random.getrandbits(64),) * 2])
    found = [row for part in run.parts(wanted) for row in run.find(wanted, *part)]
    assert found == [row for row in rows if row[0] in wanted]


def test_few_digests_read_few_pages() -> None:
    """One digest of many costs its page, or two."""
    store = MemoryStore()
    run = write_run(store, "/r", [(number << 32, number) for number in range(20 * PAGE_ROWS)], "")
    assert run.parts([5 * PAGE_ROWS << 32]) == [(4 * PAGE_ROWS, 2 * PAGE_ROWS)]
    assert run.parts([(5 * PAGE_ROWS + 1) << 32]) == [(5 * PAGE_ROWS, PAGE_ROWS)]
    assert sum(rows for _, rows in run.parts([0, 1 << 63])) == 2 * PAGE_ROWS


def test_nothing_is_no_run() -> None:
    """An empty run is one; a missing object, or one of another format, is none."""
    store = MemoryStore()
    assert list(write_run(store, "/r", [], "n").all_rows()) == []
    empty = open_run(store, "/r")
    assert empty is not None
    assert empty.parts([1]) == []
    store.put("/other", b"cmprun2\n" + b"x" * 100)
    store.put("/short", b"")
    assert [open_run(store, uri) for uri in ("/none", "/other", "/short")] == [None] * 3


def test_a_run_that_ends_early() -> None:
    """It is named, and what to do."""
    store = MemoryStore()
    write_run(store, "/r", rows_of(1), "")
    store.put("/r", store.read("/r")[:-1])
    run = open_run(store, "/r")
    assert run is not None
    with pytest.raises(RecordUnreadable, match="/r: truncated; expected 3 rows"):
        list(run.all_rows())


@pytest.mark.parametrize("places", [1, FANOUT - 1, FANOUT, FANOUT**2 + FANOUT + 1])
def test_every_place_is_found(places: int) -> None:
    """Whatever was merged, also by a reader that comes later."""
    levels = filled(places)
    for each in (levels, fresh(levels)):
        assert (each.upto, each.note) == (places, f"note {places}")
        wanted = sorted(digest for place in range(places + 2) for digest, _ in rows_of(place))
        assert sorted(each.find(wanted)) == sorted(row for place in range(1, places + 1) for row in rows_of(place))
        assert {place for _, place in each.find(wanted, after=places - 1)} >= {places}
        assert not list(each.find(wanted, after=places))


def test_calls_grow_with_the_logarithm_of_the_log() -> None:
    """A hundred times the places cost a few calls more."""
    calls = {}
    for places in (FANOUT - 1, 100 * FANOUT - 1):
        store = FaultyStore(filled(places).store)
        assert list(fresh(RunLevels(store, FOLDER)).find([digest_of("1-0")])) == [(digest_of("1-0"), 1)]
        calls[places] = store.calls["any"]
    assert calls[100 * FANOUT - 1] < 3.5 * calls[FANOUT - 1]


def test_a_lost_run_is_written_again() -> None:
    """A reader goes as far as there is no gap, and what follows is added again."""
    levels = filled(FANOUT + 5)
    levels.store.delete([f"{FOLDER}0/{FANOUT + 2:012d}.run"])
    later = fresh(levels)
    assert later.upto == FANOUT + 1
    for place in range(FANOUT + 2, FANOUT + 6):
        later.add(place, rows_of(place))
    wanted = sorted(row[0] for place in range(30) for row in rows_of(place))
    assert {place for _, place in fresh(levels).find(wanted)} == {*range(1, FANOUT + 6)}
    with pytest.raises(ValueError, match="place 40 does not directly follow 21"):
        later.add(40, [])


def test_a_merge_that_fails_is_made_up_for() -> None:
    """The place is there already; the next call merges. So does one by another process."""
    for repeats in (True, False):
        levels = filled(FANOUT - 1)
        store = FaultyStore(levels.store)
        failing = fresh(levels, store)
        store.unavailable_at(2, "writer")
        with pytest.raises(StoreUnavailable):
            failing.add(FANOUT, rows_of(FANOUT))
        assert fresh(levels).upto == FANOUT
        if repeats:
            failing.add(FANOUT, [(1, 1)])  # not written again
        else:
            fresh(levels).add(FANOUT + 1, [])
        assert len(list(levels.store.list(f"{FOLDER}1/"))) == 1
        assert not list(fresh(levels).find([1]))


def test_large_runs_are_not_merged() -> None:
    """The time of a merge is bounded, and what is not merged is found."""
    levels = filled(FANOUT**2, max_rows=3 * FANOUT)
    assert len(list(levels.store.list(f"{FOLDER}1/"))) == FANOUT
    assert not list(levels.store.list(f"{FOLDER}2/"))
    assert list(fresh(levels).find([digest_of("7-1")])) == [(digest_of("7-1"), 7)]


def test_erasing() -> None:
    """Nothing is left, and the log begins anew."""
    levels = filled(FANOUT)
    levels.forget()
    assert (levels.upto, levels.note, list(levels.store.list(FOLDER))) == (0, "", [])
    levels.add(1, rows_of(1))
    assert fresh(levels).upto == 1
