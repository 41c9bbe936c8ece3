"""The job's own sample: converted with everything but a manifest, and gone afterwards."""

from datetime import timedelta

import pytest

from compactor.adapters.local.native.threads import ThreadBinWorkers
from compactor.core.errors import AccessError, EngineFailed
from compactor.engines.engine import Engine, Staged, StageRequest
from compactor.job.attempts import SELF_TEST_PAUSE_SECONDS, SelfTest
from compactor.wiring import engines
from tests.support.extras import NATIVE
from tests.support.fakes import FailingEngine
from tests.support.harness import Harness


@pytest.fixture
def harness() -> Harness:
    return Harness()


def self_test(harness: Harness, engine: Engine) -> SelfTest:
    app = harness.app()
    return SelfTest(state=app.state, engine=engine, metadata_columns=harness.settings.schema.metadata_columns)


def test_it_leaves_nothing(harness: Harness) -> None:
    """No record, no column and no file is left, whether it passes or not."""
    before = {info.uri for info in harness.store.list("/w/")}
    now = harness.clock.now()
    assert self_test(harness, harness.engine()).has_passed_since(now)
    assert not self_test(harness, FailingEngine(harness.store, EngineFailed("killed"))).has_passed_since(now)
    assert {info.uri for info in harness.store.list("/w/")} == before


@NATIVE.needed
def test_on_the_native_engine(harness: Harness) -> None:
    """The sample passes with the metadata columns of the settings."""
    app = harness.app()
    engine = engines.native_engine(app, ThreadBinWorkers(app.store))
    assert self_test(harness, engine).has_passed_since(harness.clock.now())


def test_it_runs_again_only_for_what_failed_later(harness: Harness) -> None:
    """One test serves all failures before it, and a failed one is not repeated at once."""
    engine = FailingEngine(harness.store, EngineFailed("killed"), {"self-test": 1})
    test, first = self_test(harness, engine), harness.clock.now()
    assert not test.has_passed_since(first)
    harness.clock.advance(SELF_TEST_PAUSE_SECONDS - 1)
    assert not test.has_passed_since(first)
    harness.clock.advance(1)
    assert test.has_passed_since(first)
    engine.stage = unexpected  # type: ignore[method-assign]
    assert test.has_passed_since(harness.clock.now() - timedelta(seconds=1))
    harness.clock.advance(1)
    assert not test.has_passed_since(harness.clock.now())


def unexpected(request: StageRequest) -> Staged:
    raise EngineFailed(f"{request.manifest.manifest_id} is staged again")


def test_what_a_person_must_fix_ends_the_run(harness: Harness) -> None:
    """The job's own places stop the job, also here."""
    with pytest.raises(AccessError):
        self_test(harness, FailingEngine(harness.store, AccessError("denied"))).has_passed_since(harness.clock.now())


def test_a_clock_that_was_ahead_for_a_moment(harness: Harness) -> None:
    """Neither what failed then nor what passed then tells for longer than it would else."""
    engine = FailingEngine(harness.store, EngineFailed("killed"), {"self-test": 1})
    test, now = self_test(harness, engine), harness.clock.now()
    harness.clock.advance(3600)
    assert not test.has_passed_since(harness.clock.now())
    harness.clock.advance(-3600)
    assert test.has_passed_since(now)
    harness.clock.advance(3600 + SELF_TEST_PAUSE_SECONDS)
    assert test.has_passed_since(harness.clock.now())
    harness.clock.advance(-1800)
    engine.stage = unexpected  # type: ignore[method-assign]
    assert not test.has_passed_since(harness.clock.now())
