"""Two at the same files: one of them is held up at each step while the other does all of its work."""

from itertools import product

import pytest

from compactor.core.crash_points import PlanCrashPoint
from tests.support.building_races import Race
from tests.support.sampling import few_rows

BUILD_STEPS = (PlanCrashPoint.CLAIMED, PlanCrashPoint.PLANNED, PlanCrashPoint.PENDING, PlanCrashPoint.BOUND)
SEAL_STEPS = (
    PlanCrashPoint.PART_BOUND,
    PlanCrashPoint.CLAIMED,
    PlanCrashPoint.PLANNED,
    PlanCrashPoint.CLEARED,
)
HELD_UP = [("build", step) for step in BUILD_STEPS] + [("seal", step) for step in SEAL_STEPS]
OTHERS = {
    "build": Race.build,
    "seal": Race.seal,
    "build some": lambda race: race.build(every=2),
    "build some and seal": lambda race: (race.build(every=2), race.seal()),
    "build and seal": lambda race: (race.build(), race.seal()),
    "plan": Race.plan,
    "seal and plan": lambda race: (race.seal(), race.plan()),
}
NOTHING_LEFT = {
    # The second builder finds the manifests of the first one bound, and binds its pending part itself.
    *product([("build", PlanCrashPoint.PENDING)], [("build", step) for step in BUILD_STEPS[1:]]),
    # The second sealer binds the manifest of the first one itself, or finds no part.
    (("seal", PlanCrashPoint.PLANNED), ("seal", PlanCrashPoint.PLANNED)),
    *product([("seal", PlanCrashPoint.CLEARED)], [("seal", step) for step in SEAL_STEPS]),
}
"""Pairs in which the first one leaves the second no work that reaches its step."""

TWO_HELD_UP = [pair for pair in product(HELD_UP, HELD_UP) if pair not in NOTHING_LEFT]


@pytest.mark.parametrize(("held_up", "other", "lapse_seconds"), few_rows(product(HELD_UP, OTHERS, [0, 301]), 38))
def test_held_up_at_a_step(held_up: tuple[str, PlanCrashPoint], other: str, lapse_seconds: float) -> None:
    """Whichever process is held up, and however long, each file ends in exactly one manifest that takes effect."""
    race = Race()
    who, step = held_up
    race.prepare(parts=who == "seal")
    race.hold_up(who, step, lambda: (race.harness.clock.advance(lapse_seconds), OTHERS[other](race)))
    assert race.was_held_up
    race.settle()
    race.check()


@pytest.mark.parametrize(
    ("pair", "every", "at_once"),
    few_rows(product(TWO_HELD_UP, [1, 2], [1, 16]), 75),
    ids=lambda each: "-".join(map("-".join, each)) if isinstance(each, tuple) else None,
)
def test_two_held_up(
    pair: tuple[tuple[str, PlanCrashPoint], tuple[str, PlanCrashPoint]], every: int, at_once: int
) -> None:
    """One is held up beyond its lease, the one that takes over as well, and a third does it all."""
    race = Race(at_once)
    first, second = pair
    race.prepare(parts="seal" in {first[0], second[0]})

    reached: list[str] = []

    def third() -> None:
        reached.append("third")
        race.harness.clock.advance(301)
        race.build(every=every)
        race.seal()

    def then() -> None:
        race.harness.clock.advance(301)
        race.hold_up(*second, third)

    race.hold_up(*first, then)
    # With many threads, the others of a process go on while one of them is held up, and may leave nothing to do.
    assert reached == ["third"] or at_once > 1
    race.settle()
    race.check()
