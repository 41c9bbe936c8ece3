"""Decides whether a program became slower, from pairs of measurements that were made one after the other. No I/O.

The median of the ratios of pairs lies between two of the ratios with a confidence that follows from their number alone,
whatever the noise is like. So a verdict is given only if the whole interval is on one side of the limit.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from math import comb, inf
from statistics import median

LIMIT = 1.05
"""The most that the ratio of CPU time may be."""

CONFIDENCE = 0.99
"""That the true median is in the interval. Several shapes are judged, and each more than once."""

LEAST_PAIRS = 8
"""Fewer pairs give no interval of that confidence."""


class Verdict(StrEnum):
    """What the pairs of one shape tell."""

    AS_FAST = "as fast"
    SLOWER = "SLOWER"
    UNDECIDED = "undecided"


@dataclass(frozen=True, slots=True)
class Judged:
    """The pairs of one shape.

    Attributes:
        ratio: The median of new by old.
        lowest: The true median is no lower, as far as the pairs tell.
        highest: And no higher.
    """

    ratio: float
    lowest: float
    highest: float
    verdict: Verdict


def judged(pairs: Sequence[tuple[float, float]]) -> Judged:
    """Judge pairs of old and new.

    Args:
        pairs: CPU seconds above 0 of the old and of the new program, in any order.
    """
    ratios = sorted(new / old for old, new in pairs)
    left_out = outside(len(ratios))
    lowest, highest = (0.0, inf) if left_out is None else (ratios[left_out], ratios[-1 - left_out])
    verdict = Verdict.UNDECIDED
    if lowest > LIMIT:
        verdict = Verdict.SLOWER
    elif highest <= LIMIT:
        verdict = Verdict.AS_FAST
    return Judged(median(ratios) if ratios else 1.0, lowest, highest, verdict)


def outside(pairs: int) -> int | None:
    """How many of the sorted ratios at either end may be left out of the interval; None if there are too few pairs."""
    tail, left_out = 0.0, None
    for number in range(pairs // 2):
        tail += comb(pairs, number) / 2**pairs
        if 2 * tail > 1 - CONFIDENCE:
            break
        left_out = number
    return left_out
