"""A rebuild that died once it had decided: nothing is in the watched prefix, and only a job puts its files in place."""

import pytest

from compactor.control.plane import Check
from compactor.core.crash_points import CrashPoint
from tests.support.control_scene import Scene, kinds
from tests.support.fakes import FaultyStore
from tests.support.harness import GOOD, DiedError, Harness, dying_at
from tests.support.rebuilding import rebuild

HOUR_SECONDS = 3600.0
HANG_SECONDS = 600.0


def rebuild_dies(harness: Harness, step: CrashPoint) -> None:
    with pytest.raises(DiedError):
        rebuild(harness, "m1", force=True, on_crash_point=dying_at(step))


class Reads(FaultyStore):
    """Counts the requests for one object or one list."""

    requests = 0

    def read(self, uri: str, **options: str | None) -> bytes:
        self.requests += 1
        return super().read(uri, **options)

    def list(self, prefix: str, **options: str | None) -> object:  # type: ignore[override]
        self.requests += 1
        return super().list(prefix, **options)


def checked(harness: Harness, store: FaultyStore | None = None) -> Check:
    """A check of a job that runs on work only, and that has had no run yet."""
    scene = Scene(mode="on_work", hang_seconds=HANG_SECONDS)
    scene.clock = harness.clock
    return scene.plane(state=harness.app(store=store).state).check()


def begun(check: Check) -> list[str]:
    assert check.snapshot.begun is not None
    return list(check.snapshot.begun)


def test_a_job_is_started_for_it_and_then_for_nothing(harness: Harness) -> None:
    """At first its process may be at work and finish it; nothing else wakes a job that runs on work only."""
    rebuild_dies(harness, CrashPoint.DECIDED)
    soon = checked(harness)
    assert (kinds(soon), begun(soon)) == (["wait"], [])
    harness.clock.advance(HOUR_SECONDS)
    late = checked(harness)
    assert (kinds(late), begun(late)) == (["start"], ["m1"])
    harness.run_once()
    assert harness.ledger.is_done(harness.commit("m1").key, 2)
    after = checked(harness)
    assert (kinds(after), begun(after)) == (["wait"], [])


@pytest.mark.parametrize("step", [CrashPoint.DONE, CrashPoint.DECIDED])
def test_what_a_job_still_has_to_clear_up_counts(harness: Harness, step: CrashPoint) -> None:
    """Its date can be neither closed nor retired before."""
    rebuild_dies(harness, step)
    harness.clock.advance(HOUR_SECONDS)
    assert begun(checked(harness)) == ["m1"]
    harness.run_once()
    assert begun(checked(harness)) == []
    assert list(harness.ledger.open_ids()) == []


@pytest.mark.parametrize("step", [CrashPoint.ATTEMPTED, CrashPoint.OPENED])
def test_no_job_is_started_for_one_that_decided_nothing(harness: Harness, step: CrashPoint) -> None:
    """No job goes on with it: it would start, find nothing to do and end, for ever."""
    rebuild_dies(harness, step)
    harness.clock.advance(HOUR_SECONDS)
    found = checked(harness)
    assert (kinds(found), begun(found)) == (["wait"], [])


def test_an_old_mark_lends_its_age_to_no_rebuild_at_work(harness: Harness) -> None:
    """One died undecided long ago, and another has just decided and goes on."""
    rebuild_dies(harness, CrashPoint.OPENED)
    harness.clock.advance(HOUR_SECONDS)
    rebuild_dies(harness, CrashPoint.DECIDED)
    assert begun(checked(harness)) == []


def test_a_manifest_in_flight_is_counted_once(harness: Harness) -> None:
    """It is in the watched prefix and in the index of open ones."""
    uri = harness.deliver("m2", GOOD)
    with pytest.raises(DiedError):
        harness.runner(on_crash_point=dying_at(CrashPoint.DECIDED)).run([uri])
    harness.clock.advance(HOUR_SECONDS)
    found = checked(harness)
    assert list(harness.ledger.open_ids()) == ["m2"]
    assert found.snapshot.backlog is not None
    assert (found.snapshot.backlog.manifests, begun(found)) == (1, [])


def test_one_whose_object_was_removed_by_hand_counts(harness: Harness) -> None:
    """A job takes it from the ledger, even if it was begun and nothing else."""
    uri = harness.deliver("m2", GOOD)
    with pytest.raises(DiedError):
        harness.runner(on_crash_point=dying_at(CrashPoint.OPENED)).run([uri])
    harness.store.delete([uri])
    harness.clock.advance(HOUR_SECONDS)
    assert begun(checked(harness)) == ["m2"]
    harness.run_once()
    assert harness.ledger.is_done(harness.commit("m2").key)


def test_a_mark_that_is_damaged_counts_for_nothing(harness: Harness) -> None:
    """One that cannot be read keeps nothing else from being counted."""
    rebuild_dies(harness, CrashPoint.DECIDED)
    [mark] = harness.store.list(harness.layout.open_folder)
    harness.store.put(mark.uri, b"{")
    harness.clock.advance(HOUR_SECONDS)
    harness.deliver("m2", GOOD)
    found = checked(harness)
    assert (kinds(found), begun(found), found.snapshot.unknown) == (["start"], [], {})


def test_a_mark_that_cannot_be_read_now_hides_no_work(harness: Harness) -> None:
    """What waits in the watched prefix was listed, whatever becomes of the marks."""
    rebuild_dies(harness, CrashPoint.DECIDED)
    harness.clock.advance(HOUR_SECONDS)
    harness.deliver("m2", GOOD)
    store = FaultyStore(harness.store)
    store.deny(next(harness.store.list(harness.layout.open_folder)).uri)
    found = checked(harness, store)
    assert (kinds(found), found.snapshot.begun) == (["start"], None)


def test_the_marks_of_an_outage_are_not_read(harness: Harness) -> None:
    """Hundreds of manifests may be open; the control plane looks each minute, for all shards."""
    requests = []
    for number in range(40):
        if number in {0, 39}:
            store = Reads(harness.store)
            checked(harness, store)
            requests.append(store.requests)
        uri = harness.deliver(f"n{number}", GOOD)
        with pytest.raises(DiedError):
            harness.runner(on_crash_point=dying_at(CrashPoint.OPENED)).run([uri])
        harness.clock.advance(HOUR_SECONDS)
    assert requests[0] == requests[1]
