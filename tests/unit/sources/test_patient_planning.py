"""Planning in one go: what is waited for, how long, and what is left after all."""

import gzip
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest

from compactor.adapters.local.sqlite.seen_files import LocalSeenFiles
from compactor.adapters.local.store import LocalStore
from compactor.core.crash_points import CrashPoint, PlanCrashPoint
from compactor.core.documents.records import FileStatus
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
        self.meanwhile: list[partial[object]] = []

    def sleep(self, seconds: float) -> None:
        self.seconds.append(seconds)
        self.harness.clock.advance(seconds)
        for happen in self.meanwhile:
            happen()

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


LOG = f"{DAY}-2.ndjson"


def ids(numbers: range) -> bytes:
    return b"".join(b'{"id": "%d"}\n' % number for number in numbers)


def rows(harness: Harness) -> list[str]:
    outputs = harness.store.list("/w/output/")
    return sorted(row["id"] for info in outputs for row in harness.table(info.uri))


def test_the_lines_of_a_file_that_is_written_all_the_time(harness: Harness, waits: Waits) -> None:
    """Each call takes those that were there when it began, once; the last lines, when no more are written."""
    waits.plan()
    harness.run_once()
    for call in range(1, 4):
        upto = 10 * call
        harness.file(LOG, ids(range(10, 10 + upto)) + b'{"id": "to')
        waits.meanwhile = [partial(harness.file, LOG, ids(range(10, 10 + upto + 5)))]
        plan = waits.plan()
        assert (files_of(harness, plan), plan.skipped) == ([f"/w/raw/{LOG}"], {})
        assert plan.unfinished == [f"/w/raw/{LOG}"]
        harness.run_once()
        assert rows(harness) == sorted(["1", *map(str, range(10, 10 + upto))])
        verified = harness.verification()
        assert verified.discrepancies == []
    harness.clock.advance(60)
    assert waits.plan().unfinished == []
    harness.run_once()
    assert rows(harness) == sorted(["1", *map(str, range(10, 45))])
    harness.check_exact()


HELD = ids(range(10, 20))


@pytest.mark.parametrize(
    ("first", "then"),
    [
        pytest.param(HELD, HELD[::-1] + HELD, id="rewritten"),
        pytest.param(HELD, HELD[:-20], id="truncated"),
        pytest.param(HELD[:5], HELD, id="no line yet"),
        pytest.param(gzip.compress(HELD), gzip.compress(HELD) + gzip.compress(HELD), id="compressed"),
        pytest.param(b'[\n{"id": 1},\n', b'[\n{"id": 1},\n{"id": 2}\n]\n', id="a document"),
        pytest.param(HELD + bytes(20) + HELD, HELD + bytes(20) + HELD * 2, id="written in several places"),
    ],
)
def test_what_is_not_just_appended_to_waits(harness: Harness, waits: Waits, first: bytes, then: bytes) -> None:
    """It is named, and left to a call that finds it as it was some seconds before."""
    harness.file(LOG, first)
    waits.meanwhile = [partial(harness.file, LOG, then)]
    plan = waits.plan()
    assert (files_of(harness, plan), plan.skipped) == ([f"/w/raw/{DAY}-1.ndjson"], {"unsettled": 1})
    assert [each.reason for each in plan.left_out] == ["unsettled"]
    harness.clock.advance(60)
    assert files_of(harness, waits.plan()) == [f"/w/raw/{LOG}"]


@pytest.mark.parametrize(
    ("name", "then", "reason"),
    [
        (f"{LOG}.part", HELD + ids(range(20, 30)), "unsettled"),
        (LOG, ids(range(30, 60)), "replaced"),
    ],
)
def test_a_file_that_is_written_and_does_not_go_on(
    harness: Harness, waits: Waits, name: str, then: bytes, reason: str
) -> None:
    """A download gets another name when it is complete; a log that began anew is named as what it is."""
    if reason == "replaced":
        harness.file(name, HELD)
        waits.plan()
        harness.run_once()
    harness.file(name, then)
    waits.meanwhile = [partial(harness.file, name, then + ids(range(70, 80)))]
    assert [each.reason for each in waits.plan().left_out] == [reason]


def test_one_planner_of_growing_files_at_a_time(harness: Harness, waits: Waits, tmp_path: Path) -> None:
    """Two would take lines that are not the same, and begin at the same byte. The other one takes all other files."""
    one, other = (LocalSeenFiles(LocalStore(), str(tmp_path / "state" / "seen.sqlite")) for _ in range(2))
    with one.alone() as first, other.alone() as second:
        assert (first, second) == (True, False)
    with other.alone() as later:
        assert later
        assert list((tmp_path / "state").iterdir()) == []
    harness.file(LOG, HELD)
    waits.meanwhile = [partial(harness.file, LOG, HELD + ROW)]
    planner = waits.planner()
    beside = replace(planner, planner=replace(planner.planner, seen=NeverAlone(harness.store, "", lambda _: True)))
    plan = beside.plan(beside.scan())
    assert (files_of(harness, plan), plan.skipped) == ([f"/w/raw/{DAY}-1.ndjson"], {"unsettled": 1})


class NeverAlone(LocalSeenFiles):
    """Of a planner beside another one."""

    def alone(self):
        return nullcontext(False)


def test_lines_that_change_behind_the_plan(harness: Harness, waits: Waits) -> None:
    """They are not those of the manifest, so its file counts as changed, and the next call takes what is there."""
    harness.file(LOG, HELD)
    waits.meanwhile = [partial(harness.file, LOG, HELD + ROW)]
    assert waits.plan().unfinished == [f"/w/raw/{LOG}"]
    harness.file(LOG, ids(range(30, 50)))
    harness.run_once()
    [report] = [
        each for key in harness.ledger.manifests() for each in harness.ledger.outcome(key).files if LOG in each.uri
    ]
    assert report.status is FileStatus.CHANGED
    assert rows(harness) == ["1"]


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
