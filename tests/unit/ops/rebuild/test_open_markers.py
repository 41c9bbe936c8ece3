"""The open marker of a rebuild: the job finishes what it has decided, also if another one clears up beside it."""

from collections.abc import Callable
from contextlib import suppress

import pytest

from compactor.core.crash_points import CrashPoint, OnCrashPoint
from compactor.core.documents.changes import Why
from compactor.upkeep.expiring import Expirer
from compactor.wiring import operating, rebuilding
from tests.support.harness import DAY, FLAWED, GOOD, DiedError, Harness
from tests.support.rebuilding import rebuild

Meanwhile = Callable[[Harness], None]


@pytest.fixture
def harness() -> Harness:
    """One manifest that is done, and intact."""
    harness = Harness()
    harness.deliver("m1", GOOD, FLAWED)
    harness.run_once()
    return harness


def another_finds_it_intact(harness: Harness) -> None:
    assert rebuild(harness).intact == 1


def another_gives_up(harness: Harness) -> None:
    """Its input is gone once it has begun an attempt: it does not read it as it was, and deletes its own marker."""
    uri = harness.commit("m1").files[0].uri
    content = harness.store.read(uri)

    def delete_input(found: CrashPoint, _manifest_id: str) -> None:
        if found is CrashPoint.ATTEMPTED:
            harness.store.delete([uri])

    report = rebuild(harness, "m1", force=True, on_crash_point=delete_input)
    assert [uri in each.why for each in report.refused] == [True]
    harness.store.put(uri, content)


def its_rows_expire(harness: Harness) -> None:
    """They stay while the manifest is open; another rebuild finds that they expired."""
    expirer = Expirer(state=harness.app().state)
    assert expirer.expire(Why.DATE, DAY, "n", "a rule", {"m1": 1}) == ["m1"]
    assert rebuild(harness).expired == 1


def overtaken_and_dying(harness: Harness, meanwhile: Meanwhile, *, after: CrashPoint) -> OnCrashPoint:
    """A rebuild beside which something happens at its marker, and which dies right after its decision."""

    def on_crash_point(found: CrashPoint, _manifest_id: str) -> None:
        if found is after:
            meanwhile(harness)
        if found is CrashPoint.DECIDED:
            raise DiedError

    return on_crash_point


@pytest.mark.parametrize("meanwhile", [another_finds_it_intact, another_gives_up, its_rows_expire])
def test_the_job_finishes_a_rebuild_beside_which_another_cleared_up(harness: Harness, meanwhile: Meanwhile) -> None:
    """A rebuild has written its marker; another process clears up; the rebuild decides, and dies."""
    with pytest.raises(DiedError):
        rebuild(harness, force=True, on_crash_point=overtaken_and_dying(harness, meanwhile, after=CrashPoint.OPENED))
    harness.run_once()
    assert harness.ledger.is_done(harness.commit("m1").key, 2)
    assert list(harness.ledger.open_ids()) == []
    harness.check_exact()


def test_what_was_decided_since_the_scan_stays_open(harness: Harness) -> None:
    """A scan of many manifests takes hours. What it found intact may have been rebuilt since, by one that died."""
    app = harness.app()
    scan = operating.rebuild_scanner(app).scan()
    with suppress(DiedError):
        rebuild(harness, force=True, on_crash_point=overtaken_and_dying(harness, print, after=CrashPoint.DECIDED))
    harness.clock.advance(2 * 3600)
    rebuilding.rebuilder(app, lambda _: harness.engine()).rebuild(scan)
    assert list(harness.ledger.open_ids()) == ["m1"]
    harness.run_once()
    assert harness.ledger.is_done(harness.commit("m1").key, 2)
    harness.check_exact()


def test_a_rebuild_that_fails_leaves_no_marker(harness: Harness) -> None:
    """It is the only one that can know at once that it will not decide."""

    def expire(found: CrashPoint, _manifest_id: str) -> None:
        if found is CrashPoint.CONVERTED:
            Expirer(state=harness.app().state).expire(Why.DATE, DAY, "n", "a rule", {"m1": 1})

    report = rebuild(harness, "m1", force=True, on_crash_point=expire)
    assert len(report.refused) == 1
    assert list(harness.ledger.open_ids()) == []
