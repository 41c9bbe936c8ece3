"""Adds up manifests, one after the other, into the figures of a period. No I/O, and memory that does not grow."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from datetime import datetime
from typing import Any

from compactor.core.documents.totals import bytes_per_byte
from compactor.ledger.accounts.account import QuarantinedFile
from compactor.ledger.sizing import sized_bytes, sizing_hits, with_share
from compactor.ops.report import figures
from compactor.ops.report.period import Buckets, Period
from compactor.ops.report.reading.facts import CommitFacts, DeadLetterFacts
from compactor.ops.report.reading.sums import CoveredTime, Newest, Tally

CHECKED_FILES = 5_000
"""Quarantined files of a period, the newest, of which is read what settled each."""

BINS_PER_TARGET = 8  # the ends of the tolerance are ends of bins
BINS = 2 * BINS_PER_TARGET  # up to twice the target; one more takes all larger files
NEWEST_DEAD_LETTERS = 200
SAMPLED_MANIFESTS = 3
MAX_REASONS = 500  # counted one by one; the product itself has far fewer
OTHER_REASONS = "(other reasons)"
SHOWN_UNREADABLE = 10


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

    def work(self, kind: type[figures.Work]) -> dict[str, Any]:
        """The counts and spreads of a kind of work, by the names of its fields."""
        return {each.name: self.counts[each.name] for each in fields(kind) if each.type is int} | {
            "durations": figures.spread_of(figures.Durations, self.durations.distribution),
            "latency": figures.spread_of(figures.Latency, self.arrivals.distribution),
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
        counts: Sums of the whole period by the names of the fields of `Totals`; for others to add to.
        reasons: Rejected lines by reason.
        files_by_status: Files of the committed manifests by the result for each.
        for_operator: The newest quarantined files.
        dead_letters: The newest dead letters.
    """

    def __init__(self, period: Period, target_file_bytes: int) -> None:
        self._period = period
        self._target_bytes = target_file_bytes
        self._grid = Buckets.of(period)
        self._sums = [_Sums() for _ in self._grid.starts]
        self._whole = _Sums()
        self._at_work = CoveredTime()
        self._visible = list[datetime]()  # when the first rows became visible, and the last ones
        self._bins = [[0, 0] for _ in range(BINS + 1)]
        self._hits = self._counted = 0
        self._size_bytes = self._right_sized_bytes = self._small_bytes = 0
        self._unreadable: list[str] = []
        self._unreadable_records = 0
        self.counts = self._whole.counts
        self.step_seconds = self._grid.step_seconds
        self.reasons: dict[str, ReasonTally] = {}
        self.files_by_status = Counter[str]()
        self.for_operator = Newest[QuarantinedFile](CHECKED_FILES)
        self.dead_letters = Newest[figures.DeadLetterLine](NEWEST_DEAD_LETTERS)
        self.dead_letters_by_reason = Counter[str]()

    def add_unreadable(self, message: str) -> None:
        """Add a record that is damaged."""
        self._unreadable += [message][: SHOWN_UNREADABLE - len(self._unreadable)]
        self._unreadable_records += 1

    def add_dead_letter(self, facts: DeadLetterFacts) -> None:
        letter = facts.letter
        self.dead_letters.add(letter.done_at, letter)
        self.dead_letters_by_reason[_bounded(letter.reason, self.dead_letters_by_reason)] += 1
        self.counts.update(dead_letters=1, clocks_off=facts.is_clock_off)

    def add(self, facts: CommitFacts) -> None:
        """Add a committed manifest."""
        moment = facts.moment
        self._sums[self._grid.index(moment)].add(facts)
        self._whole.add(facts)
        self.files_by_status.update(facts.files_by_status)
        began, ended = facts.work
        self._at_work.add(max(began, self._period.since), ended)
        if facts.sums["rows"]:
            self._visible = [min([moment, *self._visible]), max([moment, *self._visible])]
        self._add_sizes(facts.output_sizes)
        for reason, lines in facts.rejects.items():
            tally = self.reasons.setdefault(_bounded(reason, self.reasons), ReasonTally())
            tally.lines += lines
            if lines > 0:  # else they were redriven
                tally.manifests += 1
                tally.newest.add(moment, facts.reject_files)
        for file in facts.for_operator:
            self.for_operator.add(moment, file)

    def _add_sizes(self, partitions: Sequence[Sequence[int]]) -> None:
        found = sized_bytes(partitions, self._target_bytes)
        self._size_bytes += found.size_bytes
        self._right_sized_bytes += found.right_sized_bytes
        self._small_bytes += found.small_bytes
        for sizes in partitions:
            hits, counted = sizing_hits(sizes, self._target_bytes)
            self._hits += hits
            self._counted += counted
            for size_bytes in sizes:
                self._bins[_bin(size_bytes, self._target_bytes)][0 if counted else 1] += 1

    def buckets(self) -> tuple[figures.Bucket, ...]:
        pieces = zip(self._grid.pieces(), self._sums, strict=True)
        for sums in self._sums:  # lines that were redriven in a later part of the period than they were rejected in
            sums.counts["rejected_lines"] = max(0, sums.counts["rejected_lines"])
        return tuple(figures.Bucket(**vars(piece), **sums.work(figures.Bucket)) for piece, sums in pieces)

    def sizes(self) -> figures.Sizes:
        step = self._target_bytes / BINS_PER_TARGET
        bins = tuple(
            figures.SizeBin(number * step, None if number == BINS else (number + 1) * step, *counts)
            for number, counts in enumerate(self._bins)
        )
        by_bytes = with_share(self._size_bytes, self._right_sized_bytes, self._small_bytes)
        return figures.Sizes(self._target_bytes, bins, self._counted, self._hits, by_bytes)

    def totals(self) -> figures.Totals:
        work, at_work = self._whole.work(figures.Totals), self._at_work.seconds
        first, last = self._visible or (None, None)
        return figures.Totals(
            **work,
            at_work_seconds=at_work,
            at_work_bytes_per_second=work["input_bytes"] / at_work if at_work else None,
            output_bytes_per_input_byte=bytes_per_byte(work["output_bytes"], work["input_bytes"]),
            first_visible_at=first,
            last_visible_at=last,
        )

    def unreadable(self) -> figures.Unreadable:
        return figures.Unreadable(self._unreadable_records, tuple(self._unreadable))


def _bin(size_bytes: int, target_bytes: int) -> int:
    """The bin of a file. A size at the upper end of a bin is in it, so the tolerance includes its own end."""
    return min(BINS, max(0, -(-size_bytes * BINS_PER_TARGET // target_bytes) - 1))


def _bounded(reason: str, known: Mapping[str, object]) -> str:
    return reason if reason in known or len(known) < MAX_REASONS else OTHER_REASONS
