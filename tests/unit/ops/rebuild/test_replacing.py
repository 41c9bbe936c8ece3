"""Replaced files: their manifest is made again with the version of now, whatever dies, and without doubled rows."""

import gzip
from collections import Counter
from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from threading import Event

import pytest

from compactor.core.crash_points import CrashPoint, OnCrashPoint, ignore_crash_point
from compactor.core.ports import ObjectStore
from compactor.ops.rebuild.replacing import Replaced
from compactor.sources.claiming import claim_key
from compactor.sources.plan import Replacement
from compactor.wiring import planning, rebuilding
from tests.support.folders import folder_planner
from tests.support.harness import DAY, FLAWED, GOOD, DiedError, Harness
from tests.support.rebuilding import WatchedStore, rebuild, visible_rows

OTHER = b'{"id": "20"}\n{"id": "21", "late": [3]}\nbroken\n{"id": "22"}\n'
LEAST_CHANGES = 15


@pytest.fixture
def harness() -> Harness:
    """One manifest of three files."""
    harness = Harness(schema={"metadata_columns": ["_source_file"]})
    for number, content in enumerate((GOOD, FLAWED, b'{"id": "9"}\n')):
        harness.file(f"{DAY}-{number}.ndjson", content)
    assert len(folder_planner(harness).plan().manifests) == 1
    harness.run_once()
    return harness


def replacements(harness: Harness) -> list[Replacement]:
    return folder_planner(harness, on_replaced="rebuild").plan().replacements


def replace(
    harness: Harness,
    found: Sequence[Replacement],
    *,
    store: ObjectStore | None = None,
    on_crash_point: OnCrashPoint = ignore_crash_point,
) -> Replaced:
    app = harness.app(store=store, on_crash_point=on_crash_point)
    return rebuilding.replacer(app, lambda _: harness.engine(store)).replace(found)


def check(harness: Harness) -> None:
    """The rows are those of the files that are there, and no call has anything to do."""
    rows = Counter(dict(visible_rows(harness)))
    assert max(rows.values()) == 1
    expected = sum(
        line.startswith(b"{")
        for info in harness.store.list("/w/raw/")
        for line in harness.store.read(info.uri).split(b"\n")
    )
    assert rows.total() == expected
    assert harness.verification().discrepancies == []
    plan = folder_planner(harness).plan()
    assert (plan.manifests, plan.left_out, plan.held) == ([], [], 0)


@pytest.mark.parametrize("content", [OTHER, OTHER + GOOD, b"\n", b"none\n"], ids=["other", "inserted", "blank", "bad"])
def test_the_rows_are_those_of_the_new_version(harness: Harness, content: bytes) -> None:
    """A replaced file has the rows of its new version alone, also while readers look."""
    before = visible_rows(harness)
    harness.file(f"{DAY}-0.ndjson", content)
    [found] = replacements(harness)
    seen: list[int] = []
    store = WatchedStore(harness.store, on_change=lambda: seen.append(max(visible_rows(harness).values(), default=0)))
    result = replace(harness, [found], store=store)
    assert (result.refused, len(result.rebuilt)) == ((), 1)
    assert max(seen) == 1
    assert visible_rows(harness) != before
    check(harness)
    [key] = harness.ledger.manifests()
    assert harness.commit(key.id).replaced == [f"/w/raw/{DAY}-0.ndjson"]


def test_the_earlier_version_can_come_back(harness: Harness) -> None:
    """Its rows are gone, so it is a replaced file again."""
    kept = harness.named(f"/w/raw/{DAY}-0.ndjson")
    harness.file(f"{DAY}-0.ndjson", OTHER)
    replace(harness, replacements(harness))
    harness.store.put(kept.uri, GOOD)
    found = replacements(harness)
    assert [each.file.uri for each in found] == [kept.uri]
    replace(harness, found)
    check(harness)


def test_the_claim_of_the_earlier_version_is_given_up(harness: Harness) -> None:
    """On S3 the same bytes have the same version again."""
    key = claim_key(harness.named(f"/w/raw/{DAY}-0.ndjson"))
    claimer = planning.claimer(harness.app())
    assert claimer.states([key])[key][0] == "taken"
    harness.file(f"{DAY}-0.ndjson", OTHER)
    replace(harness, replacements(harness))
    assert claimer.states([key])[key][0] == "free"


