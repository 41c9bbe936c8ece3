"""Poison, trouble, late builders and deaths: what was announced is never lost or doubled."""

import pytest

from compactor.core.crash_points import OnCrashPoint, PlanCrashPoint, ignore_crash_point
from compactor.core.errors import AccessError
from compactor.core.layout import base_name
from compactor.wiring import planning
from tests.support.building import MIB, build, new_harness, parts_of, pending, places, put, seal
from tests.support.fakes import FaultyStore
from tests.support.harness import DiedError, Harness
from tests.support.interleaving import interleave
from tests.support.logged import events_logged


@pytest.fixture
def harness() -> Harness:
    return new_harness()


def test_poison_fails_alone(harness: Harness) -> None:
    """A body that cannot be read comes back with its reason; its neighbours are taken in."""
    report = build(harness, put("a.ndjson"), "no json", put("b.ndjson"), '{"Records": [1]}')
    assert set(report.failed) == {"b", "d"}
    assert "expected one JSON object" in report.failed["b"]
    assert [each.files for each in report.plans[""].parts] == [2]


def test_a_file_that_another_builder_holds_comes_again(harness: Harness) -> None:
    """While another builder may still write, the message fails; later it succeeds, or the file is taken over."""

    def die(step: PlanCrashPoint, _manifest_id: str) -> None:
        if step is PlanCrashPoint.CLAIMED:
            raise DiedError

    with pytest.raises(DiedError):
        build(harness, put("a.ndjson"), on_crash_point=die)
    with events_logged("files.held") as events:
        report = build(harness, put("a.ndjson"), put("b.ndjson"), put("c.ndjson"))
    assert set(report.failed) == {"a"}
    assert "claimed by another planner until 12:05:00 UTC" in report.failed["a"]
    assert [(event["files"], event["first"]) for event in events] == [(1, "s3://lake/raw/a.ndjson#e1")]
    harness.clock.advance(301)
    assert build(harness, put("a.ndjson")).failed == {}
    seal(harness, after_seconds=60)
    assert places(harness) == {f"s3://lake/raw/{name}.ndjson#e1": 1 for name in "abc"}


def test_trouble_with_the_store_fails_what_it_concerns(harness: Harness) -> None:
    """If a manifest cannot be written, its messages come again; if writing is denied, no message is acknowledged."""
    store = FaultyStore(harness.store)
    store.unavailable_at(1, "create")
    builder = planning.builder(parts_of(harness, store), groups_at_once=1)
    report = builder.build({"a": put("2026-01-05-a.ndjson"), "b": put("2026-01-06-b.ndjson")})
    assert set(report.failed) == {"a"}
    assert "passing trouble" in report.failed["a"]

    class Closed(FaultyStore):
        def create(self, uri: str, _data: bytes) -> bool:
            raise AccessError(f"{uri}: access denied")

    with pytest.raises(AccessError):
        planning.builder(parts_of(harness, Closed(harness.store))).build({"c": put("c.ndjson")})


@pytest.mark.parametrize("size", [MIB, 5 * MIB], ids=["part", "manifest"])
def test_a_late_builder_promises_nothing(harness: Harness, size: int) -> None:
    """A builder that is held up beyond its lease, and lost one of its files, gives all of its messages back."""
    other = []

    def be_late(step: PlanCrashPoint, _manifest_id: str) -> None:
        if step is PlanCrashPoint.CLAIMED and not other:
            harness.clock.advance(301)
            other.append(build(harness, put("a.ndjson", size)))

    late = build(harness, put("a.ndjson", size), put("b.ndjson", size), on_crash_point=be_late)
    assert set(late.failed) == {"a", "b"}
    assert "took its files over before it was written" in late.failed["a"]
    again = build(harness, put("a.ndjson", size), put("b.ndjson", size))
    seal(harness, after_seconds=60)
    assert (again.plans[""].planned_before, again.failed) == (1, {})
    assert places(harness) == {"s3://lake/raw/a.ndjson#e1": 1, "s3://lake/raw/b.ndjson#e1": 1}


def test_what_is_written_is_safe_only_once_it_is_bound(harness: Harness) -> None:
    """Who finds a part that its dead builder did not bind binds it, so that it cannot be revoked after that."""

    def die(step: PlanCrashPoint, _manifest_id: str) -> None:
        if step is PlanCrashPoint.PENDING:
            raise DiedError

    with pytest.raises(DiedError):
        build(harness, put("a.ndjson"), on_crash_point=die)
    [part] = pending(harness)
    part_id = base_name(part).removesuffix(".json")
    assert harness.ledger.accepted(part_id) is None
    harness.clock.advance(301)
    assert build(harness, put("a.ndjson")).plans[""].planned_before == 1
    record = harness.ledger.accepted(part_id)
    assert record is not None
    assert record.kind == "part"


@pytest.mark.parametrize("step", PlanCrashPoint)
def test_death_and_delay_at_each_step(step: PlanCrashPoint) -> None:
    """A builder or sealer that dies or is held up leaves each file to exactly one manifest."""
    events = [put(f"{number}.ndjson", 6 * MIB) for number in range(3)]

    def once(made: Harness, on_crash_point: OnCrashPoint = ignore_crash_point) -> None:
        made.clock.advance(301)
        build(made, *events, on_crash_point=on_crash_point)
        seal(made, on_crash_point=on_crash_point, after_seconds=60)

    def check(made: Harness) -> None:
        assert build(made, *events).failed == {}
        assert places(made) == {f"s3://lake/raw/{number}.ndjson#e1": 1 for number in range(3)}
        assert pending(made) == []

    interleave(step, new_harness, once, once, check)
