"""Recovery: what earlier runs left is finished or swept, and the cost of it does not grow with what is done."""

import pytest

from compactor.core.crash_points import CrashPoint
from compactor.core.errors import StoreUnavailable
from compactor.core.layout import ManifestKey
from compactor.job.recovery import Opened, Recovery
from compactor.upkeep.cleaner import CHECKPOINT_AGE_SECONDS, ORPHAN_AGE_SECONDS, Kind
from compactor.wiring import operating, streaming
from tests.support.fakes import FailingEngine, FaultyStore
from tests.support.harness import DAY, GOOD, DiedError, Harness
from tests.support.logged import events_logged


def recovery(harness: Harness, store: FaultyStore | None = None) -> Recovery:
    app = harness.app(store=store)
    return Recovery(app.state, app.runs, operating.cleaner(app))


def ids_found(harness: Harness, store: FaultyStore | None = None) -> list[str]:
    """Look for what earlier runs left open, and record their deaths."""
    return [each.manifest_id for each in recovery(harness, store).find()]


@pytest.mark.parametrize("staging", ["", "s3://scratch/staging"])
@pytest.mark.parametrize("over", [False, True])
def test_sweep(over: bool, staging: str) -> None:
    """A run sweeps up orphaned staging and checkpoints of dead runs before it listens, once they are old enough."""
    harness = Harness(root="s3://lake", staging=staging)
    harness.deliver("m1", GOOD)
    harness.run_once()
    assert list(harness.store.list(harness.layout.staging_folder)) == []
    places = [
        f"{harness.layout.staging_of_attempt('m1', 7)}0.parquet",
        harness.layout.checkpoint("run-1") + "/offsets/0",
    ]
    for uri, age_seconds in zip(places, (ORPHAN_AGE_SECONDS, CHECKPOINT_AGE_SECONDS), strict=True):
        harness.store.put(uri, b"x")
        harness.clock.advance(age_seconds + (1 if over else -1))
        with events_logged("orphans.swept") as events:
            recovery(harness).sweep()
        kind = Kind.STAGED if uri == places[0] else Kind.CHECKPOINT
        assert [event["removed"] for event in events] == ([{kind: 1}] if over else [])
        assert (harness.store.stat(uri) is None) == over
        harness.store.delete([uri])


def test_cost_does_not_grow_with_what_is_done() -> None:
    """Recovery asks as little of the store after many manifests as after none."""
    calls = []
    harness = Harness()
    for count in (0, 12):
        for number in range(count):
            harness.deliver(f"m{number}", GOOD)
        harness.run_once()
        store = FaultyStore(harness.store)
        ids_found(harness, store)
        recovery(harness, store).sweep()
        calls.append(store.calls["any"])
    assert calls[0] == calls[1]


def deaths(harness: Harness, manifest_id: str) -> list[tuple[bool, bool]]:
    """Of each attempt on record, whether it ended with its run, and whether it may be held against the manifest."""
    ends = [state.failure for state in harness.ledger.state(ManifestKey(DAY, manifest_id)).attempts.unfolded]
    return [(end is not None and end.died, end is not None and end.undecided) for end in ends]


def test_deaths_are_put_on_record() -> None:
    """A death is recorded once, and blamed on what was alone in flight or was in flight at more deaths than others."""
    harness = Harness(stream={"manifests_in_flight": 2})
    uris = [harness.deliver(name, GOOD) for name in ("a", "killer")]
    engine = FailingEngine(harness.store, DiedError(), {"a": 1, "killer": 9})
    for _ in range(2):
        with pytest.raises(DiedError):
            harness.runner(engine=engine).run(uris)
        for _ in range(2):
            assert sorted(ids_found(harness))
    assert deaths(harness, "killer")[0] == (True, False)
    assert deaths(harness, "killer")[-1][0]
    with pytest.raises(DiedError):
        harness.runner(engine=engine).run([uris[1]])
    ids_found(harness)
    assert deaths(harness, "killer")[-1] == (True, True)


