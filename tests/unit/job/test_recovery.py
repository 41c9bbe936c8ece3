"""Recovery: what earlier runs left is finished or swept, and the cost of it does not grow with what is done."""

import pytest

from compactor.core.crash_points import CrashPoint
from compactor.job.recovery import Recovery
from compactor.job.retention.cleaner import CHECKPOINT_AGE_SECONDS, ORPHAN_AGE_SECONDS, Kind
from tests.support.fakes import FaultyStore
from tests.support.harness import GOOD, DiedError, Harness
from tests.support.logged import events_logged


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
        with events_logged("orphans.swept") as events:
            recovery(harness).sweep()
        kind = Kind.STAGED if uri == places[0] else Kind.CHECKPOINT
        assert [event["removed"] for event in events] == ([{kind: 1}] if over else [])
        assert (harness.store.stat(uri) is None) == over
        harness.store.delete([uri])


def test_checkpoints_that_cannot_be_deleted_stay() -> None:
    """A run ends all the same if its checkpoints cannot be deleted; the log says so, and a later sweep deletes them."""
    harness = Harness()
    store = FaultyStore(harness.store)
    app = harness.app(store=store)
    uri = harness.layout.checkpoint(f"{app.run_id}-1") + "/offsets/0"
    harness.store.put(uri, b"x")
    store.unavailable_at(1, "delete")
    dropped = Recovery(app.state, app.batch_runner(harness.engine(store)), app.cleaner)
    for kept in (True, False):
        with events_logged("checkpoints.kept") as events:
            dropped.drop_checkpoints()
        assert (len(events), harness.store.stat(uri) is not None) == (int(kept), kept)


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
