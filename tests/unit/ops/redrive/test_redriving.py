"""Redriving: every line comes back once, whatever dies, is late, or redrives at the same time."""

import threading
from collections.abc import Sequence

import pytest

from compactor.core.crash_points import OnCrashPoint, RedriveCrashPoint
from compactor.ledger.accounts.account import Kind
from compactor.wiring import finding
from tests.support.harness import DAY, GOOD, DiedError, Harness
from tests.support.redriving import (
    CASES,
    LEASE_SECONDS,
    check,
    each_kind,
    exhaust,
    new_harness,
    new_ids,
    plan,
    redrive,
    redriven_inputs,
    whys,
)
from tests.support.sampling import few_rows


@pytest.fixture
def harness() -> Harness:
    return new_harness()


@each_kind
def test_redrive(harness: Harness, kind: Kind) -> None:
    """A redrive is a manifest of its own; after it, every line is there once."""
    source = CASES[kind](harness)
    report = redrive(harness, kind)
    assert (new_ids(report), report.refused) == ([f"{source}-r1"], ())
    harness.run_once()
    check(harness, kind)


@each_kind
@pytest.mark.parametrize("compacted_before", [False, True])
def test_twice_in_a_row(harness: Harness, kind: Kind, compacted_before: bool) -> None:
    """What was redriven is not redriven again, whether or not the job has compacted it."""
    source = CASES[kind](harness)
    redrive(harness, kind)
    if compacted_before:
        harness.run_once()
    again = redrive(harness, kind)
    assert (again.redriven, again.refused, again.healed) == ((), (), ())
    named = redrive(harness, kind, source)
    assert (named.redriven, [each.manifest_id for each in named.refused]) == ((), [source])
    assert "redriven before" in whys(named)[0]
    harness.run_once()
    check(harness, kind)


@each_kind
def test_dry_run(harness: Harness, kind: Kind) -> None:
    """A dry run says what would be done, and claims and writes nothing."""
    source = CASES[kind](harness)
    before = {info.uri: info.etag for info in harness.store.list("/w/")}
    claims = dict(harness.claims._claims)
    shown = redrive(harness, kind, dry_run=True)
    assert [(each.source, each.manifest_id) for each in shown.redriven] == [(source, None)]
    assert {info.uri: info.etag for info in harness.store.list("/w/")} == before
    assert harness.claims._claims == claims
    done = redrive(harness, kind)
    assert [(each.source, each.counts, each.files) for each in done.redriven] == [
        (each.source, each.counts, each.files) for each in shown.redriven
    ]


def pause(at: RedriveCrashPoint) -> tuple[threading.Event, threading.Event, OnCrashPoint]:
    """Pauses a redrive at a point: the events `paused` and `overtaken`, and the callback."""
    paused, overtaken = threading.Event(), threading.Event()

    def wait(point: RedriveCrashPoint, _manifest_id: str) -> None:
        if point == at and not paused.is_set():
            paused.set()
            assert overtaken.wait(30)

    return paused, overtaken, wait


POINTS: dict[Kind, Sequence[RedriveCrashPoint]] = {
    "manifests": (RedriveCrashPoint.CLAIMED, RedriveCrashPoint.RECORDED, RedriveCrashPoint.DELIVERED),
    "files": (RedriveCrashPoint.CLAIMED, RedriveCrashPoint.RECORDED, RedriveCrashPoint.DELIVERED),
    "rejects": (RedriveCrashPoint.LINES_WRITTEN, RedriveCrashPoint.RECORDED, RedriveCrashPoint.DELIVERED),
}
AT_POINTS = [(kind, point) for kind in POINTS for point in POINTS[kind]]


