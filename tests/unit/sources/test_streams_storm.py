"""Many builders and sealers at once on the events of ten streams, of which one floods; any of them may die anywhere."""

import random
import sys
from collections import Counter
from contextlib import suppress

import pytest

from compactor.core.crash_points import PlanCrashPoint
from compactor.wiring import planning
from tests.support.harness import DiedError
from tests.support.s3_messages import bridged, notification
from tests.support.storms import Queue, Storm
from tests.support.streams import MIB, TEN, StreamsInMemory, stream_settings

FLOODING, FLOOD_SHARE = TEN[0], 0.7


class OfStreams(Storm):
    """Six builders and two sealers of all streams."""

    def __init__(self, streams: StreamsInMemory, queue: Queue, chance: random.Random) -> None:
        super().__init__(6, chance, 0.01)
        self._streams, self._queue = streams, queue

    def build(self) -> None:
        while batch := self._queue.receive(300):
            builder = planning.builder(self._streams.components(on_crash_point=self.die_sometimes))
            with suppress(DiedError):
                self._queue.delete(set(batch) - set(builder.build(batch).failed))

    def seal(self) -> None:
        for parts in self._streams.components(on_crash_point=self.die_sometimes).of_streams.values():
            with suppress(DiedError):
                planning.sealer(parts).seal()


@pytest.mark.timeout(240)
@pytest.mark.parametrize("objects", [1_000, pytest.param(20_000, marks=pytest.mark.full)])
def test_each_object_is_in_one_manifest_of_its_stream(objects: int, capsys: pytest.CaptureFixture[str]) -> None:
    """Events in any order, some twice, some of no stream: each object once, in its stream, and the totals add up."""
    chance = random.Random(20)
    streams = StreamsInMemory(stream_settings(*TEN, builder={"target_manifest_bytes": 10 * MIB}))
    names = [FLOODING if chance.random() < FLOOD_SHARE else chance.choice(TEN[1:]) for _ in range(objects)]
    keys = [f"raw/{name}/2026-01-0{1 + each % 3}/{each:06d}.ndjson" for each, name in enumerate(names)]
    bodies = [
        (bridged if chance.random() < 0.3 else notification)("lake", key, chance.randrange(1, MIB), f"e{each}")
        for each, key in enumerate(keys)
    ]
    bodies += [*chance.sample(bodies, objects // 20), notification("lake", "raw/of-none/a.ndjson", 1, "e"), "poison"]
    queue = Queue(bodies, chance)
    storm = OfStreams(streams, queue, chance)
    while queue.show_again() > 1 or streams.pending():
        storm.rage()
        streams.clock.advance(350)
    found = {name: streams.places(name) for name in TEN}
    with capsys.disabled():
        sys.stdout.write(
            f"\n{objects:,} objects of ten streams in {len(bodies):,} messages: "
            f"{sum(len(streams.in_effect(name)) for name in TEN)} manifests, {storm.deaths.total()} deaths\n"
        )
    assert set(storm.deaths) == set(PlanCrashPoint)
    wanted = Counter(names)
    assert {name: (len(each), sum(each.values())) for name, each in found.items()} == {
        name: (wanted[name], wanted[name]) for name in TEN
    }
    assert all(f"/raw/{name}/" in key for name, each in found.items() for key in each)
