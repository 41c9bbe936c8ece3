"""Adds up manifests, one after the other, into the figures of a period. No I/O, and memory that does not grow."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from datetime import timedelta
from typing import Any

from compactor.core.records import NEEDS_OPERATOR
from compactor.ledger.sizing import sizing_hits
from compactor.ops.report.facts import CommitFacts, DeadLetterFacts, Finished
from compactor.ops.report.figures import Bucket, SizeBin, Sizes, Spread, Totals, Work
from compactor.ops.report.period import Buckets, Period
from compactor.ops.report.tally import CoveredTime, Newest, Tally

BINS_PER_TARGET = 8  # the ends of the tolerance are ends of bins
BINS = 2 * BINS_PER_TARGET  # up to twice the target; one more takes all larger files
NEWEST_DEAD_LETTERS = 200
NEWEST_QUARANTINED = 50
SAMPLED_MANIFESTS = 3
MAX_REASONS = 500  # counted one by one; the product itself has far fewer
OTHER_REASONS = "(other reasons)"
_SUMMED = [each.name for each in fields(Work) if each.name not in {"durations", "arrivals"}]


@dataclass(slots=True)
class _Sums:
    """What is added up of a bucket, or of the period."""

    counts: Counter[str] = field(default_factory=Counter)
    durations: Tally = field(default_factory=Tally)
    arrivals: Tally = field(default_factory=Tally)

    def add(self, facts: CommitFacts) -> None:
        self.counts.update(facts.sums)
        self.durations.add(facts.duration_seconds)
        self.arrivals.add(*facts.arrivals)

    def work(self) -> dict[str, Any]:
        """The fields of `Work`."""
        spreads = {"durations": self.durations, "arrivals": self.arrivals}
        return {name: self.counts[name] for name in _SUMMED} | {
            name: Spread.of(tally.distribution) for name, tally in spreads.items()
        }


@dataclass(slots=True)
class ReasonTally:
    """The rejected lines of one reason; `newest` has the places of the newest manifests with some."""

    lines: int = 0
    manifests: int = 0
    newest: Newest[tuple[str, ...]] = field(default_factory=lambda: Newest(SAMPLED_MANIFESTS))


class Tallies:
    """The sums so far.

    Attributes:
        reasons: Rejected lines by reason.
        dead_letters: The newest dead letters.
        with_quarantined: The newest manifests with quarantined files that need an operator.
    """

    def __init__(self, period: Period, target_file_bytes: int) -> None:
        self._period = period
        self._target_bytes = target_file_bytes
        self._grid = Buckets.of(period)
        self._sums = [_Sums() for _ in self._grid.starts]
        self._whole = _Sums()
        self._at_work = CoveredTime()
        self._quarantined = Counter[str]()
        self._bins = [[0, 0] for _ in range(BINS + 1)]
        self._hits = self._counted = 0
        self.step_seconds = self._grid.step_seconds
        self.reasons: dict[str, ReasonTally] = {}
        self.dead_letters: Newest[DeadLetterFacts] = Newest(NEWEST_DEAD_LETTERS)
        self.dead_letters_by_reason = Counter[str]()
        self.with_quarantined: Newest[Finished] = Newest(NEWEST_QUARANTINED)

    def add_dead_letter(self, facts: DeadLetterFacts) -> None:
        self.dead_letters.add(facts.finished.moment, facts)
        self.dead_letters_by_reason[_bounded(facts.outcome.reason, self.dead_letters_by_reason)] += 1
        self._whole.counts["clocks_off"] += facts.finished.is_clock_off

    def add(self, facts: CommitFacts) -> None:
        """Add a committed manifest."""
        moment = facts.finished.moment
        self._sums[self._grid.index(moment)].add(facts)
        self._whole.add(facts)
        self._quarantined.update(facts.quarantined)
        # Not from `started_at`: where the driver's clock was off, both ends have to be of the same clock.
        self._at_work.add(max(moment - timedelta(seconds=facts.duration_seconds), self._period.since), moment)
        hits, counted = sizing_hits(facts.output_sizes, self._target_bytes)
        self._hits += hits
        self._counted += counted
        for size_bytes in facts.output_sizes:
            self._bins[_bin(size_bytes, self._target_bytes)][0 if counted else 1] += 1
        for reason, lines in facts.rejects.items():
            tally = self.reasons.setdefault(_bounded(reason, self.reasons), ReasonTally())
            tally.lines += lines
            tally.manifests += 1
            tally.newest.add(moment, facts.reject_files)
        if NEEDS_OPERATOR & facts.quarantined.keys():
            self.with_quarantined.add(moment, facts.finished)

    def buckets(self) -> tuple[Bucket, ...]:
        pieces = zip(self._grid.pieces(), self._sums, strict=True)
        return tuple(Bucket(since=piece.since, until=piece.until, **sums.work()) for piece, sums in pieces)

    def sizes(self) -> Sizes:
        step = self._target_bytes / BINS_PER_TARGET
        bins = tuple(
            SizeBin(number * step, None if number == BINS else (number + 1) * step, *counts)
            for number, counts in enumerate(self._bins)
        )
        return Sizes(self._target_bytes, bins, self._counted, self._hits)

    def totals(self, *, failed_attempts: int, redrives: int) -> Totals:
        counts = self._whole.counts
        return Totals(
            **self._whole.work(),
            lines=counts["lines"],
            blank_lines=counts["blank_lines"],
            clocks_off=counts["clocks_off"],
            dead_letters=self.dead_letters.seen,
            failed_attempts=failed_attempts,
            redrives=redrives,
            quarantined=dict(self._quarantined),
            at_work_seconds=self._at_work.seconds,
        )


def _bin(size_bytes: int, target_bytes: int) -> int:
    """The bin of a file. A size at the upper end of a bin is in it, so the tolerance includes its own end."""
    return min(BINS, max(0, -(-size_bytes * BINS_PER_TARGET // target_bytes) - 1))


def _bounded(reason: str, known: Mapping[str, object]) -> str:
    return reason if reason in known or len(known) < MAX_REASONS else OTHER_REASONS
