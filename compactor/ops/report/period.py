"""The time that a report is about, and how it is cut into buckets. No I/O."""

import math
from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from itertools import pairwise

MAX_BUCKETS = 48
"""What can be told apart in one chart. One that the period cuts at an end may come on top."""

_MINUTE, _HOUR, _DAY = 60, 3600, 86_400
STEPS_SECONDS = (
    *(1, 5, 15, 30),
    *(number * _MINUTE for number in (1, 5, 10, 15, 30)),
    *(number * _HOUR for number in (1, 2, 3, 6, 12)),
    *(number * _DAY for number in (1, 7, 30)),
)
"""Lengths of buckets that people count in."""

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class Period:
    """From `since` on, up to but not including `until`; both in UTC."""

    since: datetime
    until: datetime

    @property
    def seconds(self) -> float:
        return (self.until - self.since).total_seconds()

    def holds(self, moment: datetime) -> bool:
        return self.since <= moment < self.until

    def widened(self, seconds: float) -> "Period":
        """The same with so much more time on either side."""
        margin = timedelta(seconds=seconds)
        return Period(self.since - margin, self.until + margin)


@dataclass(frozen=True, slots=True)
class Buckets:
    """A period in pieces that begin at round times of UTC.

    The first and the last may be cut short, but not below half a step: what is less goes with its neighbour, as a rate
    over a few seconds says nothing about the rest.

    Attributes:
        period: All of it.
        step_seconds: The length of a whole piece.
        starts: Of each piece, in order.
    """

    period: Period
    step_seconds: int
    starts: tuple[datetime, ...]

    @classmethod
    def of(cls, period: Period) -> "Buckets":
        """The finest pieces of which there are at most `MAX_BUCKETS` whole ones."""
        longest = STEPS_SECONDS[-1]
        step_seconds = next(
            (each for each in STEPS_SECONDS if period.seconds <= each * MAX_BUCKETS),
            longest * math.ceil(period.seconds / longest / MAX_BUCKETS),
        )
        return cls(period, step_seconds, tuple(_starts(period, timedelta(seconds=step_seconds))))

    def index(self, moment: datetime) -> int:
        """Which piece, from 0, a moment of the period is in."""
        return bisect_right(self.starts, moment) - 1

    def pieces(self) -> Iterator[Period]:
        """All of them, in order."""
        return (Period(*edges) for edges in pairwise((*self.starts, self.period.until)))


def _starts(period: Period, step: timedelta) -> Iterator[datetime]:
    yield period.since
    start = _EPOCH + ((period.since - _EPOCH) // step + 1) * step
    while start < period.until:
        if min(start - period.since, period.until - start) >= step / 2:
            yield start
        start += step
