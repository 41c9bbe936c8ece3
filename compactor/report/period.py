"""The time that a report is about, and how it is cut into buckets. No I/O."""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

MAX_BUCKETS = 48
"""What can be told apart in one chart. A bucket that the period cuts at either end comes on top."""

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
    """A period in pieces that begin at round times of UTC; the first and the last may be cut short.

    Attributes:
        period: All of it.
        step_seconds: The length of a whole piece.
    """

    period: Period
    step_seconds: int

    @classmethod
    def of(cls, period: Period) -> "Buckets":
        """The finest pieces of which there are at most `MAX_BUCKETS` whole ones."""
        for step_seconds in STEPS_SECONDS:
            if period.seconds <= step_seconds * MAX_BUCKETS:
                return cls(period, step_seconds)
        longest = STEPS_SECONDS[-1]
        return cls(period, longest * math.ceil(period.seconds / longest / MAX_BUCKETS))

    @property
    def _first(self) -> int:
        return self._number(self.period.since)

    def _number(self, moment: datetime) -> int:
        return (moment - _EPOCH) // timedelta(seconds=self.step_seconds)

    def index(self, moment: datetime) -> int:
        """Which piece, from 0, a moment of the period is in."""
        return self._number(moment) - self._first

    def pieces(self) -> Iterator[Period]:
        """All of them, in order."""
        step = timedelta(seconds=self.step_seconds)
        start = _EPOCH + self._first * step
        while start < self.period.until:
            yield Period(max(start, self.period.since), min(start + step, self.period.until))
            start += step
