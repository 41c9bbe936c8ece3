"""Recovery: what earlier runs left is finished or swept, and the cost of it does not grow with what is done."""

import pytest

from compactor.core.crash_points import CrashPoint
from compactor.job.recovery import Recovery
from compactor.job.retention.cleaner import CHECKPOINT_AGE_SECONDS, ORPHAN_AGE_SECONDS
from tests.support.fakes import FaultyStore
from tests.support.harness import GOOD, DiedError, Harness


def recovery(harness: Harness, store: FaultyStore | None = None) -> Recovery:
    app = harness.app(store=store)
    return Recovery(app.state, app.batch_runner(harness.engine(store)), app.cleaner)


@pytest.mark.parametrize("over", [False, True])
def test_sweep(over: bool) -> None:
    """A run sweeps up orphaned staging and checkpoints of dead runs before it listens, once they are old enough."""
    harness = Harness()
    harness.deliver("m1", GOOD)
    harness.run_once()
    places = [f"{harness.layout.staging('m1', 7)}0.parquet", harness.layout.checkpoint("run-1") + "/offsets/0"]
    for uri, age_seconds in zip(places, (ORPHAN_AGE_SECONDS, CHECKPOINT_AGE_SECONDS), strict=True):
        harness.store.put(uri, b"x")
        harness.clock.advance(age_seconds + (1 if over else -1))
        recovery(harness).sweep()
        assert (harness.store.stat(uri) is None) == over
        harness.store.delete([uri])


def test_recover_without_the_objects() -> None:
    """An open manifest is carried on from the ledger, also where its object is gone."""
    harness = Harness()
    uri = harness.deliver("m1", GOOD)

    def die(step: CrashPoint, _manifest_id: str) -> None:
        if step == CrashPoint.ATTEMPTED:
            raise DiedError

    with pytest.raises(DiedError):
        harness.runner(on_crash_point=die).run([uri])
    harness.store.delete([uri])
    batch = recovery(harness).recover()
    assert [result.manifest_id for result in batch.results] == ["m1"]
    harness.check_exact()


def test_cost_does_not_grow_with_what_is_done() -> None:
    """Recovery asks as little of the store after many manifests as after none."""
    calls = []
    harness = Harness()
    for count in (0, 12):
        for number in range(count):
            harness.deliver(f"m{number}", GOOD)
        harness.run_once()
        store = FaultyStore(harness.store)
        recovery(harness, store).recover()
        recovery(harness, store).sweep()
        calls.append(store.calls["any"])
    assert calls[0] == calls[1]
