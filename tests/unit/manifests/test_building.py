"""From announced files to manifests: each file in exactly one, whoever repeats, fails or dies meanwhile."""

import json
import random
import sys
import threading
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import suppress
from typing import Any

import pytest

from compactor.core.crash_points import BuildCrashPoint, OnBuildCrashPoint, ignore_build_crash_point
from compactor.core.errors import AccessError
from compactor.core.layout import base_name, is_delivery
from compactor.core.manifest import Manifest
from compactor.core.ports import ObjectStore
from compactor.manifests.building.builder import BuildReport
from compactor.manifests.building.sealer import SEAL_INTERVAL_SECONDS, SealReport
from compactor.manifests.claiming import claim_key
from compactor.ops.redrive.selection import Scope
from compactor.ops.trace.trace import TraceState
from compactor.wiring.components import Components
from tests.support.fakes import FaultyStore
from tests.support.harness import DiedError, Harness
from tests.support.recent_commits import recent_commit
from tests.support.s3_messages import SHAPES, bridged, notification, record, wrapped

MIB = 1024 * 1024


def new_harness(**builder: object) -> Harness:
    """A world whose manifests are 10 MiB."""
    return Harness(root="s3://lake", builder={"target_manifest_bytes": 10 * MIB, **builder})


@pytest.fixture
def harness() -> Harness:
    return new_harness()


def parts_of(harness: Harness, store: ObjectStore | None = None) -> Components:
    """The parts of one call of a function."""
    return Components(harness.settings, clock=harness.clock, store=store or harness.store, claims=harness.claims)


def build(harness: Harness, *bodies: str, on_crash_point: OnBuildCrashPoint = ignore_build_crash_point) -> BuildReport:
    return (
        parts_of(harness)
        .builder(on_crash_point=on_crash_point)
        .build(dict(zip("abcdefghijklmnop", bodies, strict=False)))
    )


def seal(
    harness: Harness, *, on_crash_point: OnBuildCrashPoint = ignore_build_crash_point, after_seconds: float = 0
) -> SealReport:
    harness.clock.advance(after_seconds)
    return parts_of(harness).sealer(on_crash_point=on_crash_point).seal()


def put(key: str, size: int = MIB, etag: str = "e1", *, shape: str = "s3") -> str:
    return SHAPES[shape]("lake", f"raw/{key}", size, etag)


def in_effect(harness: Harness) -> list[Manifest]:
    """The manifests of the watched prefix that can take effect."""
    found = [info for info in harness.store.list(harness.layout.manifests_folder) if is_delivery(info.uri)]
    ids = [base_name(info.uri).removesuffix(".json") for info in found]
    accepted = {each: harness.ledger.accepted(each) for each in ids}
    live = [each for each in ids if (record := accepted[each]) is None or record.kind != "revoked"]
    return [Manifest.model_validate_json(harness.store.read(harness.layout.manifest(each))) for each in live]


def places(harness: Harness) -> Counter[str]:
    """How often each file version is in a manifest that can take effect."""
    return Counter(claim_key(file) for manifest in in_effect(harness) for file in manifest.files)


def pending(harness: Harness) -> list[str]:
    return [info.uri for info in harness.store.list(harness.layout.pending_folder)]


def test_full_manifests_at_once_and_the_rest_later(harness: Harness) -> None:
    """Enough files for a manifest are one right away; what is left waits in a part, and is sealed by its age."""
    report = build(harness, *(put(f"{number}.ndjson", 5 * MIB) for number in range(7)))
    assert [len(manifest.files) for manifest in report.manifests] == [2, 2, 2]
    assert ([len(part.files) for part in report.parts], report.failed) == ([1], {})
    early = seal(harness, after_seconds=59)
    assert (early.manifests, early.waiting_parts, early.oldest_seconds) == ([], 1, 59)
    late = seal(harness, after_seconds=1)
    assert (late.sealed_parts, late.waiting_parts, pending(harness)) == (1, 0, [])
    assert set(places(harness).values()) == {1}
    assert len(places(harness)) == 7


def test_parts_are_sealed_by_size(harness: Harness) -> None:
    """Parts that together are enough do not wait for their age."""
    for number in range(5):
        build(harness, put(f"{number}.ndjson", 3 * MIB))
    report = seal(harness)
    assert [len(manifest.files) for manifest in report.manifests] == [3]
    assert report.waiting_parts == 2


