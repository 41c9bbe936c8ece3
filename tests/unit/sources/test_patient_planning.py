"""Planning in one go: what is waited for, how long, and what is left after all."""

import threading
from concurrent.futures import ThreadPoolExecutor
from functools import partial

import pytest

from compactor.core.crash_points import CrashPoint, PlanCrashPoint
from compactor.sources.folders.waiting import SETTLE_SECONDS, SETTLING, PatientPlanner
from compactor.sources.plan import Plan
from compactor.wiring import finding
from tests.support.folders import folder_planner
from tests.support.harness import DAY, DiedError, Harness, written

ROW = b'{"id": "1"}\n'
LEASE_SECONDS = 20.0


class Waits:
    """Advances the clock of a harness, and lets something happen meanwhile."""

    def __init__(self, harness: Harness) -> None:
        self.harness = harness
        self.seconds: list[float] = []
        self.told: list[str] = []

    def sleep(self, seconds: float) -> None:
        self.seconds.append(seconds)
        self.harness.clock.advance(seconds)

    def planner(self, place: str = "/w/raw") -> PatientPlanner:
        app = self.harness.app()
        on_wait = lambda what, _seconds: self.told.append(what)  # noqa: E731
        return PatientPlanner(folder_planner(self.harness, place), app.clock, self.sleep, on_wait)

    def plan(self) -> Plan:
        planner = self.planner()
        return planner.plan(planner.scan())


@pytest.fixture
def harness() -> Harness:
    harness = Harness(lease_seconds=LEASE_SECONDS)
    harness.file(f"{DAY}-1.ndjson", ROW)
    harness.clock.advance(60)
    return harness


@pytest.fixture
def waits(harness: Harness) -> Waits:
    return Waits(harness)


def files_of(harness: Harness, plan: Plan) -> list[str]:
    return sorted(file.uri for manifest in written(harness, plan.manifests) for file in manifest.files)


def test_settled_files_are_planned_at_once(harness: Harness, waits: Waits) -> None:
    """Planning does not wait without a reason."""
    assert files_of(harness, waits.plan()) == [f"/w/raw/{DAY}-1.ndjson"]
    assert waits.seconds == []


def test_fresh_files_are_given_a_moment(harness: Harness, waits: Waits) -> None:
    """What was written just before the call is part of it, in the same manifest as the rest."""
    harness.file(f"{DAY}-2.ndjson", ROW)
    plan = waits.plan()
    assert [each.files for each in plan.manifests] == [2]
    assert waits.seconds == [SETTLE_SECONDS]
    assert waits.told == [SETTLING]


def test_what_is_still_written_is_left_for_the_next_call(harness: Harness, waits: Waits) -> None:
    """A file that grows on is counted, not taken."""
    harness.file(f"{DAY}-2.ndjson", ROW)
    sleep = waits.sleep

    def write_on(seconds: float) -> None:
        sleep(seconds)
        harness.file(f"{DAY}-2.ndjson", ROW + ROW)

    waits.sleep = write_on  # type: ignore[method-assign]
    plan = waits.plan()
    assert files_of(harness, plan) == [f"/w/raw/{DAY}-1.ndjson"]
    assert plan.skipped == {"unsettled": 1}


def test_files_of_a_planner_that_died_are_taken_over(harness: Harness, waits: Waits) -> None:
    """A planner that claimed and wrote nothing is waited for until its lease is over, and no longer."""

    def die(step: CrashPoint, _manifest_id: str) -> None:
        if step is PlanCrashPoint.CLAIMED:
            raise DiedError

    with pytest.raises(DiedError):
        finding.plan(harness.app(on_crash_point=die), "/w/raw")
    plan = waits.plan()
    assert files_of(harness, plan) == [f"/w/raw/{DAY}-1.ndjson"]
    assert (plan.held, plan.planned_before) == (0, 0)
    assert LEASE_SECONDS <= sum(waits.seconds) <= LEASE_SECONDS + 1
    assert set(waits.told) == {"another planner"}


def test_files_of_a_living_planner_are_left_to_it(harness: Harness, waits: Waits) -> None:
    """As soon as the other one has written its manifest, its files are planned, and none of them twice."""
    claimed, go_on = threading.Event(), threading.Event()

    def hold(step: CrashPoint, _manifest_id: str) -> None:
        if step is PlanCrashPoint.CLAIMED:
            claimed.set()
            go_on.wait(60)

    with ThreadPoolExecutor(1) as thread:
        other = thread.submit(partial(finding.plan, harness.app(on_crash_point=hold)), "/w/raw")
        claimed.wait(60)

        def let_go(seconds: float) -> None:
            waits.seconds.append(seconds)
            go_on.set()
            other.result()

        waits.sleep = let_go  # type: ignore[method-assign]
        plan = waits.plan()
    assert other.result().files == 1
    assert (plan.manifests, plan.planned_before, plan.held) == ([], 1, 0)
    assert len(waits.seconds) == 1
    assert waits.seconds[0] < LEASE_SECONDS


def test_a_survey_tells_empty_from_full(harness: Harness, waits: Waits) -> None:
    """Markers and empty objects are no data."""
    assert waits.planner().scan().has_data
    harness.store.put("/w/other/_SUCCESS", b"x")
    harness.store.put("/w/other/empty.ndjson", b"")
    assert not waits.planner("/w/other").scan().has_data
    assert not waits.planner("/w/none").scan().has_data


def test_objects_on_s3_need_no_moment(harness: Harness, waits: Waits) -> None:
    """They appear whole."""
    harness.store.put("s3://lake/raw/a.ndjson", ROW)
    assert not waits.planner("s3://lake/raw").scan().is_fresh
