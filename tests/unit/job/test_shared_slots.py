"""Streams share the slots of one job: by weights, without starving, and with nothing saved up."""

import heapq
import random
from collections import Counter, deque
from dataclasses import dataclass, field
from datetime import UTC, datetime
from itertools import count

import pytest

from compactor.core.documents.manifest import Manifest, ManifestFile
from compactor.core.documents.records import Accepted
from compactor.job.lanes import LEAST_BYTES, OTHERS_FIRST, SharedSlots
from compactor.job.results import Delivery

MIB = 1024 * 1024
GIB = 1024 * MIB


def manifest(size: int, *, alone: bool) -> Delivery:
    """A manifest of so many bytes that has begun."""
    now = datetime(2026, 1, 2, tzinfo=UTC)
    files = (ManifestFile(uri="/raw/a.ndjson", size_bytes=size),)
    named = Manifest(manifest_id="m", date="2026-01-02", created_at=now, files=files)
    accepted = Accepted(manifest_id="m", kind="manifest", date="2026-01-02", accepted_at=now, manifest=named)
    return Delivery("/m/m.json", "", accepted, alone=alone)


@dataclass
class Waiting:
    """Manifests of one stream that wait: their sizes, and whether they need the job for themselves."""

    sizes: deque[tuple[int, bool]] = field(default_factory=deque)
    begun: list[int] = field(default_factory=list)
    spare: deque[int] = field(default_factory=deque)

    def begin_one(self, others: int) -> Delivery | None:
        if not self.sizes or (self.sizes[0][1] and others + len(self.begun) > 0):
            return None
        size, alone = self.sizes.popleft()
        self.begun.append(size)
        return manifest(size, alone=alone)

    def begin_spare(self) -> Delivery | None:
        return manifest(self.spare.popleft(), alone=False) if self.spare else None

    def needs_all(self) -> bool:
        return bool(self.sizes) and self.sizes[0][1]


def dealt(shared: SharedSlots, waiting: dict[str, Waiting], rounds: int) -> Counter[str]:
    """The bytes that each stream began while one slot after the other became free."""
    served: Counter[str] = Counter()
    for _ in range(rounds):
        shared.deal()
        for name, each in waiting.items():
            for size in each.begun:
                served[name] += size
                shared.streams[name].ended(manifest(0, alone=False))
            each.begun.clear()
    return served


def joined(shared: SharedSlots, *names: str) -> dict[str, Waiting]:
    waiting = {name: Waiting() for name in names}
    for name, each in waiting.items():
        shared.streams[name].join(each)
    return waiting


def test_bytes_are_divided_by_weights() -> None:
    """While all streams have work, each gets bytes in proportion to its weight, whatever the sizes of its manifests."""
    shared = SharedSlots(1, {"a": 1, "b": 3})
    waiting = joined(shared, "a", "b")
    waiting["a"].sizes.extend([(512 * MIB, False)] * 1000)
    waiting["b"].sizes.extend([(64 * MIB, False)] * 100_000)
    served = dealt(shared, waiting, 5000)
    assert served["b"] / served["a"] == pytest.approx(3, rel=0.02)


def test_a_stream_without_work_lends_its_share_and_saves_nothing() -> None:
    """One stream alone has all slots; another that comes late gets its share from then on, and no more."""
    shared = SharedSlots(2, {"a": 1, "b": 1})
    waiting = joined(shared, "a", "b")
    waiting["a"].sizes.extend([(GIB, False)] * 400)
    assert dealt(shared, waiting, 50) == {"a": 100 * GIB}
    waiting["b"].sizes.extend([(GIB, False)] * 200)
    served = dealt(shared, waiting, 50)
    assert abs(served["a"] - served["b"]) <= 2 * GIB


def test_one_more_manifest_starts_beside_full_slots() -> None:
    """While all slots are taken, a stream starts one manifest that may have the spare slot, and not a second one."""
    shared = SharedSlots(2, {"a": 1, "b": 1})
    waiting = joined(shared, "a", "b")
    waiting["b"].spare.extend([MIB, MIB])
    waiting["a"].sizes.append((GIB, False))
    shared.deal()
    assert len(waiting["b"].spare) == 2  # a slot is free
    waiting["a"].sizes.extend([(GIB, False)] * 2)
    shared.deal()
    shared.deal()
    assert (waiting["a"].begun, len(waiting["b"].spare)) == ([GIB, GIB], 1)


def test_one_that_needs_the_job_for_itself_gets_it_in_the_end() -> None:
    """Others go on before it, and none beside it."""
    shared = SharedSlots(2, {"a": 1, "b": 1})
    waiting = joined(shared, "a", "b")
    waiting["b"].sizes.extend([(MIB, False)] * 100)
    shared.deal()
    shared.streams["a"].join(had := Waiting(deque([(GIB, False)])))  # so that its clock is ahead of that of the other
    shared.streams["b"].ended(manifest(0, alone=False))
    waiting["b"].begun.pop()
    shared.deal()
    shared.streams["a"].ended(manifest(had.begun.pop(), alone=False))
    shared.streams["a"].join(waiting["a"])
    shared.deal()
    waiting["a"].sizes.append((MIB, True))
    while not waiting["a"].begun:
        shared.streams["b"].ended(manifest(0, alone=False))
        waiting["b"].begun.pop()
        shared.deal()
    assert 100 - len(waiting["b"].sizes) == OTHERS_FIRST * 2 - 1  # and the one of its own
    assert not waiting["b"].begun  # what was in flight has ended
    left = len(waiting["b"].sizes)
    shared.deal()
    assert len(waiting["b"].sizes) == left  # nothing begins beside it
    shared.streams["a"].ended(manifest(0, alone=True))
    shared.deal()
    assert len(waiting["b"].sizes) == left - 2


