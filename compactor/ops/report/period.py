"""The period of a report, and its buckets. No I/O."""

import math
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from itertools import pairwise

MAX_BUCKETS = 48
"""The most that one chart can show. The period may cut short one more."""

DAY_SECONDS = 86_400
STEPS_SECONDS = (
    *(1, 5, 15, 30),
    *(number * 60 for number in (1, 5, 10, 15, 30)),
    *(number * 3600 for number in (1, 2, 3, 6, 12)),
    *(number * DAY_SECONDS for number in (1, 7, 30)),
)

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_FIRST, _LAST = datetime.min.replace(tzinfo=UTC), datetime.max.replace(tzinfo=UTC)


@dataclass(frozen=True)
class Period:
    """A time span in UTC."""

    since: datetime  # its start
    until: datetime  # its end, which is not part of it

    @property
    def seconds(self) -> float:
        return (self.until - self.since).total_seconds()

    def holds(self, moment: datetime) -> bool:
        return self.since <= moment < self.until

    def widened(self, seconds: float) -> "Period":
        """The period with this much more time at both ends, within the range of `datetime`."""
        margin = timedelta(seconds=seconds)
        since = max(self.since, _FIRST + margin) - margin
        return Period(since, min(self.until, _LAST - margin) + margin)


def step_for(period: Period, most: int, steps_seconds: Sequence[int] = STEPS_SECONDS) -> int:
    """The shortest round step that fits at most `most` times into a period."""
    longest = steps_seconds[-1]
    return next(
        (each for each in steps_seconds if period.seconds <= each * most),
        longest * math.ceil(period.seconds / longest / most),
    )


def round_moments(period: Period, step_seconds: int) -> Iterator[datetime]:
    """The moments of a period that are multiples of a step."""
    step = timedelta(seconds=step_seconds)
    moment = _EPOCH - (_EPOCH - period.since) // step * step
    while moment < period.until:
        yield moment
        moment += step


def pieces_of(period: Period) -> list[Period]:
    """The finest pieces of a period of which at most `MAX_BUCKETS` are complete, in order. They start at round times.

    The first and the last piece may be shorter, but not below half a step: a shorter rest joins its neighbour, because
    a rate over a few seconds would mislead.
    """
    step_seconds = step_for(period, MAX_BUCKETS)
    half = timedelta(seconds=step_seconds / 2)
    moments = round_moments(period, step_seconds)
    inner = (each for each in moments if min(each - period.since, period.until - each) >= half)
    return [Period(*edges) for edges in pairwise((period.since, *inner, period.until))]


def piece_at(pieces: Sequence[Period], moment: datetime) -> int:
    """The number of the piece that contains a moment of the period."""
    return bisect_right(pieces, moment, key=lambda each: each.since) - 1
