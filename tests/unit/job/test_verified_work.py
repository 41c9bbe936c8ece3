"""What attempts leave behind: verified work that is decided later, no staging of failed ones, few records."""

from collections.abc import Iterable
from contextlib import suppress
from typing import TYPE_CHECKING

import pytest

from compactor.core.crash_points import CrashPoint
from compactor.core.errors import StoreUnavailable
from compactor.core.layout import ManifestKey
from compactor.engines.engine import Staged, StageRequest
from compactor.job.report import ManifestsUnfinished
from compactor.ledger.ledger import FOLD_AT
from tests.support.fakes import FailingEngine, FaultyStore, PlainEngine
from tests.support.harness import DAY, FLAWED, GOOD, DiedError, Harness, dying_at
from tests.support.logged import events_logged

if TYPE_CHECKING:
    from compactor.core.documents.changes import Commit, DeadLetter

M1 = ManifestKey(DAY, "m1")

ALWAYS = 1_000_000


@pytest.fixture
def harness() -> Harness:
    return Harness()


def test_a_commit_that_could_not_be_written_is_decided_without_a_second_conversion(harness: Harness) -> None:
    """The verified work of an attempt is kept until its outcome can be written, and is never held against anything."""

    class Refusing(FaultyStore):
        def create(self, uri: str, data: bytes) -> bool:
            if uri.endswith("outcome.json") and refusals:
                refusals.pop()
                raise StoreUnavailable(f"{uri}: 503")
            return super().create(uri, data)

    refusals = list(range(13))
    harness.deliver("m1", GOOD, FLAWED)
    engine = FailingEngine(harness.store, RuntimeError("a second conversion"), {})
    while refusals:
        with suppress(ManifestsUnfinished):
            harness.run_once(engine=engine, store=Refusing(harness.store))
        engine = FailingEngine(harness.store, RuntimeError("a second conversion"), {"m1": ALWAYS})
        harness.clock.advance(600)
    assert harness.commit("m1").attempt == 1
    assert engine.tries == 0
    harness.check_exact()


def test_a_commit_that_could_not_be_written_leaves_a_passing_failure(harness: Harness) -> None:
    """The attempt has an end on record, so that no later run takes it for a death."""

    class Refusing(FaultyStore):
        def create(self, uri: str, data: bytes) -> bool:
            if uri.endswith("outcome.json"):
                raise StoreUnavailable(f"{uri}: 503")
            return super().create(uri, data)

    uri = harness.deliver("m1", GOOD)
    batch = harness.runner(store=Refusing(harness.store)).run([uri])
    assert list(batch.failures) == ["m1"]
    [state] = harness.ledger.state(M1).attempts.unfolded
    assert state.failure is not None
    assert (state.failure.passing, state.failure.undecided) == (True, False)


@pytest.mark.parametrize("damaged", [b"", b"{", b"null", b"\xff"])
def test_verified_work_whose_record_is_damaged_is_done_again(harness: Harness, damaged: bytes) -> None:
    """It is only a copy of what an attempt found: no person has to restore it before the manifest ends."""
    uri = harness.deliver("m1", GOOD, FLAWED)
    with pytest.raises(DiedError):
        harness.runner(on_crash_point=dying_at(CrashPoint.VERIFIED)).run([uri])
    harness.store.put(harness.layout.verified_commit("m1", 1), damaged)
    with events_logged("attempt.unreadable") as events:
        harness.run_once()
    assert [event["attempt"] for event in events] == [1]
    assert harness.commit("m1").attempt == 2
    harness.check_exact()


def test_verified_work_whose_staging_is_gone_is_done_again(harness: Harness) -> None:
    """A verified commit is only decided while all its staged files are there."""
    uri = harness.deliver("m1", GOOD, FLAWED)
    with pytest.raises(DiedError):
        harness.runner(on_crash_point=dying_at(CrashPoint.VERIFIED)).run([uri])
    [staged, *_] = [info.uri for info in harness.store.list(harness.layout.staging_of_attempt("m1", 1) + "out/")]
    harness.store.delete([staged])
    harness.run_once()
    assert harness.commit("m1").attempt == 2
    harness.check_exact()


def test_a_failed_attempt_leaves_no_staging(harness: Harness) -> None:
    """However often a manifest fails, the staging of its failed attempts does not pile up."""

    class FailsLate(PlainEngine):
        def stage(self, request: StageRequest) -> Staged:
            super().stage(request)
            raise StoreUnavailable("503")

    uri = harness.deliver("m1", GOOD, FLAWED)
    for _ in range(3):
        harness.runner(engine=FailsLate(harness.store)).run([uri])
        assert list(harness.store.list(harness.layout.staging_of("m1"))) == []


def test_many_attempts_fold_into_one_record(harness: Harness) -> None:
    """The records of a manifest that passing trouble never leaves are bounded, and their sum is kept."""
    uri = harness.deliver("m1", GOOD)
    engine = FailingEngine(harness.store, StoreUnavailable("503"), {"m1": ALWAYS})
    for _ in range(3 * FOLD_AT):
        harness.runner(engine=engine).run([uri])
    names = harness.ledger.record_names(M1)
    assert len(names) <= 2 * FOLD_AT + 1
    found = harness.ledger.state(M1).attempts
    assert (found.last_number, found.failures, found.deaths) == (3 * FOLD_AT, 3 * FOLD_AT, 0)
    assert harness.verification().discrepancies == []
    harness.clock.advance(600)
    harness.run_once()
    harness.check_exact()


def test_staging_stays_if_another_driver_may_have_found_it_verified(harness: Harness) -> None:
    """Where the answer to the write of a verified commit is lost, a second driver may decide it at any moment."""

    class Losing(FaultyStore):
        def put(self, uri: str, data: bytes) -> None:
            super().put(uri, data)
            if uri == harness.layout.verified_commit("m1", 1):
                commit = harness.ledger.verified_commit(M1, 1)
                assert commit is not None
                found.append(commit)
                raise StoreUnavailable("the answer did not come")

        def delete(self, uris: Iterable[str]) -> None:
            if found and not decided:  # the second driver, between two calls of the first
                decided.append(harness.ledger.decide(found[0]))
            super().delete(uris)

    found: list[Commit] = []
    decided: list[Commit | DeadLetter] = []
    store = Losing(harness.store)
    batch = harness.runner(store=store).run([harness.deliver("m1", GOOD)])
    assert "m1" in batch.failures
    if not decided:
        harness.ledger.decide(found[0])
    harness.run_once()
    harness.check_exact()