def test_one_day_a_manifest(harness: Harness) -> None:
    """Files are grouped by the day in their names, else by that of the event."""
    build(harness, put("2026-01-05-a.ndjson"), put("2026-01-06/b.ndjson"), put("c.ndjson"))
    seal(harness, after_seconds=60)
    assert sorted(manifest.date for manifest in in_effect(harness)) == ["2026-01-02", "2026-01-05", "2026-01-06"]


def test_an_object_larger_than_the_target_is_alone(harness: Harness) -> None:
    """A single large object does not draw small ones into its manifest."""
    report = build(harness, put("small.ndjson", 1), put("large.ndjson", 12 * MIB), put("other.ndjson", 1))
    written = [*report.manifests, *report.parts]
    assert [[base_name(file.uri) for file in each.files] for each in written] == [
        ["large.ndjson"],
        ["small.ndjson"],
        ["other.ndjson"],
    ]


def test_manifests_in_whole_output_files(harness: Harness) -> None:
    """Once sizing has learned how much Parquet a byte of input makes, manifests fill whole output files."""
    commit = recent_commit(
        harness.clock.now(),
        decoded_bytes=100 * MIB,
        input_bytes=100 * MIB,
        output_bytes=1600 * MIB,  # so that one output file of 128 MiB comes of 8 MiB
    )
    harness.ledger.remember(commit)
    report = build(harness, *(put(f"{number}.ndjson") for number in range(16)))
    assert [len(manifest.files) for manifest in report.manifests] == [8, 8]


def test_repeated_events(harness: Harness) -> None:
    """A file that is announced again, in whatever shape, is in one manifest; a new version of it is a new file."""
    shapes = [put("a.ndjson", shape=shape) for shape in SHAPES]
    first = build(harness, *shapes)
    assert (first.announced, len(first.parts), first.failed) == (1, 1, {})
    again = build(harness, *shapes, put("a.ndjson", etag="e2"))
    assert (again.announced, again.repeated, len(again.parts), again.failed) == (2, 1, 1, {})
    seal(harness, after_seconds=60)
    assert build(harness, *shapes).repeated == 1
    assert places(harness) == {"s3://lake/raw/a.ndjson#e1": 1, "s3://lake/raw/a.ndjson#e2": 1}


def test_two_versions_of_one_object_are_never_in_one_manifest(harness: Harness) -> None:
    """A manifest that names a place twice would be refused whole."""
    report = build(harness, put("a.ndjson", etag="e1"), put("a.ndjson", etag="e2"))
    assert len(report.parts) == 2
    assert len(seal(harness, after_seconds=60).manifests) == 2
    assert all(len({file.uri for file in manifest.files}) == len(manifest.files) for manifest in in_effect(harness))


NOT_DATA = {
    "empty": put("a.ndjson", 0),
    "folder_marker": put("folder/", 0),
    "job_marker": put("out/_SUCCESS", 7),
    "outside_allowed_prefixes": notification("elsewhere", "a.ndjson", 1, "e"),
    "bad_name": put("a/../../b.ndjson"),
    "test_event": wrapped(json.dumps({"Event": "s3:TestEvent"})),
    "not_created": json.dumps({"Records": [{**record("lake", "raw/a", 1, "e"), "eventName": "ObjectRemoved:Delete"}]}),
}


@pytest.mark.parametrize(("reason", "body"), NOT_DATA.items(), ids=NOT_DATA.keys())
def test_what_is_no_data_is_skipped_by_reason(harness: Harness, reason: str, body: str) -> None:
    """An object that is no input is counted with its reason, its message is done with, and nothing is claimed."""
    report = build(harness, body)
    assert (report.skipped, report.failed, report.announced) == ({reason: 1}, {}, 0)
    assert pending(harness) == []


def test_poison_fails_alone(harness: Harness) -> None:
    """A body that cannot be read comes back with its reason; its neighbours are taken in."""
    report = build(harness, put("a.ndjson"), "no json", put("b.ndjson"), '{"Records": [1]}')
    assert set(report.failed) == {"b", "d"}
    assert "expected one JSON object" in report.failed["b"]
    assert [len(part.files) for part in report.parts] == [2]


