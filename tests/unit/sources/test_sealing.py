"""Pending parts are sealed into manifests, by size or by age."""

import random
from dataclasses import replace
from typing import Any

import pytest

from compactor.core.crash_points import PlanCrashPoint
from compactor.core.errors import AccessError
from compactor.core.layout import base_name
from compactor.sources.events.sealer import SEAL_INTERVAL_SECONDS, SealedParts
from compactor.wiring import planning
from tests.support.building import MIB, build, in_effect, new_harness, parts_of, pending, places, put, seal
from tests.support.fakes import FaultyStore
from tests.support.harness import DiedError, Harness, written
from tests.support.logged import events_logged


@pytest.fixture
def harness() -> Harness:
    return new_harness()


def test_parts_are_sealed_by_size(harness: Harness) -> None:
    """Parts that together are enough do not wait for their age."""
    for number in range(5):
        build(harness, put(f"{number}.ndjson", 3 * MIB))
    report = seal(harness)
    assert [each.files for each in report.manifests] == [3]
    assert report.waiting_parts == 2


def test_a_revoked_part_is_deleted(harness: Harness) -> None:
    """A builder that lost its claims and dies with its part just written leaves nothing that is sealed."""

    def be_late_and_die(step: PlanCrashPoint, _manifest_id: str) -> None:
        if step is PlanCrashPoint.CLAIMED:
            harness.clock.advance(301)
            build(harness, put("a.ndjson"))
        if step is PlanCrashPoint.PENDING:
            raise DiedError

    with pytest.raises(DiedError):
        build(harness, put("a.ndjson"), on_crash_point=be_late_and_die)
    assert len(pending(harness)) == 2
    report = seal(harness, after_seconds=60)
    assert (report.discarded, report.sealed_parts, pending(harness)) == (1, 1, [])
    assert places(harness) == {"s3://lake/raw/a.ndjson#e1": 1}


def test_a_late_sealer_leaves_its_parts_and_no_manifest(harness: Harness) -> None:
    """A sealer that is held up beyond its lease, and lost one of its parts, leaves all of them, and no dead letter."""
    for name in "ab":
        build(harness, put(f"{name}.ndjson"))
    harness.clock.advance(60)
    held_up = []

    def be_late(step: PlanCrashPoint, _manifest_id: str) -> None:
        if step is PlanCrashPoint.CLAIMED and not held_up:
            harness.clock.advance(301)
            kept = pending(harness)[1]
            data = harness.store.read(kept)
            harness.store.delete([kept])  # so that the other one sees only the first
            held_up.append(seal(harness))
            harness.store.put(kept, data)

    late = seal(harness, on_crash_point=be_late)
    assert (late.manifests, late.waiting_parts, len(pending(harness))) == ([], 2, 1)
    seal(harness, after_seconds=301)
    assert places(harness) == {"s3://lake/raw/a.ndjson#e1": 1, "s3://lake/raw/b.ndjson#e1": 1}
    assert len(harness.waiting()) == len(in_effect(harness))
    report = harness.run_once()
    assert (report.committed, report.dead_lettered) == (2, 0)


def test_a_part_that_cannot_be_read_stays(harness: Harness) -> None:
    """A damaged part stops no other one, is named, and stays for a person to look at."""
    build(harness, put("a.ndjson"))
    damaged = harness.layout.pending_part("2026-01-02-damaged")
    harness.store.put(damaged, b"{")
    renamed = harness.layout.pending_part("2026-01-02-renamed")
    harness.store.put(renamed, harness.store.read(pending(harness)[0]))
    with events_logged("part.unreadable") as events:
        report = seal(harness, after_seconds=60)
    assert [event["uri"] for event in events] == [damaged, renamed]
    assert set(report.unreadable) == {damaged, renamed}
    assert "expected a pending part" in report.unreadable[damaged]
    assert (len(report.manifests), pending(harness)) == (1, sorted([damaged, renamed]))


def test_a_part_with_a_damaged_record_holds_up_no_other(harness: Harness) -> None:
    """It is named at each call, and stays until a person has fixed the record; the parts beside it are sealed."""
    for name in "abc":
        build(harness, put(f"{name}.ndjson"))
    part = pending(harness)[1]
    record = harness.layout.accepted(base_name(part).removesuffix(".json"))
    kept = harness.store.read(record)
    harness.store.put(record, b"{ damaged")
    for sealed in (1, 0):
        report = seal(harness, after_seconds=60)
        assert (len(report.manifests), report.waiting_parts) == (sealed, 1)
        assert record in report.unreadable[part]
    assert pending(harness) == [part]
    harness.store.put(record, kept)
    assert len(seal(harness, after_seconds=60).manifests) == 1
    assert (set(places(harness).values()), len(places(harness)), pending(harness)) == ({1}, 3, [])


def test_a_young_part_with_a_damaged_record_is_left_out(harness: Harness) -> None:
    """Of a manifest that is large enough now."""
    for name in "abcde":
        build(harness, put(f"{name}.ndjson", 3 * MIB))
    part = pending(harness)[1]  # of parts that are equally old, the first three are enough
    harness.store.put(harness.layout.accepted(base_name(part).removesuffix(".json")), b"{ damaged")
    report = seal(harness)
    assert ([each.files for each in report.manifests], report.waiting_parts) == ([2], 3)
    assert set(report.unreadable) == {part}


