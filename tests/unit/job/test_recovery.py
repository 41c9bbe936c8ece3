"""Recovery: what earlier runs left is finished or swept, and the cost of it does not grow with what is done."""

import pytest

from compactor.core.crash_points import CrashPoint
from compactor.core.manifest_key import ManifestKey
from compactor.job.recovery import Recovery
from compactor.job.retention.cleaner import CHECKPOINT_AGE_SECONDS, ORPHAN_AGE_SECONDS, Kind
from tests.support.fakes import FailingEngine, FaultyStore
from tests.support.harness import DAY, GOOD, DiedError, Harness
from tests.support.logged import events_logged


def recovery(harness: Harness, store: FaultyStore | None = None) -> Recovery:
    app = harness.app(store=store)
    return Recovery(app.state, app.runs, app.cleaner)


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
    dropped = Recovery(app.state, app.runs, app.cleaner)
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
    batch = harness.runner().resume(recovery(harness).open_ids())
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
        recovery(harness, store).open_ids()
        recovery(harness, store).sweep()
        calls.append(store.calls["any"])
    assert calls[0] == calls[1]


def deaths(harness: Harness, manifest_id: str) -> list[tuple[bool, bool]]:
    """Of each attempt on record, whether it ended with its run, and whether it is held against the manifest."""
    ends = [state.failure for state in harness.ledger.state(ManifestKey(DAY, manifest_id)).attempts.unfolded]
    return [(end is not None and end.died, end is not None and not end.passing) for end in ends]


def test_deaths_are_put_on_record() -> None:
    """A death is recorded once, and blamed on what was alone in flight or was in flight at more deaths than others."""
    harness = Harness(stream={"manifests_in_flight": 2})
    uris = [harness.deliver(name, GOOD) for name in ("a", "killer")]
    engine = FailingEngine(harness.store, DiedError(), {"a": 1, "killer": 9})
    for _ in range(2):
        with pytest.raises(DiedError):
            harness.runner(engine=engine).run(uris)
        for _ in range(2):
            assert sorted(recovery(harness).open_ids())
    assert deaths(harness, "killer")[0] == (True, False)
    assert deaths(harness, "killer")[-1][0]
    with pytest.raises(DiedError):
        harness.runner(engine=engine).run([uris[1]])
    recovery(harness).open_ids()
    assert deaths(harness, "killer")[-1] == (True, True)


def test_an_attempt_of_a_run_that_lives_is_no_death() -> None:
    """Recovery records nothing about what another driver is working on."""
    harness = Harness()
    other = harness.app()
    uri = harness.deliver("m1", GOOD)
    with other.heartbeat:
        with pytest.raises(DiedError):
            other.batch_runner(FailingEngine(harness.store, DiedError(), {"m1": 1})).run([uri])
        assert recovery(harness).open_ids() == ["m1"]
        assert deaths(harness, "m1") == [(False, False)]


def test_an_open_manifest_without_readable_records_keeps_no_other_from_recovery() -> None:
    """It is left to the work on it, which tells of it."""
    harness = Harness()
    for name in ("m1", "m2"):
        with pytest.raises(DiedError):
            harness.runner(engine=FailingEngine(harness.store, DiedError(), {name: 1})).run(
                [harness.deliver(name, GOOD)]
            )
    harness.store.put(harness.layout.accepted("m1"), b"?")
    assert recovery(harness).open_ids() == ["m1", "m2"]
    assert deaths(harness, "m2") == [(True, True)]