def test_a_file_that_another_builder_is_at_comes_again(harness: Harness) -> None:
    """While another one may still write, the message fails; afterwards it is done with, or the file is taken over."""

    def die(step: BuildCrashPoint, _manifest_id: str) -> None:
        if step is BuildCrashPoint.CLAIMED:
            raise DiedError

    with pytest.raises(DiedError):
        build(harness, put("a.ndjson"), on_crash_point=die)
    report = build(harness, put("a.ndjson"), put("b.ndjson"))
    assert set(report.failed) == {"a"}
    assert "claimed by another one until 12:05:00 UTC" in report.failed["a"]
    harness.clock.advance(301)
    assert build(harness, put("a.ndjson")).failed == {}
    seal(harness, after_seconds=60)
    assert places(harness) == {"s3://lake/raw/a.ndjson#e1": 1, "s3://lake/raw/b.ndjson#e1": 1}


def test_trouble_with_the_store_fails_what_it_concerns(harness: Harness) -> None:
    """Where a manifest cannot be written, its messages come again; where nobody may write, nothing is acknowledged."""
    store = FaultyStore(harness.store)
    store.unavailable_at(1, "create")
    builder = parts_of(harness, store).builder()
    report = builder.build({"a": put("2026-01-05-a.ndjson"), "b": put("2026-01-06-b.ndjson")})
    assert set(report.failed) == {"a"}
    assert "trouble that should pass" in report.failed["a"]

    class Closed(FaultyStore):
        def create(self, uri: str, _data: bytes) -> bool:
            raise AccessError(f"{uri}: access denied")

    with pytest.raises(AccessError):
        parts_of(harness, Closed(harness.store)).builder().build({"c": put("c.ndjson")})


@pytest.mark.parametrize("size", [MIB, 5 * MIB], ids=["part", "manifest"])
def test_a_late_builder_promises_nothing(harness: Harness, size: int) -> None:
    """A builder that is held up beyond its lease, and lost one of its files, gives all of its messages back."""
    other = []

    def be_late(step: BuildCrashPoint, _manifest_id: str) -> None:
        if step is BuildCrashPoint.CLAIMED and not other:
            harness.clock.advance(301)
            other.append(build(harness, put("a.ndjson", size)))

    late = build(harness, put("a.ndjson", size), put("b.ndjson", size), on_crash_point=be_late)
    assert set(late.failed) == {"a", "b"}
    assert "taken over before it was written" in late.failed["a"]
    again = build(harness, put("a.ndjson", size), put("b.ndjson", size))
    seal(harness, after_seconds=60)
    assert (again.repeated, again.failed) == (1, {})
    assert places(harness) == {"s3://lake/raw/a.ndjson#e1": 1, "s3://lake/raw/b.ndjson#e1": 1}


def test_a_part_that_was_given_up_is_thrown_away(harness: Harness) -> None:
    """A builder that lost its claims and dies with its part just written leaves nothing that is sealed."""

    def be_late_and_die(step: BuildCrashPoint, _manifest_id: str) -> None:
        if step is BuildCrashPoint.CLAIMED:
            harness.clock.advance(301)
            build(harness, put("a.ndjson"))
        if step is BuildCrashPoint.PENDING:
            raise DiedError

    with pytest.raises(DiedError):
        build(harness, put("a.ndjson"), on_crash_point=be_late_and_die)
    assert len(pending(harness)) == 2
    report = seal(harness, after_seconds=60)
    assert (report.discarded, report.sealed_parts, pending(harness)) == (1, 1, [])
    assert places(harness) == {"s3://lake/raw/a.ndjson#e1": 1}


def test_a_late_sealer_removes_nothing(harness: Harness) -> None:
    """A sealer that is held up beyond its lease, and lost one of its parts, leaves all of them where they are."""
    for name in "ab":
        build(harness, put(f"{name}.ndjson"))
    harness.clock.advance(60)
    held_up = []

    def be_late(step: BuildCrashPoint, _manifest_id: str) -> None:
        if step is BuildCrashPoint.GATHERED and not held_up:
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


def test_what_is_written_is_safe_only_once_it_is_tied(harness: Harness) -> None:
    """Who finds a part that its dead builder did not tie ties it, so that nobody gives it up after that."""

    def die(step: BuildCrashPoint, _manifest_id: str) -> None:
        if step is BuildCrashPoint.PENDING:
            raise DiedError

    with pytest.raises(DiedError):
        build(harness, put("a.ndjson"), on_crash_point=die)
    [part] = pending(harness)
    part_id = base_name(part).removesuffix(".json")
    assert harness.ledger.accepted(part_id) is None
    harness.clock.advance(301)
    assert build(harness, put("a.ndjson")).repeated == 1
    record = harness.ledger.accepted(part_id)
    assert record is not None
    assert record.kind == "part"


