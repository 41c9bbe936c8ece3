"""Sums over many manifests in memory that does not grow with their number. No I/O."""

import heapq
import itertools
from collections import Counter
from collections.abc import Iterable, Iterator
from datetime import datetime, timedelta
from typing import Generic, TypeVar

from compactor.core.distributions import Distribution

MAX_DISTINCT = 2048
"""Different values that one tally holds before it rounds them, to whole seconds or by about half a per cent."""

_FEWER = MAX_DISTINCT // 2  # so that rounding is rare
_MERGE_AT = 4096

T = TypeVar("T")


class Tally:
    """Many times in seconds, for percentiles."""

    def __init__(self) -> None:
        self._counts: Counter[float] = Counter()

    def add(self, seconds: float, times: int = 1) -> None:
        """Take one value, to a tenth of a second."""
        self._counts[round(seconds, 1)] += times
        if len(self._counts) > MAX_DISTINCT:
            self._counts = Counter(Distribution(self._counts).coarsened(_FEWER).counts)

    def add_all(self, values: Iterable[float]) -> None:
        """Take several values."""
        for seconds, times in Counter(round(value, 1) for value in values).items():
            self.add(seconds, times)

    @property
    def distribution(self) -> Distribution:
        return Distribution(self._counts)


class Newest(Generic[T]):
    """The newest few of many things.

    Args:
        limit: How many to keep.
    """

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._heap: list[tuple[datetime, int, T]] = []
        self._numbers = itertools.count(0, -1)  # of things of one moment, those that came first are kept
        self.seen = 0

    def add(self, moment: datetime, thing: T) -> None:
        self.seen += 1
        entry = (moment, next(self._numbers), thing)
        if len(self._heap) < self._limit:
            heapq.heappush(self._heap, entry)
        else:
            heapq.heappushpop(self._heap, entry)

    def __iter__(self) -> Iterator[T]:
        """From the newest to the oldest."""
        return (thing for _, _, thing in sorted(self._heap, key=lambda entry: entry[:2], reverse=True))


class CoveredTime:
    """How long any of many spans of time was under way. Holds the gaps between them, not the spans."""

    def __init__(self) -> None:
        self._spans: list[tuple[datetime, datetime]] = []

    def add(self, start: datetime, end: datetime) -> None:
        """Take a span; one that ends before it starts is none."""
        if end > start:
            self._spans.append((start, end))
        if len(self._spans) >= _MERGE_AT and len(self._spans) & (len(self._spans) - 1) == 0:
            self._spans = _merged(self._spans)

    @property
    def seconds(self) -> float:
        return sum(((end - start) for start, end in _merged(self._spans)), timedelta()).total_seconds()


def _merged(spans: list[tuple[datetime, datetime]]) -> list[tuple[datetime, datetime]]:
    merged: list[tuple[datetime, datetime]] = []
    for start, end in sorted(spans):
        if merged and start <= merged[-1][1]:
            merged[-1] = (merged[-1][0], max(end, merged[-1][1]))
        else:
            merged.append((start, end))
    return merged