def test_a_touched_neighbour_is_no_hindrance(harness: Harness) -> None:
    """Another file of the manifest with the same bytes is read in its version of now."""
    harness.clock.advance(60)
    harness.file(f"{DAY}-0.ndjson", OTHER)
    harness.file(f"{DAY}-1.ndjson", FLAWED)
    assert replace(harness, replacements(harness)).refused == ()
    check(harness)


@pytest.mark.parametrize("neighbour", ["gone", "append"])
def test_what_cannot_be_exact_is_refused(harness: Harness, neighbour: str) -> None:
    """Where rows could be lost or doubled, those that are there stay, and the reason is told."""
    if neighbour == "append":
        harness.file(f"{DAY}-0.ndjson", GOOD + GOOD.replace(b"1", b"5"))
        folder_planner(harness, on_replaced="append").plan()
        harness.run_once()
    else:
        harness.store.delete([f"/w/raw/{DAY}-1.ndjson"])
    before = visible_rows(harness)
    harness.file(f"{DAY}-0.ndjson", OTHER)
    result = replace(harness, replacements(harness))
    [(_, why)] = result.refused
    assert {"gone": "is gone", "append": "several manifests"}[neighbour] in why
    assert visible_rows(harness) == before
    assert len(replacements(harness)) == 1


def test_a_new_version_that_cannot_be_read_changes_nothing(harness: Harness) -> None:
    """The rows of the earlier version stay, and the file can be replaced again."""
    before = visible_rows(harness)
    harness.file(f"{DAY}-0.ndjson", gzip.compress(OTHER)[:-9])
    [(_, why)] = replace(harness, replacements(harness)).refused
    assert "unreadable" in why
    assert visible_rows(harness) == before
    harness.file(f"{DAY}-0.ndjson", OTHER)
    replace(harness, replacements(harness))
    check(harness)


def test_two_calls_at_once(harness: Harness) -> None:
    """Another call that takes the new version while its rows are made finds it claimed."""
    harness.file(f"{DAY}-0.ndjson", OTHER)
    found = replacements(harness)
    others: list[int] = []

    def plan(_step: CrashPoint, _manifest_id: str) -> None:
        plan = folder_planner(harness, on_replaced="append").plan()
        others.append(len(plan.manifests))

    replace(harness, found, on_crash_point=plan)
    assert set(others) == {0}
    check(harness)


def test_another_rebuild_decides_first(harness: Harness) -> None:
    """It had read the earlier version. The new one is in no row then, and the next call takes it."""
    opened, may_decide = Event(), Event()

    def held_up(step: CrashPoint, _manifest_id: str) -> None:
        if step is CrashPoint.OPENED:
            opened.set()
            assert may_decide.wait(60)

    with ThreadPoolExecutor() as pool:

        def replace_meanwhile(step: CrashPoint, _manifest_id: str) -> None:
            if step is CrashPoint.OPENED:
                harness.file(f"{DAY}-0.ndjson", OTHER)
                slower.append(pool.submit(replace, harness, replacements(harness), on_crash_point=held_up))
                assert opened.wait(60)

        slower: list[Future[Replaced]] = []
        assert len(rebuild(harness, force=True, on_crash_point=replace_meanwhile).rebuilt) == 1
        may_decide.set()
        result = slower[0].result()
    assert result.rebuilt == ()
    [(_, why)] = result.refused
    assert why.endswith("another rebuild of its manifest was faster; run the command again")
    assert replace(harness, replacements(harness)).refused == ()
    check(harness)


def test_death_at_each_change() -> None:
    """A process that dies before any change of the store leaves the old rows or the new ones, and none twice."""
    die_at = 1
    while dies(die_at):
        die_at += 3
    assert die_at > LEAST_CHANGES


def dies(die_at: int) -> bool:
    harness = Harness(schema={"metadata_columns": ["_source_file"]})
    for number, content in enumerate((GOOD, FLAWED)):
        harness.file(f"{DAY}-{number}.ndjson", content)
    folder_planner(harness).plan()
    harness.run_once()
    harness.file(f"{DAY}-0.ndjson", OTHER)
    store = WatchedStore(harness.store, die_at)
    with suppress(DiedError):
        replace(harness, replacements(harness), store=store)
    harness.clock.advance(3600)
    harness.run_once()
    replace(harness, replacements(harness))
    harness.run_once()
    check(harness)
    return store.has_died