def test_a_damaged_record_makes_no_other_part_due(harness: Harness) -> None:
    """The part waits for ever, so that its date would have no packing any more."""
    build(harness, put("a.ndjson"))
    [part] = pending(harness)
    harness.store.put(harness.layout.accepted(base_name(part).removesuffix(".json")), b"{ damaged")
    harness.clock.advance(600)
    build(harness, put("b.ndjson"))
    report = seal(harness)
    assert (report.manifests, report.waiting_parts, set(report.unreadable)) == ([], 2, {part})
    assert len(seal(harness, after_seconds=60).manifests) == 1


def test_a_part_that_the_store_denies_holds_up_no_other(harness: Harness) -> None:
    """As one under a foreign key. If the store denies every part, the call fails, and its alarm tells."""
    for day in ("2026-01-05", "2026-01-06"):
        build(harness, put(f"{day}-a.ndjson"))
    harness.clock.advance(60)
    denied, other = pending(harness)
    store = FaultyStore(harness.store)
    store.deny(denied)
    report = planning.sealer(parts_of(harness, store)).seal()
    assert (len(report.manifests), set(report.unreadable)) == (1, {denied})
    assert pending(harness) == [denied]
    with pytest.raises(AccessError):
        planning.sealer(parts_of(harness, store)).seal()
    assert other not in pending(harness)
    seal(harness)
    assert (set(places(harness).values()), len(places(harness)), pending(harness)) == ({1}, 2, [])


def test_trouble_with_one_day_seals_the_others(harness: Harness) -> None:
    """What cannot be sealed now waits for the next call; the parts of other days do not."""
    for day in ("2026-01-05", "2026-01-06"):
        build(harness, put(f"{day}-a.ndjson"))
    harness.clock.advance(60)
    store = FaultyStore(harness.store)
    store.unavailable_at(1, "create")
    report = planning.sealer(parts_of(harness, store), groups_at_once=1).seal()
    assert (len(report.manifests), report.waiting_parts) == (1, 1)
    seal(harness)
    assert set(places(harness).values()) == {1}
    assert (len(places(harness)), pending(harness)) == (2, [])


def test_the_tail_is_sealed_in_time() -> None:
    """With a sealer every minute, no announced file waits longer than the settings say."""
    harness, chance = new_harness(), random.Random(5)
    waits: list[float] = []
    born: dict[str, Any] = {}

    def watch(report: SealedParts) -> None:
        for manifest in written(harness, report.manifests):
            waits.extend((harness.clock.now() - born[file.uri]).total_seconds() for file in manifest.files)

    for second in range(1200):
        if second < 600 and chance.random() < 0.1:
            key = f"{second}.ndjson"
            born[f"s3://lake/raw/{key}"] = harness.clock.now()
            assert build(harness, put(key, 1000)).failed == {}
        if second % SEAL_INTERVAL_SECONDS == 37:
            watch(seal(harness))
        harness.clock.advance(1)
    assert len(waits) == len(born)
    assert SEAL_INTERVAL_SECONDS <= max(waits) <= harness.settings.builder.max_wait_seconds


@pytest.mark.parametrize("bound", ["files_at_once", "parts_at_once"])
def test_parts_are_sealed_before_all_are_read(harness: Harness, bound: str) -> None:
    """After an outage, more may wait than the sealer has memory or time for; each is sealed once all the same."""
    for number in range(60):
        build(harness, put(f"{number}a.ndjson"), put(f"{number}b.ndjson"))
    harness.clock.advance(3600)
    unread = set(pending(harness))
    unread_when_sealed = list[int]()

    class Watched(FaultyStore):
        def read(self, uri: str, *, etag: str | None = None) -> bytes:
            unread.discard(uri)
            return super().read(uri, etag=etag)

    def note(step: PlanCrashPoint, _manifest_id: str) -> None:
        if step is PlanCrashPoint.PLANNED:
            unread_when_sealed.append(len(unread))

    sealer = planning.sealer(parts_of(harness, Watched(harness.store), on_crash_point=note), groups_at_once=1)
    report = replace(sealer, **{bound: 10}).seal()
    assert unread_when_sealed[0] > 0
    assert (report.sealed_parts, report.waiting_parts, pending(harness)) == (60, 0, [])
    assert list(places(harness).values()) == [1] * 120


@pytest.mark.parametrize("files_at_once", [1, 2, 100])
def test_parts_that_are_not_due_wait_for_those_that_are_read_later(harness: Harness, files_at_once: int) -> None:
    """How many are read at once does not show in manifests that are sealed by size, nor in what is told."""
    for number in range(5):
        build(harness, put(f"{number}.ndjson", 3 * MIB))
        harness.clock.advance(1)
    report = replace(planning.sealer(parts_of(harness)), files_at_once=files_at_once).seal()
    assert [each.files for each in report.manifests] == [3]
    assert (report.sealed_parts, report.waiting_parts) == (3, 2)
    assert 0 < report.oldest_seconds <= 5
