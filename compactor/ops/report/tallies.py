"""Adds manifests up, one after the other, into the figures of a period. No I/O, and memory that does not grow."""

from collections import Counter
from dataclasses import dataclass, field
from datetime import timedelta

from compactor.ledger.sizing import sizing_hits
from compactor.ops.report.facts import CommitFacts, DeadLetterFacts, Finished
from compactor.ops.report.figures import Bucket, SizeBin, Sizes, Totals, spread_of
from compactor.ops.report.period import Buckets, Period
from compactor.ops.report.tally import CoveredTime, Newest, Tally

BINS_PER_TARGET = 8
"""Bins of the histogram up to the target: a quarter of the target is two of them, so the band ends where bins do."""

BINS = 2 * BINS_PER_TARGET  # up to twice the target; one more takes all that is larger
NEWEST_DEAD_LETTERS = 200
NEWEST_SET_ASIDE = 50
SAMPLED_MANIFESTS = 3
MAX_REASONS = 500
"""Reasons that are counted one by one; the code knows far fewer."""

OTHER_REASONS = "(other reasons)"


@dataclass(slots=True)
class _Sums:
    """What is added up of a bucket."""

    manifests: int = 0
    input_files: int = 0
    input_bytes: int = 0
    output_files: int = 0
    output_bytes: int = 0
    rows: int = 0
    rejected_lines: int = 0
    durations: Tally = field(default_factory=Tally)
    arrivals: Tally = field(default_factory=Tally)

    def add(self, facts: CommitFacts) -> None:
        self.manifests += 1
        self.input_files += facts.summary.input_files
        self.input_bytes += facts.summary.input_bytes
        self.output_files += facts.summary.output_files
        self.output_bytes += facts.summary.output_bytes
        self.rows += facts.rows
        self.rejected_lines += facts.rejected_lines
        self.durations.add(facts.duration_seconds)
        self.arrivals.add_all(facts.arrivals)

    def bucket(self, piece: Period) -> Bucket:
        return Bucket(
            since=piece.since,
            until=piece.until,
            manifests=self.manifests,
            input_files=self.input_files,
            input_bytes=self.input_bytes,
            output_files=self.output_files,
            output_bytes=self.output_bytes,
            rows=self.rows,
            rejected_lines=self.rejected_lines,
            durations=spread_of(self.durations.distribution),
            arrivals=spread_of(self.arrivals.distribution),
        )


@dataclass(slots=True)
class ReasonTally:
    """The rejects of one reason; `newest` has the files of rejects of the newest manifests that have some."""

    lines: int = 0
    manifests: int = 0
    newest: Newest[tuple[str, ...]] = field(default_factory=lambda: Newest(SAMPLED_MANIFESTS))


class Tallies:
    """What was added up so far.

    Args:
        period: What is asked for.
        target_file_bytes: How large an output file should be.

    Attributes:
        reasons: Of rejects.
        dead_letters: The newest.
        with_quarantined: The newest manifests with files that somebody should look at.
    """

    def __init__(self, period: Period, target_file_bytes: int) -> None:
        self._period = period
        self._target_bytes = target_file_bytes
        self._grid = Buckets.of(period)
        self._pieces = list(self._grid.pieces())
        self._sums = [_Sums() for _ in self._pieces]
        self._whole = _Sums()
        self._at_work = CoveredTime()
        self._lines = self._blank_lines = self._clocks_off = 0
        self._set_aside = Counter[str]()
        self._bins = [[0, 0] for _ in range(BINS + 1)]
        self._hits = self._counted = 0
        self.reasons: dict[str, ReasonTally] = {}
        self.dead_letters: Newest[DeadLetterFacts] = Newest(NEWEST_DEAD_LETTERS)
        self.dead_letters_by_reason = Counter[str]()
        self.with_quarantined: Newest[Finished] = Newest(NEWEST_SET_ASIDE)

    @property
    def step_seconds(self) -> int:
        return self._grid.step_seconds

    def add_dead_letter(self, facts: DeadLetterFacts) -> None:
        """Take a manifest that was set aside."""
        self.dead_letters.add(facts.finished.moment, facts)
        self.dead_letters_by_reason[_one_of(self.dead_letters_by_reason, facts.outcome.reason)] += 1
        self._clocks_off += facts.finished.is_clock_off

    def add(self, facts: CommitFacts) -> None:
        """Take a committed manifest."""
        moment = facts.finished.moment
        self._sums[self._grid.index(moment)].add(facts)
        self._whole.add(facts)
        self._lines += facts.lines
        self._blank_lines += facts.blank_lines
        self._clocks_off += facts.finished.is_clock_off
        self._set_aside.update(facts.quarantined)
        # Not from `started_at`: where the driver's clock was off, both ends have to be of the same clock.
        self._at_work.add(max(moment - timedelta(seconds=facts.duration_seconds), self._period.since), moment)
        self._add_sizes(facts.output_sizes)
        self._add_rejects(facts)
        if facts.needs_operator:
            self.with_quarantined.add(moment, facts.finished)

    def _add_sizes(self, sizes: tuple[int, ...]) -> None:
        hits, counted = sizing_hits(sizes, self._target_bytes)
        self._hits += hits
        self._counted += counted
        for size_bytes in sizes:
            self._bins[_bin(size_bytes, self._target_bytes)][0 if counted else 1] += 1

    def _add_rejects(self, facts: CommitFacts) -> None:
        for reason, lines in facts.rejects.items():
            tally = self.reasons.setdefault(_one_of(self.reasons, reason), ReasonTally())
            tally.lines += lines
            tally.manifests += 1
            tally.newest.add(facts.finished.moment, facts.reject_files)

    def buckets(self) -> tuple[Bucket, ...]:
        return tuple(sums.bucket(piece) for sums, piece in zip(self._sums, self._pieces, strict=True))

    def sizes(self) -> Sizes:
        step = self._target_bytes / BINS_PER_TARGET
        bins = tuple(
            SizeBin(number * step, None if number == BINS else (number + 1) * step, *counts)
            for number, counts in enumerate(self._bins)
        )
        return Sizes(self._target_bytes, bins, self._counted, self._hits)

    def totals(self, *, failed_attempts: int, redrives: int) -> Totals:
        """The whole period.

        Args:
            failed_attempts: Attempts that ended without an outcome.
            redrives: How often something was put back.
        """
        whole = self._whole
        return Totals(
            manifests=whole.manifests,
            dead_letters=self.dead_letters.seen,
            failed_attempts=failed_attempts,
            redrives=redrives,
            input_files=whole.input_files,
            input_bytes=whole.input_bytes,
            output_files=whole.output_files,
            output_bytes=whole.output_bytes,
            lines=self._lines,
            rows=whole.rows,
            rejected_lines=whole.rejected_lines,
            blank_lines=self._blank_lines,
            quarantined=dict(self._set_aside),
            at_work_seconds=self._at_work.seconds,
            clocks_off=self._clocks_off,
            durations=spread_of(whole.durations.distribution),
            arrivals=spread_of(whole.arrivals.distribution),
        )


def _bin(size_bytes: int, target_bytes: int) -> int:
    """Which bin a file is in: above its lower end, up to its upper one. An upper end of the band is thus within it."""
    return min(BINS, max(0, -(-size_bytes * BINS_PER_TARGET // target_bytes) - 1))


def _one_of(known: Counter[str] | dict[str, ReasonTally], reason: str) -> str:
    return reason if reason in known or len(known) < MAX_REASONS else OTHER_REASONS
