"""A rebuild that died once it had decided: nothing is in the watched prefix, and only a job puts its files in place."""

import pytest

from compactor.control.plane import Check
from compactor.core.crash_points import CrashPoint
from tests.support.control_scene import Scene, kinds
from tests.support.harness import GOOD, DiedError, Harness, dying_at
from tests.support.rebuilding import rebuild

HOUR = 3600.0


@pytest.fixture
def harness() -> Harness:
    """One manifest that is done."""
    harness = Harness()
    harness.deliver("m1", GOOD)
    harness.run_once()
    return harness


def rebuild_dies(harness: Harness, step: CrashPoint) -> None:
    with pytest.raises(DiedError):
        rebuild(harness, "m1", force=True, on_crash_point=dying_at(step))


def checked(harness: Harness) -> Check:
    """A check of a job that runs on work only."""
    scene = Scene(mode="on_work")
    scene.clock = harness.clock
    return scene.plane(state=harness.app().state).check()


def waiting(check: Check) -> int:
    assert check.snapshot.backlog is not None
    return check.snapshot.backlog.manifests


def test_a_job_is_started_for_it_and_then_for_nothing(harness: Harness) -> None:
    """At first its process may be at work and finish it; nothing else wakes a job that runs on work only."""
    rebuild_dies(harness, CrashPoint.DECIDED)
    soon = checked(harness)
    assert (kinds(soon), waiting(soon)) == (["wait"], 0)
    harness.clock.advance(HOUR)
    late = checked(harness)
    assert kinds(late) == ["start"]
    harness.run_once()
    assert harness.ledger.is_done(harness.commit("m1").key, 2)
    after = checked(harness)
    assert (kinds(after), waiting(after)) == (["wait"], 0)


@pytest.mark.parametrize("step", [CrashPoint.ATTEMPTED, CrashPoint.OPENED])
def test_no_job_is_started_for_one_that_decided_nothing(harness: Harness, step: CrashPoint) -> None:
    """No job goes on with it: it would start, find nothing to do and end, for ever."""
    rebuild_dies(harness, step)
    harness.clock.advance(HOUR)
    assert (kinds(checked(harness)), waiting(checked(harness))) == (["wait"], 0)


def test_a_manifest_in_flight_is_counted_once(harness: Harness) -> None:
    """It is in the watched prefix and in the index of open ones."""
    uri = harness.deliver("m2", GOOD)
    with pytest.raises(DiedError):
        harness.runner(on_crash_point=dying_at(CrashPoint.DECIDED)).run([uri])
    harness.clock.advance(HOUR)
    assert list(harness.ledger.open_ids()) == ["m2"]
    assert waiting(checked(harness)) == 1


def test_a_mark_that_is_damaged_is_not_counted(harness: Harness) -> None:
    """One that cannot be read keeps nothing else from being counted."""
    rebuild_dies(harness, CrashPoint.DECIDED)
    [mark] = harness.store.list(harness.layout.open_folder)
    harness.store.put(mark.uri, b"{")
    harness.clock.advance(HOUR)
    harness.deliver("m2", GOOD)
    assert waiting(checked(harness)) == 1
