"""The values of one metric as distinct values with counts, which can be coarsened and still yield percentiles."""

import math
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import partial

_FINEST_STEP = 0.01


@dataclass(frozen=True, slots=True)
class Spread:
    """A summary of durations."""

    times: int  # number of durations
    p50_seconds: float  # median
    p99_seconds: float  # 99th percentile
    longest_seconds: float  # maximum


@dataclass(frozen=True, slots=True)
class Distribution:
    """The values of one metric.

    Attributes:
        counts: How often each value occurred.
    """

    counts: Mapping[float, int]

    @property
    def total(self) -> int:
        """The number of values."""
        return sum(self.counts.values())

    def percentile(self, percent: float) -> float:
        """The smallest value that at least this percentage of all values do not exceed.

        Raises:
            ValueError: There are no values.
        """
        wanted = math.ceil(self.total * percent / 100)
        seen = 0
        for value in sorted(self.counts):
            seen += self.counts[value]
            if seen >= wanted:
                return value
        raise ValueError("no values to take a percentile from")

    @property
    def spread(self) -> Spread | None:
        """Summarise the values, which are times in seconds; None if there are none."""
        return Spread(self.total, *map(self.percentile, (50, 99, 100))) if self.counts else None

    def coarsened(self, max_distinct: int) -> "Distribution":
        """Return the values rounded until at most `max_distinct` are distinct.

        Rounds to whole numbers first. If that is not enough, rounds to a scale whose steps grow by 1 %, then 2 %, 4 %
        and so on. No value moves by more than about half a step.

        Args:
            max_distinct: At least 3.
        """
        coarse, step = self._rounded(round), _FINEST_STEP
        while len(coarse.counts) > max_distinct:
            coarse, step = self._rounded(partial(_on_scale, step=step)), step * 2
        return coarse

    def _rounded(self, rounding: Callable[[float], float]) -> "Distribution":
        counts: Counter[float] = Counter()
        for value, count in self.counts.items():
            counts[rounding(value)] += count
        return Distribution(counts)


def distribution_of(values: Iterable[float]) -> Distribution:
    """A distribution of exact values."""
    return Distribution(Counter(values))


def _on_scale(value: float, *, step: float) -> float:
    """The nearest point of a scale that begins with 0 and 1 and grows by `step`, symmetric about 0."""
    if abs(value) < 1:
        return float(round(value))
    points = round(math.log(abs(value)) / math.log1p(step))
    return math.copysign(round((1 + step) ** points, 2), value)
