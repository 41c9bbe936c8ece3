"""Redriving: what was set aside is put back, every line once, whoever dies, comes late or redrives as well."""

import threading
from collections.abc import Sequence

import pytest

from compactor.core.crash_points import OnRedriveStep, RedriveStep
from compactor.ops.redrive.selection import Kind
from tests.support.harness import DAY, GOOD, DiedError, World
from tests.support.redriving import (
    CASES,
    LEASE_SECONDS,
    check,
    each_kind,
    exhaust,
    new_ids,
    new_world,
    plan,
    redrive,
    redriven_inputs,
    whys,
)


@pytest.fixture
def world() -> World:
    return new_world()


@each_kind
def test_put_back(world: World, kind: Kind) -> None:
    """What was set aside is put back as a manifest of its own, and then every line is there once."""
    source = CASES[kind](world)
    report = redrive(world, kind)
    assert (new_ids(report), report.refused) == ([f"{source}-r1"], [])
    world.run_once()
    check(world, kind)


@each_kind
@pytest.mark.parametrize("compacted_before", [False, True])
def test_twice_in_a_row(world: World, kind: Kind, compacted_before: bool) -> None:
    """What was redriven is not redriven again, whether the job came to it or not."""
    source = CASES[kind](world)
    redrive(world, kind)
    if compacted_before:
        world.run_once()
    again = redrive(world, kind)
    assert (again.redriven, again.refused, again.healed) == ([], [], [])
    named = redrive(world, kind, source)
    assert (named.redriven, [each.manifest_id for each in named.refused]) == ([], [source])
    assert "redriven before" in whys(named)[0]
    world.run_once()
    check(world, kind)


@each_kind
def test_dry_run(world: World, kind: Kind) -> None:
    """A dry run says what would be done, and claims and writes nothing."""
    source = CASES[kind](world)
    before = {info.uri: info.etag for info in world.store.list("/w/")}
    claims = dict(world.claims._claims)
    shown = redrive(world, kind, dry_run=True)
    assert [(each.source, each.manifest_id) for each in shown.redriven] == [(source, None)]
    assert {info.uri: info.etag for info in world.store.list("/w/")} == before
    assert world.claims._claims == claims
    done = redrive(world, kind)
    assert [(each.source, each.counts, each.files) for each in done.redriven] == [
        (each.source, each.counts, each.files) for each in shown.redriven
    ]


def pause(at: RedriveStep) -> tuple[threading.Event, threading.Event, OnRedriveStep]:
    """Events that tell of a redrive that came to a step, and let it go on; and what it is to call."""
    paused, overtaken = threading.Event(), threading.Event()

    def wait(step: RedriveStep, _manifest_id: str) -> None:
        if step == at and not paused.is_set():
            paused.set()
            assert overtaken.wait(30)

    return paused, overtaken, wait


STEPS: dict[Kind, Sequence[RedriveStep]] = {
    "manifests": (RedriveStep.CLAIMED, RedriveStep.RECORDED, RedriveStep.DELIVERED),
    "files": (RedriveStep.CLAIMED, RedriveStep.RECORDED, RedriveStep.DELIVERED),
    "rejects": (RedriveStep.LINES_WRITTEN, RedriveStep.RECORDED, RedriveStep.DELIVERED),
}
at_each_step = pytest.mark.parametrize(("kind", "step"), [(kind, step) for kind in STEPS for step in STEPS[kind]])


@at_each_step
@pytest.mark.parametrize("meanwhile", ["redrive", "redrive_and_run", "lease_ends_and_plan"])
def test_two_at_once(world: World, kind: Kind, step: RedriveStep, meanwhile: str) -> None:
    """Two redrives at once, or a planner beside one that is slow: every line once."""
    CASES[kind](world)
    paused, overtaken, wait = pause(step)
    reports = []
    thread = threading.Thread(target=lambda: reports.append(redrive(world, kind, on_step=wait)))
    thread.start()
    try:
        assert paused.wait(30)
        world.clock.advance(1)
        if meanwhile == "lease_ends_and_plan":
            world.clock.advance(LEASE_SECONDS + 1)
            plan(world)
        reports.append(redrive(world, kind))
        if meanwhile != "redrive":
            world.run_once()
    finally:
        overtaken.set()
        thread.join()
    if meanwhile != "lease_ends_and_plan":
        assert sum(len(report.redriven) for report in reports) == 1
    [source] = {each.source for report in reports for each in report.redriven} or {""}
    if kind == "rejects":  # the loser has left nothing behind
        named = {file.uri for file in redriven_inputs(world, source)}
        assert {info.uri for info in world.store.list("/w/state/redriven/")} == named
    world.run_once()
    kinds: set[Kind] = {"manifests", "files", kind}
    for again in kinds:
        redrive(world, again)
    world.clock.advance(LEASE_SECONDS + 1)
    plan(world)
    world.run_once()
    check(world, kind)


@at_each_step
@pytest.mark.parametrize("next_is", ["redrive", "plan", "plan_after_lease"])
def test_death(world: World, kind: Kind, step: RedriveStep, next_is: str) -> None:
    """A redrive that dies after any step: the next one, or a planner, puts all right, and every line is there once."""
    CASES[kind](world)

    def die(found: RedriveStep, _manifest_id: str) -> None:
        if found == step:
            raise DiedError

    with pytest.raises(DiedError):
        redrive(world, kind, on_step=die)
    if next_is != "redrive":
        world.clock.advance(LEASE_SECONDS + 1 if next_is == "plan_after_lease" else 0)
        plan(world)
        world.run_once()
    report = redrive(world, kind)
    if next_is == "redrive":
        assert len(report.redriven) + len(report.healed) == (step != RedriveStep.DELIVERED)
    world.run_once()
    redrive(world, kind)
    world.clock.advance(LEASE_SECONDS + 1)
    plan(world)
    world.run_once()
    check(world, kind)


def test_void_in_part(world: World) -> None:
    """Where a planner gave a redrive up for one of its files, the other ones can be redriven again."""
    for folder in "xy":
        world.file(f"{folder}/{DAY}.ndjson", GOOD)
    plan(world)
    exhaust(world)

    def die(found: RedriveStep, _manifest_id: str) -> None:
        if found == RedriveStep.RECORDED:
            raise DiedError

    with pytest.raises(DiedError):
        redrive(world, "manifests", on_step=die)
    world.clock.advance(LEASE_SECONDS + 1)
    assert len(world.app().planner.plan("/w/raw/x").manifests) == 1
    report = redrive(world, "manifests")
    assert [(str(each.manifest_id)[-3:], each.files) for each in report.redriven] == [("-r2", 1)]
    assert [each.uri for each in report.refused] == [f"/w/raw/x/{DAY}.ndjson"]
    world.run_once()
    world.check_exact()


@each_kind
def test_healing_writes_the_same_bytes(world: World, kind: Kind) -> None:
    """The manifest of a redrive on record is written byte for byte, by whoever finds that it is missing."""
    source = CASES[kind](world)
    world.clock.advance(0.123456)
    redrive(world, kind)
    uri = world.layout.manifest(f"{source}-r1")
    written = world.store.read(uri)
    world.store.delete([uri])
    world.clock.advance(60)
    assert redrive(world, kind, dry_run=True).healed == [f"{source}-r1"]
    assert world.store.stat(uri) is None
    assert redrive(world, kind).healed == [f"{source}-r1"]
    assert world.store.read(uri) == written
    world.run_once()
    check(world, kind)
