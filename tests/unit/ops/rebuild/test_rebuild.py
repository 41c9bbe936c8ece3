"""Rebuilding: lost and damaged files come back with the same rows, whatever dies, is late, or runs beside it."""

import threading
from collections import Counter  # noqa: TC003 - of local annotations
from collections.abc import Callable, Iterable
from contextlib import suppress
from itertools import product

import pytest

from compactor.core.crash_points import CrashPoint
from compactor.core.documents.changes import Commit
from compactor.core.errors import AccessError, StagingLost
from compactor.core.layout import ManifestKey
from compactor.job import service
from compactor.job.publication import Publisher
from tests.support.fakes import FaultyStore, PlainEngine
from tests.support.harness import DAY, FLAWED, GOOD, DiedError, Harness
from tests.support.rebuilding import WatchedStore, most_read, rebuild, visible_files, visible_rows
from tests.support.sampling import few_rows

M1 = ManifestKey(DAY, "m1")
LEAST_CHANGES = 15
MORE = b'{"id": "7"}\n{"id": "8"}\n{"id": "9"}\nbroken\n'

Damage = Callable[[Harness, Commit], None]


@pytest.fixture
def harness() -> Harness:
    """One done manifest of seven rows in four files, three rejects, and a neighbour."""
    harness = Harness(schema={"metadata_columns": ["_source_file", "_processed_at", "_manifest_id"]})
    harness.deliver("m1", GOOD, FLAWED, MORE)
    harness.deliver("m2", GOOD)
    harness.run_once()
    return harness