def test_a_part_that_cannot_be_read_stays(harness: Harness) -> None:
    """A damaged part stops no other one, is named, and stays for a person to look at."""
    build(harness, put("a.ndjson"))
    damaged = harness.layout.pending_part("2026-01-02-damaged")
    harness.store.put(damaged, b"{")
    renamed = harness.layout.pending_part("2026-01-02-renamed")
    harness.store.put(renamed, harness.store.read(pending(harness)[0]))
    report = seal(harness, after_seconds=60)
    assert set(report.unreadable) == {damaged, renamed}
    assert "expected a pending part" in report.unreadable[damaged]
    assert (len(report.manifests), pending(harness)) == (1, sorted([damaged, renamed]))


def test_trouble_with_one_day_seals_the_others(harness: Harness) -> None:
    """What cannot be sealed now waits for the next call; the parts of other days do not."""
    for day in ("2026-01-05", "2026-01-06"):
        build(harness, put(f"{day}-a.ndjson"))
    harness.clock.advance(60)
    store = FaultyStore(harness.store)
    store.unavailable_at(1, "create")
    report = parts_of(harness, store).sealer().seal()
    assert (len(report.manifests), report.waiting_parts) == (1, 1)
    seal(harness)
    assert set(places(harness).values()) == {1}
    assert (len(places(harness)), pending(harness)) == (2, [])


def test_plan_leaves_announced_files_alone(harness: Harness) -> None:
    """A listing finds nothing to plan in what was announced: pending, sealed, or in a manifest."""
    uris = [f"s3://lake/raw/{number}.ndjson" for number in range(3)]
    for uri in uris:
        harness.store.put(uri, b"x")
    etags = {info.uri: info.etag for info in harness.store.list("s3://lake/raw/")}
    for uri in uris[:2]:
        build(harness, put(base_name(uri), 1, etags[uri]))
        seal(harness, after_seconds=60 if uri == uris[0] else 0)
    app = harness.app()
    plan = app.planner.plan("s3://lake/raw")
    assert [[file.uri for file in manifest.files] for manifest in plan.manifests] == [[uris[2]]]
    assert plan.planned_before == 2


class Queue:
    """A queue as SQS is one: at least once, in any order, a message that is not acknowledged comes again."""

    def __init__(self, bodies: list[str], chance: random.Random) -> None:
        self._waiting = {f"m{number}": body for number, body in enumerate(bodies)}
        self._visible = list(self._waiting)
        chance.shuffle(self._visible)
        self._lock = threading.Lock()

    def receive(self, most: int) -> dict[str, str]:
        with self._lock:
            ids, self._visible = self._visible[:most], self._visible[most:]
            return {message_id: self._waiting[message_id] for message_id in ids}

    def delete(self, message_ids: set[str]) -> None:
        with self._lock:
            for message_id in message_ids:
                self._waiting.pop(message_id, None)

    def show_again(self) -> int:
        """Let the visibility of all that is not acknowledged time out."""
        with self._lock:
            self._visible = list(self._waiting)
            return len(self._visible)


def announced(objects: int, chance: random.Random) -> Iterator[str]:
    """Messages of all shapes, with one or several records, that announce so many objects of three days."""
    number = 0
    while number < objects:
        records = min(chance.choice([1, 1, 1, 2, 5, 10]), objects - number)
        found = [
            ("lake", f"raw/2026-01-0{1 + each % 3}/{each:06d}.ndjson", chance.randrange(1, MIB), f"e{each}")
            for each in range(number, number + records)
        ]
        number += records
        if chance.random() < 0.3:
            yield from (bridged(*each) for each in found)
            continue
        body = json.dumps({"Records": [record(*each) for each in found]})
        yield wrapped(body) if chance.random() < 0.3 else body


