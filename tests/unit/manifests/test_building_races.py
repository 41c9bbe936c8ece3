"""Two at the same files: one of them is held up at each step while the other does all of its work."""

from collections.abc import Callable
from itertools import product

import pytest

from compactor.core.crash_points import BuildCrashPoint
from tests.support.building_races import Race

BUILD_STEPS = (BuildCrashPoint.CLAIMED, BuildCrashPoint.BUILT, BuildCrashPoint.PENDING, BuildCrashPoint.BOUND)
SEAL_STEPS = (
    BuildCrashPoint.PART_BOUND,
    BuildCrashPoint.PARTS_CLAIMED,
    BuildCrashPoint.SEALED,
    BuildCrashPoint.CLEARED,
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
    *product([("build", BuildCrashPoint.PENDING)], [("build", step) for step in BUILD_STEPS[1:]]),
    # The second sealer binds the manifest of the first one itself, or finds no part.
    (("seal", BuildCrashPoint.SEALED), ("seal", BuildCrashPoint.SEALED)),
    *product([("seal", BuildCrashPoint.CLEARED)], [("seal", step) for step in SEAL_STEPS]),
}
"""Pairs in which the first one leaves the second no work that reaches its step."""

TWO_HELD_UP = [pair for pair in product(HELD_UP, HELD_UP) if pair not in NOTHING_LEFT]


@pytest.mark.parametrize("lapse_seconds", [0, 301], ids=["within the lease", "beyond it"])
@pytest.mark.parametrize("other", OTHERS.values(), ids=OTHERS.keys())
@pytest.mark.parametrize(("who", "step"), HELD_UP, ids=[f"{who}-{step}" for who, step in HELD_UP])
def test_held_up_at_a_step(
    who: str, step: BuildCrashPoint, other: Callable[[Race], object], lapse_seconds: float
) -> None:
    """Whichever process is held up, and however long, each file ends in exactly one manifest that takes effect."""
    race = Race()
    race.prepare(parts=who == "seal")
    race.hold_up(who, step, lambda: (race.harness.clock.advance(lapse_seconds), other(race)))
    assert race.was_held_up
    race.settle()
    race.check()


@pytest.mark.parametrize("at_once", [1, 16])
@pytest.mark.parametrize("every", [1, 2])
@pytest.mark.parametrize(("first", "second"), TWO_HELD_UP, ids=lambda each: f"{each[0]}-{each[1]}")
def test_two_held_up(
    first: tuple[str, BuildCrashPoint], second: tuple[str, BuildCrashPoint], every: int, at_once: int
) -> None:
    """One is held up beyond its lease, the one that takes over as well, and a third does it all."""
    race = Race(at_once)
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