@pytest.fixture(autouse=True)
def _no_back_off(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(service, "FIRST_PAUSE_SECONDS", 0.0)


def missing(*parts: int) -> Damage:
    return lambda harness, commit: harness.store.delete([commit.outputs[part].final for part in parts])


def truncated(harness: Harness, commit: Commit) -> None:
    uri = commit.outputs[1].final
    harness.store.put(uri, harness.store.read(uri)[:-20])


def replaced(harness: Harness, commit: Commit) -> None:
    harness.store.copy(commit.outputs[3].final, commit.outputs[0].final)


def without_rejects(harness: Harness, commit: Commit) -> None:
    harness.store.delete([file.final for file in commit.rejects])


def all_gone(harness: Harness, commit: Commit) -> None:
    harness.store.delete([file.final for file in (*commit.outputs, *commit.rejects)])


def moved(harness: Harness, commit: Commit) -> None:
    harness.store.copy(commit.outputs[0].final, commit.outputs[3].final)
    missing(0)(harness, commit)


def two_replaced(harness: Harness, commit: Commit) -> None:
    replaced(harness, commit)
    harness.store.copy(commit.outputs[3].final, commit.outputs[2].final)


def truncated_and_replaced(harness: Harness, commit: Commit) -> None:
    truncated(harness, commit)
    replaced(harness, commit)


def truncated_and_two_replaced(harness: Harness, commit: Commit) -> None:
    truncated(harness, commit)
    two_replaced(harness, commit)


DAMAGES: dict[str, Damage] = {
    "one missing": missing(2),
    "two missing": missing(0, 3),
    "truncated": truncated,
    "replaced": replaced,
    "moved": moved,
    "two replaced": two_replaced,
    "truncated and replaced": truncated_and_replaced,
    "truncated and two replaced": truncated_and_two_replaced,
    "rejects": without_rejects,
    "all": all_gone,
}
each_damage = pytest.mark.parametrize("damage", DAMAGES.values(), ids=DAMAGES)
SIZES = (2, 1, 3, 10)
each_damage_and_size = pytest.mark.parametrize(
    ("damage", "rows_per_file"),
    [
        pytest.param(DAMAGES[name], size, marks=() if number % 4 == at else pytest.mark.full, id=f"{name}-{size}")
        for (number, name), (at, size) in product(enumerate(DAMAGES), enumerate(SIZES))
    ],
)
"""For `make test`, each damage with one size and each size with some damages."""


def regrouped(harness: Harness, rows_per_file: int) -> PlainEngine:
    """An engine that spreads the rows over files in another way."""
    return PlainEngine(
        harness.store,
        metadata_columns=harness.settings.schema.metadata_columns,
        rows_per_file=rows_per_file,
    )


def check_tidy(harness: Harness) -> None:
    """Verify finds nothing, and nothing is left lying about."""
    assert harness.verification().discrepancies == []
    assert not harness.waiting()
    left = [info.uri for place in ("staging/", "open/") for info in harness.store.list(f"{harness.root}/state/{place}")]
    assert left == []


@each_damage_and_size
def test_rows_come_back(harness: Harness, damage: Damage, rows_per_file: int) -> None:
    """What is lost or damaged is made again: the same rows, none seen twice at any moment."""
    before, rejects = visible_rows(harness), harness.rejects()
    commit = harness.commit("m1")
    damage(harness, commit)
    assert harness.verification().discrepancies
    doubled = visible_rows(harness) - before  # what the damage itself has doubled
    seen = []
    store = WatchedStore(harness.store, on_change=lambda: seen.append(visible_rows(harness) - before))
    harness.clock.advance(3600)
    report = rebuild(harness, store=store, engine=regrouped(harness, rows_per_file))
    assert ([each.manifest_id for each in report.rebuilt], report.intact) == (["m1"], 1)
    assert (report.refused, report.failed, report.discrepancies) == ((), (), ())
    assert all(extra <= doubled for extra in seen)
    assert (visible_rows(harness), harness.rejects()) == (before, rejects)
    check_tidy(harness)
    rebuilt = harness.commit("m1")
    assert (rebuilt.generation, rebuilt.started_at, rebuilt.files) == (2, commit.started_at, commit.files)
    assert rebuild(harness).intact == 2


@each_damage
def test_same_names_where_possible(harness: Harness, damage: Damage) -> None:
    """A name is only given up if a file that is there could double rows."""
    before = harness.commit("m1")
    damage(harness, before)
    rebuild(harness)
    names = {file.final for file in harness.commit("m1").outputs}
    keeps = damage not in {two_replaced, truncated_and_replaced, truncated_and_two_replaced}
    assert (names == {file.final for file in before.outputs}) == keeps


@each_damage_and_size
def test_a_query_across_a_rebuild(harness: Harness, damage: Damage, rows_per_file: int) -> None:
    """A query that lists the files at any moment, and reads each of them at any later one, finds no row twice."""
    before = visible_rows(harness)
    damage(harness, harness.commit("m1"))
    states = [visible_files(harness)]
    doubled = visible_rows(harness) - before  # what the damage itself has doubled
    store = WatchedStore(harness.store, on_change=lambda: states.append(visible_files(harness)))
    rebuild(harness, store=store, engine=regrouped(harness, rows_per_file))
    for listed in range(len(states)):
        assert most_read(states[listed:]) - before <= doubled


DYING = {"missing": missing(0, 3), "truncated": truncated, "replaced": two_replaced}


@pytest.mark.parametrize(
    ("damage", "rows_per_file", "next_is"),
    few_rows(product(DYING.values(), [2, 3], ["job", "rebuild"]), 4),
    ids=["-".join(map(str, each)) for each in product(DYING, [2, 3], ["job", "rebuild"])],
)
def test_death_at_each_change(damage: Damage, rows_per_file: int, next_is: str) -> None:
    """A rebuild that dies before any change of the store is finished by the next one, or by the job once decided."""
    die_at = 0
    while dies(die_at, damage, rows_per_file, next_is):
        die_at += 1
    assert die_at > LEAST_CHANGES


def dies(die_at: int, damage: Damage, rows_per_file: int, next_is: str) -> bool:
    """Whether a rebuild comes to its nth change; checks that what follows its death makes the exact output."""
    harness = Harness()
    harness.deliver("m1", GOOD, FLAWED, MORE)
    harness.run_once()
    before = visible_rows(harness)
    damage(harness, harness.commit("m1"))
    doubled = visible_rows(harness) - before
    seen: list[Counter[str]] = []

    def see() -> None:
        seen.append(visible_rows(harness) - before)

    try:
        rebuild(harness, store=WatchedStore(harness.store, die_at, see), engine=regrouped(harness, rows_per_file))
    except DiedError:
        pass
    else:
        return False
    watched = WatchedStore(harness.store, on_change=see)
    if next_is == "job" and harness.commit("m1").generation > 1:
        report = harness.run_once(store=watched)
        assert (report.failures, report.stuck, report.records) == ({}, {}, 0)
    else:
        found = rebuild(harness, store=watched, engine=regrouped(harness, 1))
        assert (found.refused, found.failed, found.discrepancies) == ((), (), ())
    assert all(extra <= doubled for extra in seen)
    harness.check_exact()
    return True


def paused_at(step: CrashPoint) -> tuple[threading.Event, threading.Event, Callable[[CrashPoint, str], None]]:
    """Stops the first process that comes to a step, until it may go on."""
    paused, overtaken = threading.Event(), threading.Event()

    def wait_once(found: CrashPoint, _manifest_id: str) -> None:
        if found == step and not paused.is_set():
            paused.set()
            assert overtaken.wait(30)

    return paused, overtaken, wait_once


def dying_at(step: CrashPoint | None) -> Callable[[CrashPoint, str], None]:
    def on_crash_point(found: CrashPoint, _manifest_id: str) -> None:
        if found == step:
            raise DiedError

    return on_crash_point


NOT_IN_A_REBUILD = {CrashPoint.ACCEPTED, CrashPoint.VERIFIED}
STEPS = [step for step in CrashPoint if step not in NOT_IN_A_REBUILD]


@pytest.mark.parametrize(("step", "rows_per_file", "twice"), few_rows(product(STEPS, [2, 3], [False, True]), 15))
def test_two_at_once(harness: Harness, step: CrashPoint, rows_per_file: int, twice: bool) -> None:
    """A rebuild that is overtaken by another one at any step, and by one more after that, changes nothing."""
    before, rejects = visible_rows(harness), harness.rejects()
    two_replaced(harness, harness.commit("m1"))
    paused, overtaken, wait_once = paused_at(step)
    reports = []
    slow = threading.Thread(target=lambda: reports.append(rebuild(harness, on_crash_point=wait_once)))
    slow.start()
    try:
        assert paused.wait(30)
        rebuild(harness, engine=regrouped(harness, rows_per_file))
        harness.run_once()
        if twice:
            two = harness.commit("m1").outputs[:2]
            for file in two:
                harness.store.copy(harness.commit("m2").outputs[0].final, file.final)
            rebuild(harness, engine=regrouped(harness, 1))
    finally:
        overtaken.set()
        slow.join()
    assert (reports[0].failed, reports[0].refused) == ((), ())
    assert (visible_rows(harness), harness.rejects()) == (before, rejects)
    harness.run_once()
    rebuild(harness)
    check_tidy(harness)
    assert rebuild(harness).intact == 2


@pytest.mark.parametrize("step", [CrashPoint.DECIDED, CrashPoint.PUBLISHED_ONE, CrashPoint.PUBLISHED, CrashPoint.DONE])
@pytest.mark.parametrize("rows_per_file", [2, 3])
def test_job_that_is_late(step: CrashPoint, rows_per_file: int) -> None:
    """A job that was held up since before its manifest was rebuilt publishes nothing of what it had staged."""
    harness = Harness()
    uri = harness.deliver("m1", GOOD, FLAWED, MORE)
    paused, overtaken, wait_once = paused_at(step)
    results = []
    slow = threading.Thread(target=lambda: results.append(harness.runner(on_crash_point=wait_once).run([uri])))
    slow.start()
    try:
        assert paused.wait(30)
        harness.run_once()
        two_replaced(harness, harness.commit("m1"))
        assert len(rebuild(harness, engine=regrouped(harness, rows_per_file)).rebuilt) == 1
    finally:
        overtaken.set()
        slow.join()
    assert (results[0].failures, results[0].stuck) == ({}, {})
    harness.check_exact()


@pytest.mark.parametrize("step", STEPS)
def test_job_that_cleans_up_late(harness: Harness, step: CrashPoint) -> None:
    """A job that takes a done manifest for delivered again cleans up after the first commit, and after it alone."""
    before = visible_rows(harness)
    missing(0, 1)(harness, harness.commit("m1"))
    paused, overtaken, wait_once = paused_at(step)
    reports = []
    slow = threading.Thread(target=lambda: reports.append(rebuild(harness, on_crash_point=wait_once)))
    slow.start()
    try:
        assert paused.wait(30)
        accepted = harness.ledger.accepted("m1")
        assert accepted is not None
        Publisher(harness.app().state).clean_up(accepted, harness.ledger.outcome_of(M1, 1))
    finally:
        overtaken.set()
        slow.join()
    assert ([each.manifest_id for each in reports[0].rebuilt], reports[0].discrepancies) == (["m1"], ())
    assert visible_rows(harness) == before
    check_tidy(harness)


def stuck(harness: Harness) -> Commit:
    """A commit of which one staged file was deleted before it was published, and others were published."""
    uri = harness.deliver("m1", GOOD, FLAWED, MORE)
    with pytest.raises(DiedError):
        harness.runner(on_crash_point=dying_at(CrashPoint.PUBLISHED_ONE)).run([uri])
    commit = harness.commit("m1")
    harness.store.delete([commit.outputs[2].staged])
    return commit


@pytest.mark.parametrize("rows_per_file", [2, 3])
def test_staging_lost(rows_per_file: int) -> None:
    """A committed manifest whose staging was removed is stuck, says how to go on, and is rebuilt."""
    harness = Harness()
    stuck(harness)
    report = harness.run_once()
    assert "`compactor rebuild --manifest m1`" in report.stuck["m1"]
    assert "compactor rebuild" in StagingLost.next_move
    seen: list[Counter[str]] = []
    store = WatchedStore(harness.store, on_change=lambda: seen.append(visible_rows(harness)))
    found = rebuild(harness, store=store, engine=regrouped(harness, rows_per_file))
    assert [each.manifest_id for each in found.rebuilt] == ["m1"]
    assert all(rows <= visible_rows(harness) for rows in seen)
    harness.check_exact()
    assert harness.run_once().stuck == {}


@pytest.mark.parametrize("rows_per_file", [2, 3])
@pytest.mark.parametrize("dies_at", [None, CrashPoint.DECIDED, CrashPoint.PUBLISHED_ONE])
def test_staging_lost_beside_a_job(rows_per_file: int, dies_at: CrashPoint | None) -> None:
    """A job that was about to publish what is left of the lost staging finds the rebuild, and helps it along."""
    harness = Harness()
    stuck(harness)
    paused, overtaken, wait_once = paused_at(CrashPoint.PUBLISHED_ONE)
    results = []
    slow = threading.Thread(target=lambda: results.append(harness.runner(on_crash_point=wait_once).resume(["m1"])))
    slow.start()
    try:
        assert paused.wait(30)
        with suppress(DiedError):
            rebuild(harness, engine=regrouped(harness, rows_per_file), on_crash_point=dying_at(dies_at))
    finally:
        overtaken.set()
        slow.join()
    assert (results[0].failures, results[0].stuck) == ({}, {})
    harness.check_exact()


def test_late_copies_of_lost_staging() -> None:
    """Nothing that a late driver could publish is left when the first rebuilt file is published."""
    harness = Harness()
    first = stuck(harness)
    staged = {file.staged for file in first.outputs}
    left: list[int] = []

    class Store(WatchedStore):
        def copy(self, source: str, target: str) -> None:
            if target.startswith(harness.layout.output):
                left.append(sum(harness.store.stat(uri) is not None for uri in staged))
            super().copy(source, target)

    rebuild(harness, store=Store(harness.store))
    assert set(left) == {0}


@pytest.mark.parametrize("damage", [missing(1), two_replaced, all_gone], ids=["missing", "replaced", "all"])
def test_lost_staging_of_a_rebuild(harness: Harness, damage: Damage) -> None:
    """A rebuild whose own staging is removed before it is published is stuck as well, and is rebuilt."""
    before = visible_rows(harness)
    damage(harness, harness.commit("m1"))
    with pytest.raises(DiedError):
        rebuild(harness, on_crash_point=dying_at(CrashPoint.DECIDED))
    second = harness.commit("m1")
    for file in second.outputs:  # a file of another generation may have the same length
        if harness.store.stat(file.final) is None:
            harness.store.put(file.final, b" " * file.size_bytes)
    harness.store.delete([file.staged for file in second.outputs])
    assert "compactor rebuild --manifest m1" in harness.run_once().stuck["m1"]
    rebuild(harness)
    assert harness.commit("m1").generation == 3
    assert visible_rows(harness) == before
    check_tidy(harness)


def test_names_are_given_up_for_good(harness: Harness) -> None:
    """A name that was given up may be deleted late, so that no later rebuild publishes a file there."""
    given_up: set[str] = set()
    for rows_per_file in (3, 2, 1, 3, 10, 1):
        outputs = harness.commit("m1").outputs
        for file in outputs[:2]:
            harness.store.copy(harness.commit("m2").outputs[0].final, file.final)
        rebuild(harness, engine=regrouped(harness, rows_per_file))
        commit = harness.commit("m1")
        assert given_up <= set(commit.removes)
        given_up = set(commit.removes)
        assert not given_up & {file.final for file in (*commit.outputs, *commit.rejects)}
    assert given_up
    check_tidy(harness)


def test_numbers_are_given_up_for_good(harness: Harness) -> None:
    """A rebuild into fewer files gives up the last numbers; one into more files takes other ones."""
    for rows_per_file in (10, 1):
        all_gone(harness, harness.commit("m1"))
        rebuild(harness, engine=regrouped(harness, rows_per_file))
        commit = harness.commit("m1")
        assert len(commit.removes) == 3
        assert not set(commit.removes) & {file.final for file in commit.outputs}
    check_tidy(harness)


def test_death_at_each_change_of_lost_staging() -> None:
    """What a dead rebuild of lost staging left is finished, whichever files of it were published already."""
    for die_at in range(100):
        harness = Harness()
        stuck(harness)
        try:
            rebuild(harness, store=WatchedStore(harness.store, die_at), engine=regrouped(harness, 3))
        except DiedError:
            rebuild(harness, engine=regrouped(harness, 1))
            harness.check_exact()
        else:
            return
    pytest.fail("it never ends")


class KeepsOutput(FaultyStore):
    """Refuses to delete output, as the role of the job does."""

    def delete(self, uris: Iterable[str]) -> None:
        uris = list(uris)
        if denied := [uri for uri in uris if uri.startswith("/w/output/")]:
            raise AccessError(f"{denied[0]}: DeleteObjects failed with AccessDenied")
        super().delete(uris)


@pytest.mark.parametrize("step", [CrashPoint.DECIDED, CrashPoint.PUBLISHED_ONE])
def test_a_job_that_may_not_delete_output(harness: Harness, step: CrashPoint) -> None:
    """It finishes what it may of a rebuild that died; the next rebuild does the rest, and no other manifest waits."""
    two_replaced(harness, harness.commit("m1"))

    def die(found: CrashPoint, _manifest_id: str) -> None:
        if found == step:
            raise DiedError

    with pytest.raises(DiedError):
        rebuild(harness, on_crash_point=die)
    harness.deliver("m3", GOOD)
    report = harness.run_once(store=KeepsOutput(harness.store))
    assert report.committed == 1
    if step is CrashPoint.DECIDED:
        assert "DeleteObjects failed with AccessDenied" in str(report.stuck["m1"])
        assert "`compactor rebuild --manifest m1`" in str(report.stuck["m1"])
        rebuild(harness)
    assert report.stuck.keys() == ({"m1"} if step is CrashPoint.DECIDED else set())
    check_tidy(harness)
