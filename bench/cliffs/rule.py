"""Decides what is a cliff, and what grows faster than linear. No I/O."""

import math
from collections.abc import Mapping, Sequence
from itertools import pairwise
from statistics import median

LIMIT = 4.0
"""The most that a shape may cost, by the median of its neighbours in one dimension."""

GROWTH_LIMIT = 4 / 3
"""The most by which the cost of a byte may grow from one size to the next, four times as large."""


def steepness(seconds: float, neighbours: Sequence[float], floor_seconds: float) -> float:
    """By which factor a shape costs more than the median of its neighbours, all of the same size; 0 without any.

    Args:
        seconds: What the shape costs.
        neighbours: What each of them costs.
        floor_seconds: Less cannot be told from noise, and counts as this much.
    """
    return max(seconds, floor_seconds) / max(median(neighbours), floor_seconds) if neighbours else 0.0


def growth(seconds: Mapping[int, float], floor_seconds: float) -> float:
    """The largest factor by which the cost of a byte grows from one size to the next; 0 with one size.

    Args:
        seconds: By size in bytes, what the input costs.
        floor_seconds: As for `steepness`.
    """
    sizes = sorted(seconds)
    costs = [max(seconds[size], floor_seconds) / size for size in sizes]
    return max((after / before for before, after in pairwise(costs)), default=0.0)


def exponent(seconds: Mapping[int, float], floor_seconds: float) -> float:
    """The power of the size with which the cost grows, by least squares; 1 is linear, 2 quadratic, 0 with one size."""
    points = [(math.log(size), math.log(max(cost, floor_seconds))) for size, cost in seconds.items()]
    middle_x, middle_y = (sum(values) / len(points) for values in zip(*points, strict=True))
    spread = sum((x - middle_x) ** 2 for x, _ in points)
    return sum((x - middle_x) * (y - middle_y) for x, y in points) / spread if spread else 0.0