@pytest.mark.parametrize("how", ["signal", "request"])
def test_a_run_that_was_asked_to_end_has_killed_no_one(how: str) -> None:
    """What a deployment kills because it did not end in time counts against no manifest, though it was alone."""
    harness = Harness()
    uri = harness.deliver("m1", GOOD)
    app = harness.app()

    def stop(step: CrashPoint, _manifest_id: str) -> None:
        if step == CrashPoint.ATTEMPTED:
            if how == "signal":
                app.heartbeat.note_stopping()
                app.heartbeat._write_heartbeat()
            else:
                app.runs.ask_to_stop(app.run_id)
            raise DiedError

    app.on_crash_point = stop
    app.heartbeat._write_heartbeat()
    with pytest.raises(DiedError):
        streaming.scheduler(app, harness.engine()).run([uri])
    harness.clock.advance(60)
    with events_logged("run.died") as events:
        ids_found(harness)
    assert [event["blamed"] for event in events] == [""]
    assert deaths(harness, "m1") == [(True, False)]


def test_records_of_open_manifests_are_read_once() -> None:
    """What recovery read is what the work on it is planned by."""
    harness = Harness()
    for number in range(4):
        with pytest.raises(DiedError):
            harness.runner(engine=FailingEngine(harness.store, DiedError())).run([harness.deliver(f"m{number}", GOOD)])
    recovery(harness).find()
    found = recovery(harness).find()
    store = FaultyStore(harness.store)
    runner = harness.runner(store=store)
    runner.halt()  # it plans the work, and begins none
    runner.begin_resuming(found)
    assert store.calls["read"] == 0
    runner.close()


def test_an_attempt_of_a_run_that_lives_is_no_death() -> None:
    """Recovery records nothing about what another driver is working on."""
    harness = Harness()
    other = harness.app()
    uri = harness.deliver("m1", GOOD)
    with other.heartbeat:
        with pytest.raises(DiedError):
            streaming.scheduler(other, FailingEngine(harness.store, DiedError(), {"m1": 1})).run([uri])
        assert ids_found(harness) == ["m1"]
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
    assert ids_found(harness) == ["m1", "m2"]
    assert deaths(harness, "m2") == [(True, True)]


def test_a_record_of_deaths_that_was_cut_short_shifts_no_blame() -> None:
    """What was in flight counts also if its death is on record: what is left to record alone is not to blame."""
    harness = Harness(stream={"manifests_in_flight": 2})
    for name in ("a", "b"):
        app = harness.app()
        app.run_id = "gone"
        runner, uri = streaming.scheduler(app, FailingEngine(harness.store, DiedError())), harness.deliver(name, GOOD)
        with pytest.raises(DiedError):
            runner.run([uri])
    store = FaultyStore(harness.store)
    store.unavailable_at(2, "create")
    with pytest.raises(StoreUnavailable):
        ids_found(harness, store)
    assert (deaths(harness, "a"), deaths(harness, "b")) == ([(True, False)], [(False, False)])
    ids_found(harness)
    assert (deaths(harness, "a"), deaths(harness, "b")) == ([(True, False)], [(True, False)])


def test_records_that_cannot_be_read_now_keep_no_stream_from_starting() -> None:
    """Trouble with the records of one manifest is left to the work on it, and its death to a later sweep."""
    harness = Harness()
    runner, uri = harness.runner(engine=FailingEngine(harness.store, DiedError())), harness.deliver("m1", GOOD)
    with pytest.raises(DiedError):
        runner.run([uri])
    store = FaultyStore(harness.store)
    store.unavailable_at(1, "read")
    assert ids_found(harness, store) == ["m1"]
    assert deaths(harness, "m1") == [(False, False)]
    assert ids_found(harness, store) == ["m1"]
    assert deaths(harness, "m1") == [(True, True)]


def test_a_death_makes_cautious_although_it_cannot_be_read_again() -> None:
    """It was put on record just now: that its manifest cannot be read at this moment takes nothing of it back."""
    harness = Harness()
    runner, uri = harness.runner(engine=FailingEngine(harness.store, DiedError())), harness.deliver("m1", GOOD)
    with pytest.raises(DiedError):
        runner.run([uri])
    store = FaultyStore(harness.store)
    found = recovery(harness, store)
    real, read = Recovery._opened, list[str]()

    def once(self: Recovery, manifest_id: str) -> Opened:
        read.append(manifest_id)
        return real(self, manifest_id) if len(read) == 1 else Opened(manifest_id)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Recovery, "_opened", once)
        [opened] = found.find()
    assert (len(read), opened.found, opened.has_deaths) == (2, None, True)
