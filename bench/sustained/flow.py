"""Rates, backlog and delays of files from arrival to visible rows. No I/O."""

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate

from compactor.core.distributions import Distribution, distribution_of
from compactor.sources.events.sealer import SEAL_INTERVAL_SECONDS

WARM_UP_SECONDS = 90.0
"""By then the sealer has had its first turn, and the manifests that it sealed are done."""

PERIOD_SECONDS = float(SEAL_INTERVAL_SECONDS)
"""Backlogs are compared as means over whole turns of the sealer, since each turn releases many files at once."""

JUDGED_SECONDS = WARM_UP_SECONDS + 2 * PERIOD_SECONDS


@dataclass(frozen=True, slots=True)
class Passage:
    """The times of one file.

    Attributes:
        size_bytes: Its stored size.
        arrived: When it arrived, in seconds on any clock.
        visible: When its rows could be read, on the same clock.
    """

    size_bytes: int
    arrived: float
    visible: float

    @property
    def seconds(self) -> float:
        return self.visible - self.arrived


class Flow:
    """All files of a run that was fed at a steady rate.

    Args:
        passages: The times of each file; at least one.
        fed_seconds: The length of the feeding, from the first arrival.
    """

    def __init__(self, passages: Sequence[Passage], fed_seconds: float) -> None:
        self.began = min(each.arrived for each in passages)
        self.fed_seconds = fed_seconds
        self._passages = passages
        self._arrivals = _Steps([(each.arrived - self.began, each.size_bytes) for each in passages])
        self._visible = _Steps([(each.visible - self.began, each.size_bytes) for each in passages])

    @property
    def input_rate(self) -> float:
        """Bytes a second that came in."""
        return self._arrivals.until(self.fed_seconds) / self.fed_seconds

    @property
    def is_judged(self) -> bool:
        """Whether the feeding was long enough to tell a growing backlog from one that only fills up at first."""
        return self.fed_seconds >= JUDGED_SECONDS

    @property
    def processing_rate(self) -> float:
        """Bytes a second that became visible between the end of the warm-up and that of the feeding."""
        start = WARM_UP_SECONDS if self.is_judged else 0.0
        return (self._visible.until(self.fed_seconds) - self._visible.until(start)) / (self.fed_seconds - start)

    def backlog(self, seconds: float) -> int:
        """Bytes that had arrived and were not visible this many seconds after the first arrival."""
        return self._arrivals.until(seconds) - self._visible.until(seconds)

    def mean_backlog(self, start: float, end: float) -> float:
        """The mean backlog of a period, sampled every second."""
        samples = [self.backlog(start + second) for second in range(int(end - start))]
        return sum(samples) / len(samples)

    @property
    def growth_bytes(self) -> float:
        """How much larger the backlog was in the last turn of the sealer than in the first after the warm-up."""
        first = self.mean_backlog(WARM_UP_SECONDS, WARM_UP_SECONDS + PERIOD_SECONDS)
        return self.mean_backlog(self.fed_seconds - PERIOD_SECONDS, self.fed_seconds) - first

    @property
    def growth_rate(self) -> float:
        """The same as bytes a second."""
        return self.growth_bytes / (self.fed_seconds - WARM_UP_SECONDS - PERIOD_SECONDS)

    @property
    def delays(self) -> Distribution:
        """Seconds from arrival to visible, without the last files, which wait for others that never arrive."""
        until = self.fed_seconds - PERIOD_SECONDS if self.is_judged else self.fed_seconds
        return distribution_of(each.seconds for each in self._passages if each.arrived - self.began <= until)

    @property
    def all_delays(self) -> Distribution:
        """The same of all files."""
        return distribution_of(each.seconds for each in self._passages)


class _Steps:
    """A sum that grows at given moments."""

    def __init__(self, steps: Sequence[tuple[float, int]]) -> None:
        in_order = sorted(steps)
        self._moments = [moment for moment, _ in in_order]
        self._sums = [0, *accumulate(size for _, size in in_order)]

    def until(self, moment: float) -> int:
        return self._sums[bisect_right(self._moments, moment)]
