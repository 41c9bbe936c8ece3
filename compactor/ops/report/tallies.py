"""Adds up manifests, one after the other, into the figures of a period. No I/O, and memory that does not grow."""

import heapq
import itertools
import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields
from datetime import datetime, timedelta
from typing import Any, Generic, TypeVar

from compactor.core.distributions import Distribution
from compactor.core.documents.counts import bytes_per_byte, counts_of, without_zeros
from compactor.core.documents.records import Accepted, Commit, Done
from compactor.core.layout import redrive_number, root_id
from compactor.ledger.accounts.account import QuarantinedFile, quarantined_files
from compactor.ledger.sizing import sized_bytes, sizes_by_partition, sizing_hits, with_share
from compactor.ledger.work_time import arrival_seconds, covered_seconds, merged_spans
from compactor.ops.report import figures
from compactor.ops.report.period import Buckets, Period

_SUMMED = (
    *("input_files", "input_bytes", "output_files", "output_bytes"),
    *("lines", "rows", "rejected_lines", "blank_lines", "erased_lines"),
)

CLOCK_TOLERANCE_SECONDS = 300.0
"""How far the clock of a driver may differ from that of the store before the store is believed instead."""


def moment_of(done_at: datetime, written_at: datetime) -> datetime:
    """When something became visible: as its record says, unless the clock that dated it was wrong.

    This does not depend on the period asked for, so adjacent periods count everything once.
    """
    return done_at if abs(done_at - written_at) <= timedelta(seconds=CLOCK_TOLERANCE_SECONDS) else written_at


@dataclass(frozen=True, slots=True)
class CommitFacts:
    """The figures of a committed manifest."""

    moment: datetime  # when its rows became visible (see `moment_of`)
    sums: dict[str, int]  # by the names of the fields of `Totals`
    duration_seconds: float
    work: tuple[datetime, datetime]  # from the start of the successful attempt to its decision
    rejects: Counter[str]  # rejected lines by reason
    files_by_status: Counter[str]  # files by the result for each
    for_operator: list[QuarantinedFile]  # those that were quarantined
    output_sizes: list[list[int]]  # bytes of each Parquet file, together those of one partition
    arrivals: tuple[float, ...]  # seconds from the arrival of each compacted file until its rows were visible
    reject_files: tuple[str, ...]  # places of the rejected lines


@dataclass(frozen=True, slots=True)
class DeadLetterFacts:
    """A dead letter."""

    letter: figures.DeadLetterLine
    is_clock_off: bool


def commit_facts(
    moment: datetime,
    accepted: Accepted,
    commit: Commit,
    done: Done,
    *,
    decided_at: datetime,
    with_source: bool,
    sla_seconds: float | None = None,
) -> CommitFacts:
    """Reduce the records of a committed manifest to their figures.

    Args:
        moment: When its rows became visible (see `moment_of`).
        accepted: The record of its acceptance.
        commit: The valid commit.
        done: The record of when its rows were first visible.
        decided_at: When its first generation was decided.
        with_source: Whether the manifest that rejected its redriven lines, if there is one, is of the period as well.
        sla_seconds: How long a file may take to be visible.
    """
    arrivals = arrival_seconds(accepted, commit, done.done_at)
    # Clocks differ: what seems to end before it began took no time.
    duration_seconds = max(0.0, (done.done_at - commit.started_at).total_seconds())
    late = 0 if sla_seconds is None else sum(seconds > sla_seconds for seconds in arrivals)
    found, clock_off = counts_of(commit, with_source=with_source), moment - done.done_at
    return CommitFacts(
        moment=moment,
        sums={
            **{name: getattr(found, name) for name in _SUMMED},
            "manifests": 1,
            "late_files": late,
            "late_redriven_files": late if root_id(commit.manifest_id) != commit.manifest_id else 0,
            "slow_manifests": int(sla_seconds is not None and duration_seconds > sla_seconds / 2),
            "clocks_off": int(bool(clock_off)),
        },
        duration_seconds=duration_seconds,
        work=(commit.started_at + clock_off, decided_at + clock_off),
        rejects=without_zeros(found.rejects_by_reason),
        files_by_status=found.files_by_status,
        for_operator=quarantined_files(commit, moment),
        output_sizes=sizes_by_partition(commit),
        arrivals=arrivals,
        reject_files=tuple(file.final for file in commit.rejects),
    )


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

    def add_records(self, records: Mapping[str, datetime]) -> None:
        """Count what needs no read of a record: redrives, and attempts that failed without an outcome."""
        for name, written_at in records.items():
            if self._period.holds(written_at):
                self.counts["failed_attempts"] += name.endswith("-failed.json")
                self.counts["redrives"] += redrive_number(name) is not None

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
