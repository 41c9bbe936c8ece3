"""Many builders and sealers at once, any of whom may die at any step."""

import json
import random
import sys
from collections.abc import Iterator
from contextlib import suppress

import pytest

from compactor.core.crash_points import PlanCrashPoint
from compactor.wiring import planning
from tests.support.building import MIB, in_effect, new_harness, parts_of, pending, places
from tests.support.harness import DiedError, Harness
from tests.support.s3_messages import bridged, record, wrapped
from tests.support.storms import Queue, Storm


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


class OneStream(Storm):
    """Eight builders and two sealers on one queue and one store.

    Args:
        harness: The store.
        queue: The messages.
        chance: When who dies.
    """

    def __init__(self, harness: Harness, queue: Queue, chance: random.Random) -> None:
        super().__init__(8, chance, 0.04)
        self._harness, self._queue = harness, queue

    def build(self) -> None:
        while batch := self._queue.receive(150):
            with suppress(DiedError):
                parts = parts_of(self._harness, on_crash_point=self.die_sometimes)
                report = planning.builder(parts).build(batch)
                self._queue.delete(set(batch) - set(report.failed))

    def seal(self) -> None:
        with suppress(DiedError):
            planning.sealer(parts_of(self._harness, on_crash_point=self.die_sometimes)).seal()


@pytest.mark.timeout(240)
@pytest.mark.parametrize("objects", [3_000, pytest.param(20_000, marks=pytest.mark.full)])
def test_twenty_thousand_events(objects: int, capsys: pytest.CaptureFixture[str]) -> None:
    """Events in any order, some twice, eight builders and two sealers that die at every step: each object once."""
    chance = random.Random(20)
    harness = new_harness(target_manifest_bytes=objects // 400 * MIB)
    bodies = list(announced(objects, chance))
    bodies += [*chance.sample(bodies, len(bodies) // 20), "poison", '{"Records": 3}']
    queue = Queue(bodies, chance)
    storm = OneStream(harness, queue, chance)
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
    assert set(storm.deaths) == set(PlanCrashPoint)
    assert len(found) == objects
    assert set(found.values()) == {1}