@pytest.mark.parametrize(
    ("kind", "point", "meanwhile"),
    few_rows(
        ((*each, what) for each in AT_POINTS for what in ("redrive", "redrive_and_run", "lease_ends_and_plan")), 11
    ),
)
def test_two_at_once(harness: Harness, kind: Kind, point: RedriveCrashPoint, meanwhile: str) -> None:
    """Two redrives at once, or a planner beside one that is slow: every line once."""
    CASES[kind](harness)
    paused, overtaken, wait = pause(point)
    reports = []
    thread = threading.Thread(target=lambda: reports.append(redrive(harness, kind, on_crash_point=wait)))
    thread.start()
    try:
        assert paused.wait(30)
        harness.clock.advance(1)
        if meanwhile == "lease_ends_and_plan":
            harness.clock.advance(LEASE_SECONDS + 1)
            plan(harness)
        reports.append(redrive(harness, kind))
        if meanwhile != "redrive":
            harness.run_once()
    finally:
        overtaken.set()
        thread.join()
    if meanwhile != "lease_ends_and_plan":
        assert sum(len(report.redriven) for report in reports) == 1
    [source] = {each.source for report in reports for each in report.redriven} or {""}
    if kind == "rejects":  # the loser has left nothing behind
        named = {file.uri for file in redriven_inputs(harness, source)}
        assert {info.uri for info in harness.store.list("/w/state/redriven/")} == named
    harness.run_once()
    kinds: set[Kind] = {"manifests", "files", kind}
    for again in kinds:
        redrive(harness, again)
    harness.clock.advance(LEASE_SECONDS + 1)
    plan(harness)
    harness.run_once()
    check(harness, kind)


@pytest.mark.parametrize(
    ("kind", "point", "next_is"),
    few_rows(((*each, what) for each in AT_POINTS for what in ("redrive", "plan", "plan_after_lease")), 11),
)
def test_death(harness: Harness, kind: Kind, point: RedriveCrashPoint, next_is: str) -> None:
    """After a redrive that dies at any point, the next one or a planner completes it: every line is there once."""
    CASES[kind](harness)

    def die(found: RedriveCrashPoint, _manifest_id: str) -> None:
        if found == point:
            raise DiedError

    with pytest.raises(DiedError):
        redrive(harness, kind, on_crash_point=die)
    if next_is != "redrive":
        harness.clock.advance(LEASE_SECONDS + 1 if next_is == "plan_after_lease" else 0)
        plan(harness)
        harness.run_once()
    report = redrive(harness, kind)
    if next_is == "redrive":
        assert len(report.redriven) + len(report.healed) == (point != RedriveCrashPoint.DELIVERED)
    harness.run_once()
    redrive(harness, kind)
    harness.clock.advance(LEASE_SECONDS + 1)
    plan(harness)
    harness.run_once()
    check(harness, kind)


def test_revoked_in_part(harness: Harness) -> None:
    """If a planner revokes a redrive for one of its files, the other files can be redriven again."""
    for folder in "xy":
        harness.file(f"{folder}/{DAY}.ndjson", GOOD)
    plan(harness)
    exhaust(harness)

    def die(found: RedriveCrashPoint, _manifest_id: str) -> None:
        if found == RedriveCrashPoint.RECORDED:
            raise DiedError

    with pytest.raises(DiedError):
        redrive(harness, "manifests", on_crash_point=die)
    harness.clock.advance(LEASE_SECONDS + 1)
    assert len(finding.plan(harness.app(), "/w/raw/x").manifests) == 1
    report = redrive(harness, "manifests")
    assert [(str(each.manifest_id)[-3:], each.files) for each in report.redriven] == [("-r2", 1)]
    assert [each.uri for each in report.refused] == [f"/w/raw/x/{DAY}.ndjson"]
    harness.run_once()
    harness.check_exact()


@each_kind
def test_healing_writes_the_same_bytes(harness: Harness, kind: Kind) -> None:
    """A later redrive writes the missing manifest of an earlier one, byte for byte."""
    source = CASES[kind](harness)
    harness.clock.advance(0.123456)
    redrive(harness, kind)
    uri = harness.layout.manifest(f"{source}-r1")
    written = harness.store.read(uri)
    harness.store.delete([uri])
    harness.clock.advance(60)
    assert redrive(harness, kind, dry_run=True).healed == (f"{source}-r1",)
    assert harness.store.stat(uri) is None
    assert redrive(harness, kind).healed == (f"{source}-r1",)
    assert harness.store.read(uri) == written
    harness.run_once()
    check(harness, kind)