def test_small_manifests_have_a_price() -> None:
    """A flood of tiny manifests does not begin them all before a stream with large ones has a turn."""
    shared = SharedSlots(1, {"tiny": 1, "large": 1})
    waiting = joined(shared, "tiny", "large")
    waiting["tiny"].sizes.extend([(1, False)] * 10_000)
    waiting["large"].sizes.extend([(GIB, False)] * 10)
    dealt(shared, waiting, 4 * GIB // LEAST_BYTES)
    assert len(waiting["large"].sizes) <= 6


# The simulated job: a file waits for its manifest to be sealed, the manifest for a slot and for its conversion.
SEALED_AFTER, SEALER_EVERY, TRIGGER = 120.0, 60.0, 10.0
SLOTS, FIXED_SECONDS, BYTES_PER_SECOND = 4, 4.0, 60 * MIB
HOURS = 6 * 3600


@dataclass(frozen=True)
class Sized:
    stream: str
    size: int
    arrived: tuple[float, ...]  # of its files
    ready: float


def arrivals(name: str, megabytes_per_second: float, chance: random.Random) -> list[Sized]:
    """What the sealer makes of a stream of files: a manifest when 512 MiB wait, or two minutes have passed."""
    made: list[Sized] = []
    for second in range(0, HOURS, int(SEALER_EVERY)):
        size = megabytes_per_second * MIB * SEALER_EVERY * chance.uniform(0.5, 1.5)
        files = tuple(second + chance.uniform(0, SEALER_EVERY) for _ in range(5))
        ready = second + SEALER_EVERY + chance.uniform(0, TRIGGER)
        pieces = max(1, round(size / (512 * MIB)))
        if pieces == 1:
            ready += SEALED_AFTER - SEALER_EVERY
        made += [Sized(name, int(size / pieces), files, ready) for _ in range(pieces)]
    return made


def simulated(made: list[Sized], names: tuple[str, ...], *, fair: bool) -> dict[str, list[float]]:
    """The times from arrival to visible of all files, by stream, with real slots and a clock of its own."""
    shared = SharedSlots(SLOTS, dict.fromkeys(names if fair else ("all",), 1))
    queues: dict[str, deque[Sized]] = {name: deque() for name in shared.streams}
    number, ends, latency = count(), list[tuple[float, int, Sized]](), {name: list[float]() for name in names}
    now = 0.0

    @dataclass
    class Stream:
        name: str

        def begin_one(self, others: int) -> Delivery | None:  # noqa: ARG002 - part of the port
            if not queues[self.name]:
                return None
            begun = queues[self.name].popleft()
            seconds = FIXED_SECONDS + begun.size / (BYTES_PER_SECOND / SLOTS)
            heapq.heappush(ends, (now + seconds, next(number), begun))
            return manifest(begun.size, alone=False)

        def begin_spare(self) -> Delivery | None:
            return None

        def needs_all(self) -> bool:
            return False

    for name in shared.streams:
        shared.streams[name].join(Stream(name))
    waiting = deque(sorted(made, key=lambda each: each.ready))
    while waiting or ends:
        if ends and (not waiting or ends[0][0] <= waiting[0].ready):
            now, _, ended = heapq.heappop(ends)
            shared.streams[ended.stream if fair else "all"].ended(manifest(0, alone=False))
            latency[ended.stream] += [now - arrived for arrived in ended.arrived]
        else:
            now = waiting[0].ready
            each = waiting.popleft()
            queues[each.stream if fair else "all"].append(each)
        shared.deal()
    return latency


def p99(values: list[float]) -> float:
    return sorted(values)[len(values) * 99 // 100]


def test_a_flood_in_one_stream_leaves_the_others_their_latency() -> None:
    """Ten streams of skewed load, one floods at three times what the job can do: the others' p99 stays within 1.5."""
    names = tuple(f"s{number}" for number in range(10))
    loads = [0.05 * 1.6**number for number in range(9)]  # MiB a second: 0.05 to 2.1
    chance = random.Random(7)
    others = [each for name, load in zip(names[1:], loads, strict=True) for each in arrivals(name, load, chance)]
    flood = arrivals("s0", 3 * BYTES_PER_SECOND / MIB, chance)
    calm = simulated(others, names, fair=True)
    flooded = simulated([*others, *flood], names, fair=True)
    unfair = simulated([*others, *flood], names, fair=False)
    ratios = {name: p99(flooded[name]) / p99(calm[name]) for name in names[1:]}
    assert max(ratios.values()) <= 1.5, ratios
    assert min(p99(unfair[name]) / p99(calm[name]) for name in names[1:]) > 5  # so the measure tells the difference
    assert {name: len(found) for name, found in flooded.items() if name != "s0"} == {
        name: len(found) for name, found in calm.items() if name != "s0"
    }
