"""Sums over many manifests in memory that does not grow with their number. No I/O."""

import heapq
import itertools
import math
from collections import Counter
from collections.abc import Iterator
from datetime import datetime
from typing import Generic, TypeVar

from compactor.core.distributions import Distribution
from compactor.ledger.work_time import covered_seconds, merged_spans

MAX_DISTINCT = 2048
"""Different values that one tally holds before it rounds them: the grid of 1 % has fewer up to 80 years."""

_GRID = math.log(1.01)
_LONGEST_SECONDS = 2.5e9
_FINE_SECONDS = 10.0
_MERGE_AT = 4096

T = TypeVar("T")


class Tally:
    """Many times in seconds, for percentiles: to 0.1 s, or to 0.5 % once there are many different ones."""

    def __init__(self) -> None:
        self._counts: Counter[float] = Counter()
        self._is_coarse = False

    def add(self, *values: float) -> None:
        self._counts.update(map(self._rounded, values))
        if len(self._counts) > MAX_DISTINCT:
            exact, self._counts, self._is_coarse = self._counts, Counter(), True
            for seconds, times in exact.items():
                self._counts[self._rounded(seconds)] += times

    def _rounded(self, seconds: float) -> float:
        if seconds < _FINE_SECONDS or not self._is_coarse:
            return round(seconds, 1)
        return math.exp(_GRID * round(math.log(min(seconds, _LONGEST_SECONDS)) / _GRID))

    @property
    def distribution(self) -> Distribution:
        return Distribution(self._counts)


class Newest(Generic[T]):
    """The newest `limit` of many things."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._heap: list[tuple[datetime, int, T]] = []
        self._numbers = itertools.count(0, -1)  # of things of one moment, those that came first are kept

    def add(self, moment: datetime, thing: T) -> None:
        entry = (moment, next(self._numbers), thing)
        if len(self._heap) < self._limit:
            heapq.heappush(self._heap, entry)
        else:
            heapq.heappushpop(self._heap, entry)

    def __iter__(self) -> Iterator[T]:
        """From the newest to the oldest."""
        return (thing for _, _, thing in sorted(self._heap, key=lambda entry: entry[:2], reverse=True))


class CoveredTime:
    """The time that many spans cover together. Holds merged spans, so memory grows with the gaps between them."""

    def __init__(self) -> None:
        self._spans: list[tuple[datetime, datetime]] = []

    def add(self, start: datetime, end: datetime) -> None:
        """Take a span; one that ends before it starts is none."""
        self._spans.append((start, end))
        if len(self._spans) >= _MERGE_AT and len(self._spans) & (len(self._spans) - 1) == 0:
            self._spans = merged_spans(self._spans)

    @property
    def seconds(self) -> float:
        return covered_seconds(self._spans)
