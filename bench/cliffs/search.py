"""Searches for cliffs: from shape to neighbour, towards what costs most, and anew from anywhere."""

import random
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from math import inf

from bench.cliffs.meter import Meter, ShapeFailed
from bench.cliffs.points import DIMENSIONS, Point, random_point
from bench.cliffs.rule import GROWTH_LIMIT, LIMIT, exponent, growth, steepness

REPEATS = 2
"""How often anything suspicious is measured again before it counts. The least of all measurements counts."""

_SMALL_FILES = Point(file="20 kB")
_CLIMBS = 0.6  # share of the steps that go on from the slowest shape of the step before


@dataclass(frozen=True, slots=True)
class Cliff:
    """What fails.

    Attributes:
        point: The shape.
        why: What it costs, and what it was compared with.
        beside: The dimension of the neighbours that it is steep beside; empty if it is for another reason.
    """

    point: Point
    why: str
    beside: str = ""


@dataclass(slots=True)
class Search:
    """The search on one engine.

    Attributes:
        meter: Measures the shapes.
        sizes: In bytes, ascending, each four times the one before. Neighbours are compared at the first.
        floor_seconds: Less cannot be told from noise.
        tell: Is told of each step.
        costs: The least CPU seconds by shape and size.
        cliffs: What was found, in order.
        file_seconds: The CPU seconds of so many files of one line, without those of one.
    """

    meter: Meter
    sizes: Sequence[int]
    floor_seconds: float
    tell: Callable[[str], None] = lambda _: None
    costs: dict[Point, dict[int, float]] = field(default_factory=dict)
    cliffs: list[Cliff] = field(default_factory=list)
    file_seconds: dict[int, float] = field(default_factory=dict)

    def known(self, shapes: Iterable[tuple[Point, str]]) -> None:
        """Measure shapes at all sizes, each beside its neighbours in a dimension if one is named; at any time."""
        for point, beside in shapes:
            self._grow(point)
            for near in point.neighbours(beside) if beside else ():
                self._cost(near, self.sizes[0])
            self._compare(point)

    def files(self, counts: Sequence[int]) -> None:
        """Find out whether the cost of a file grows with their number, which is a power of two."""
        try:
            one = self.meter.start(1)
            self.file_seconds = {count: self.meter.start(count) - one for count in counts}
        except ShapeFailed as exc:
            self._found(Cliff(_SMALL_FILES, f"files of one line: {exc}"))
            return
        grown = growth(self.file_seconds, self.floor_seconds)
        if grown > GROWTH_LIMIT:
            self._found(
                Cliff(_SMALL_FILES, f"a file of one line costs {grown:.2f} times as much among four times as many")
            )

    def run(self, rng: random.Random, is_over: Callable[[], bool]) -> None:
        """Search until time is over; every second step asks how the cost of a shape grows."""
        point = random_point(rng)
        while not is_over():
            slowest = self._step(point, rng, is_over)
            if not is_over():
                self._grow(slowest)
            point = slowest if rng.random() < _CLIMBS else random_point(rng)

    def _step(self, point: Point, rng: random.Random, is_over: Callable[[], bool]) -> Point:
        """Compare a shape with its neighbours in one dimension, and those with theirs; returns the slowest."""
        dimensions = [each for each in DIMENSIONS if point.neighbours(each)]
        line = [point, *point.neighbours(rng.choice(dimensions))]
        for each in line:
            if not is_over():
                self._cost(each, self.sizes[0])
        for each in line:
            self._compare(each)
        return max(line, key=self._slowness)

    def _compare(self, point: Point) -> None:
        """Find a cliff between a shape and the measured neighbours of it, in any dimension."""
        if any(cliff.point == point for cliff in self.cliffs) or self.sizes[0] not in self.costs.get(point, {}):
            return
        for dimension in DIMENSIONS:
            near = [each for each in point.neighbours(dimension) if self.sizes[0] in self.costs.get(each, {})]
            if self._steepness(point, near) > LIMIT:
                for each in [point, *near] * REPEATS:
                    self._measure(each, self.sizes[0])
                steep = self._steepness(point, near)
                if steep > LIMIT:
                    names = ", ".join(f"{getattr(each, dimension)}" for each in near)
                    why = f"{steep:.1f} times the median of those with {dimension} = {names}"
                    self._found(Cliff(point, why, dimension))
                    return

    def _grow(self, point: Point) -> None:
        """Find out whether the cost of a byte grows with the size."""
        if any(self._cost(point, size) is None for size in self.sizes):
            return
        if growth(self.costs[point], self.floor_seconds) > GROWTH_LIMIT:
            for size in [*self.sizes] * REPEATS:
                self._measure(point, size)
            grown = growth(self.costs[point], self.floor_seconds)
            if grown > GROWTH_LIMIT:
                power = exponent(self.costs[point], self.floor_seconds)
                self._found(
                    Cliff(point, f"a byte costs {grown:.2f} times as much at four times the size; power {power:.2f}")
                )

    def _cost(self, point: Point, size: int) -> float | None:
        """The cost of a shape, measured if it is not known; None if it failed, which is a cliff."""
        if size not in self.costs.get(point, {}):
            self._measure(point, size)
        return self.costs.get(point, {}).get(size)

    def _measure(self, point: Point, size: int) -> None:
        began = time.monotonic()
        try:
            seconds = self.meter.seconds(point, size)
        except ShapeFailed as exc:
            self._found(Cliff(point, f"at {size / 1e6:,.0f} MB: {exc}"))
            return
        known = self.costs.setdefault(point, {})
        known[size] = min(seconds, known.get(size, inf))
        took = time.monotonic() - began
        self.tell(f"{size / 1e6:>6,.0f} MB {seconds * 1e9 / size:>9,.1f} CPU s/GB {took:>6.1f} s  {point.name}")

    def _found(self, cliff: Cliff) -> None:
        self.cliffs.append(cliff)
        self.tell(f"CLIFF: {cliff.point.name}: {cliff.why}")

    def _steepness(self, point: Point, near: Sequence[Point]) -> float:
        size = self.sizes[0]
        return steepness(self.costs[point][size], [self.costs[each][size] for each in near], self.floor_seconds)

    def _slowness(self, point: Point) -> float:
        return self.costs.get(point, {}).get(self.sizes[0], 0.0)
