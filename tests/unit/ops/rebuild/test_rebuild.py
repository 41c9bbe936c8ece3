"""Rebuilding: lost and damaged files come back with the same rows, whatever dies, is late, or runs beside it."""

import threading
from collections.abc import Callable

import pytest

from compactor.core.crash_points import CrashPoint
from compactor.core.errors import StagingLost
from compactor.core.manifest_key import ManifestKey
from compactor.core.records import Commit
from compactor.engines.engine import Staged, StageRequest
from compactor.job import service
from tests.support.fakes import PlainEngine
from tests.support.harness import DAY, FLAWED, GOOD, DiedError, Harness
from tests.support.rebuilding import WatchedStore, rebuild, visible_rows

M1 = ManifestKey(DAY, "m1")
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


def two_replaced(harness: Harness, commit: Commit) -> None:
    replaced(harness, commit)
    harness.store.copy(commit.outputs[3].final, commit.outputs[2].final)


DAMAGES: dict[str, Damage] = {
    "one missing": missing(2),
    "two missing": missing(0, 3),
    "truncated": truncated,
    "replaced": replaced,
    "two replaced": two_replaced,
    "rejects": without_rejects,
    "all": all_gone,
}
each_damage = pytest.mark.parametrize("damage", DAMAGES.values(), ids=DAMAGES)


def regrouped(harness: Harness, rows_per_file: int) -> PlainEngine:
    """An engine that spreads the rows over files in another way."""
    return PlainEngine(
        harness.store,
        metadata_columns=harness.settings.schema.metadata_columns,
        rows_per_file=rows_per_file,
    )


def check_plain(harness: Harness) -> None:
    """The output is exact. Compares the columns of the data only."""
    assert harness.verification().discrepancies == []
    assert not harness.waiting()
    left = [info.uri for place in ("staging/", "open/") for info in harness.store.list(f"{harness.root}/state/{place}")]
    assert left == []


@each_damage
@pytest.mark.parametrize("rows_per_file", [2, 1, 3, 10])
def test_rows_come_back(harness: Harness, damage: Damage, rows_per_file: int) -> None:
    """What is lost or damaged is made again: the same rows, none of them seen twice at any moment, and verify agrees."""
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
    assert (report.refused, report.failed, report.discrepancies) == ([], [], [])
    assert all(extra <= doubled for extra in seen)
    assert (visible_rows(harness), harness.rejects()) == (before, rejects)
    check_plain(harness)
    rebuilt = harness.commit("m1")
    assert (rebuilt.generation, rebuilt.started_at, rebuilt.files) == (2, commit.started_at, commit.files)
    assert rebuilt.rebuild is not None
    assert rebuilt.rebuild.supersedes == "outcome.json"
    assert rebuild(harness).intact == 2


@each_damage
def test_same_names_where_possible(harness: Harness, damage: Damage) -> None:
    """A name is only given up if a file that is there could double rows."""
    before = harness.commit("m1")
    damage(harness, before)
    rebuild(harness)
    names = {file.final for file in harness.commit("m1").outputs}
    assert (names == {file.final for file in before.outputs}) == (damage is not two_replaced)


@each_damage
@pytest.mark.parametrize("rows_per_file", [2, 3])
@pytest.mark.parametrize("next_is", ["job", "rebuild"])
def test_death_at_each_change(damage: Damage, rows_per_file: int, next_is: str) -> None:
    """A rebuild that dies before any change of the store is finished by the next one, or by the job once decided."""
    die_at = 0
    while True:
        harness = Harness()
        harness.deliver("m1", GOOD, FLAWED, MORE)
        harness.run_once()
        before = visible_rows(harness)
        damage(harness, harness.commit("m1"))
        doubled = visible_rows(harness) - before
        store = WatchedStore(harness.store, die_at)
        try:
            rebuild(harness, store=store, engine=regrouped(harness, rows_per_file))
        except DiedError:
            pass
        else:
            return
        is_decided = harness.commit("m1").generation == 2
        seen = []
        watched = WatchedStore(harness.store, on_change=lambda seen=seen, all=before: seen.append(visible_rows(harness) - all))
        if next_is == "job" and is_decided:
            report = harness.run_once(store=watched)
            assert (report.failures, report.stuck, report.records) == ({}, {}, 0)
        else:
            found = rebuild(harness, store=watched, engine=regrouped(harness, 1))
            assert (found.refused, found.failed, found.discrepancies) == ([], [], [])
        assert all(extra <= doubled for extra in seen)
        harness.check_exact()
        assert harness.commit("m1").generation == 2
        die_at += 1