class Storm:
    """Eight builders and two sealers, any of whom may die at any step, on one queue and one store.

    Args:
        harness: The store.
        queue: The messages.
        chance: When who dies.
    """

    def __init__(self, harness: Harness, queue: Queue, chance: random.Random) -> None:
        self.deaths: Counter[BuildCrashPoint] = Counter()
        self._harness, self._queue, self._chance = harness, queue, chance
        self._lock = threading.Lock()

    def rage(self) -> None:
        """Work until nothing is to be seen in the queue, as far as nobody dies."""
        threads = [threading.Thread(target=self._build) for _ in range(8)]
        threads += [threading.Thread(target=self._seal) for _ in range(2)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

    def _die_sometimes(self, step: BuildCrashPoint, _manifest_id: str) -> None:
        with self._lock:
            if self.deaths[step] < 3 or self._chance.random() < 0.04:
                self.deaths[step] += 1
                raise DiedError

    def _build(self) -> None:
        while batch := self._queue.receive(150):
            with suppress(DiedError):
                report = parts_of(self._harness).builder(on_crash_point=self._die_sometimes).build(batch)
                self._queue.delete(set(batch) - set(report.failed))

    def _seal(self) -> None:
        with suppress(DiedError):
            parts_of(self._harness).sealer(on_crash_point=self._die_sometimes).seal()


@pytest.mark.timeout(240)
def test_twenty_thousand_events(capsys: pytest.CaptureFixture[str]) -> None:
    """Events in any order, some twice, eight builders and two sealers that die at every step: each object once."""
    objects, chance = 20_000, random.Random(20)
    harness = new_harness(target_manifest_bytes=50 * MIB)
    bodies = list(announced(objects, chance))
    bodies += [*chance.sample(bodies, len(bodies) // 20), "poison", '{"Records": 3}']
    queue = Queue(bodies, chance)
    storm = Storm(harness, queue, chance)
    while queue.show_again() > 2 or pending(harness):
        storm.rage()
        harness.clock.advance(150)
    found = places(harness)
    with capsys.disabled():
        sys.stdout.write(
            f"\n{objects:,} objects in {len(bodies):,} messages: {len(in_effect(harness))} manifests, "
            f"{storm.deaths.total()} deaths, lost {objects - len(found)}, "
            f"doubled {sum(times > 1 for times in found.values())}\n"
        )
    assert set(storm.deaths) == set(BuildCrashPoint)
    assert len(found) == objects
    assert set(found.values()) == {1}


def test_the_tail_is_sealed_in_time() -> None:
    """With a sealer every minute, no announced file waits longer than the settings say."""
    harness, chance = new_harness(), random.Random(5)
    waits: list[float] = []
    born: dict[str, Any] = {}

    def watch(report: SealReport) -> None:
        for manifest in report.manifests:
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


@pytest.mark.parametrize("step", BuildCrashPoint)
def test_death_at_each_step(harness: Harness, step: BuildCrashPoint) -> None:
    """Whoever dies at a step, of building or sealing, leaves each file to exactly one manifest."""

    def die(reached: BuildCrashPoint, _manifest_id: str) -> None:
        if reached is step:
            raise DiedError

    events = [put(f"{number}.ndjson", 6 * MIB) for number in range(3)]

    def once(on_crash_point: OnBuildCrashPoint) -> Mapping[str, str]:
        try:
            failed = build(harness, *events, on_crash_point=on_crash_point).failed
            seal(harness, on_crash_point=on_crash_point, after_seconds=60)
        except DiedError:
            return {"a": "died"}
        return failed

    assert once(die)
    harness.clock.advance(301)
    assert once(ignore_build_crash_point) == {}
    assert places(harness) == {f"s3://lake/raw/{number}.ndjson#e1": 1 for number in range(3)}
    assert pending(harness) == []


def test_trace_and_redrive_follow_parts(harness: Harness) -> None:
    """An announced file is found while it waits and once it is sealed, and set aside it can be redriven."""
    uris = [f"s3://lake/raw/{name}.ndjson" for name in "ab"]
    for uri in uris:
        harness.store.put(uri, b'{"a": 1}\n')
    for info in list(harness.store.list("s3://lake/raw/")):
        build(harness, put(base_name(info.uri), info.size_bytes, info.etag))
    waiting = harness.app().tracer.trace(uris[0])
    assert (waiting.trace_state, waiting.manifest_uri in pending(harness)) == (TraceState.PENDING, True)
    [manifest] = seal(harness, after_seconds=60).manifests
    assert harness.app().tracer.trace(uris[0]).manifest_id == manifest.manifest_id
    assert harness.app().tracer.trace_manifest(waiting.manifest_id).manifest_id == manifest.manifest_id
    closed = FaultyStore(harness.store)
    closed.deny(uris[0])
    harness.run_once(store=closed)
    assert harness.app().tracer.trace(uris[0]).trace_state is TraceState.QUARANTINED
    app = harness.app()
    report = app.redriver().redrive(app.redrive_scan.scan(Scope("files")))
    assert report.refused == []
    harness.run_once()
    harness.check_exact(uris)
    assert harness.app().tracer.trace(uris[0]).trace_state is TraceState.DONE
