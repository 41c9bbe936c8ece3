"""Adds up manifests into the figures of a period, in memory that does not grow with them. No I/O."""

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, fields, replace
from datetime import datetime, timedelta
from heapq import nlargest
from typing import Any, Generic, TypeVar

from compactor.core.distributions import Distribution
from compactor.core.documents.changes import Commit, DeadLetter
from compactor.core.documents.counts import Counts, bytes_per_byte, counts_of
from compactor.core.documents.records import Accepted, Done
from compactor.core.layout import redrive_number
from compactor.ledger.accounts.account import QuarantinedFile, quarantined_files
from compactor.ledger.sizing import SizedBytes, sized_bytes, sizes_by_partition, with_share
from compactor.ledger.work_time import arrival_seconds, covered_seconds, merged_spans
from compactor.ops.report import figures
from compactor.ops.report.period import Period, piece_at, pieces_of

CLOCK_TOLERANCE_SECONDS = 300.0
"""If the clock of a driver differs more from the store, the store's time counts."""


def moment_of(done_at: datetime, written_at: datetime) -> datetime:
    """When something became visible: the recorded time, or the store's time if the record's clock was wrong.

    This does not depend on the period asked for, so adjacent periods count everything once.
    """
    return done_at if abs(done_at - written_at) <= timedelta(seconds=CLOCK_TOLERANCE_SECONDS) else written_at


@dataclass(frozen=True, slots=True)
class CommitFacts:
    """The figures of a committed manifest."""

    moment: datetime  # when its rows became visible (see `moment_of`)
    is_clock_off: bool
    counts: Counts
    duration_seconds: float
    work: tuple[datetime, datetime]  # from the start of the successful attempt to its decision
    for_operator: list[QuarantinedFile]
    sizes: SizedBytes  # of its Parquet files
    arrivals: tuple[float, ...]  # seconds from the arrival of each compacted file until its rows were visible
    reject_files: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class DeadLetterFacts:
    """A dead letter."""

    letter: DeadLetter
    moment: datetime  # when it was one (see `moment_of`)
    is_clock_off: bool


def commit_facts(
    accepted: Accepted,
    commit: Commit,
    done: Done,
    *,
    moment: datetime,
    decided_at: datetime,
    target_file_bytes: int,
    with_source: bool,
) -> CommitFacts:
    """Reduce the records of a committed manifest to their figures.

    `decided_at` is the time of its first generation; `with_source` is whether the manifest that rejected its redriven
    lines, if there is one, is in the period as well.
    """
    clock_off = moment - done.done_at
    return CommitFacts(
        moment=moment,
        is_clock_off=bool(clock_off),
        # Skips data that no report shows: adding it up would cost more with each column that ever had a misfit.
        counts=replace(counts_of(commit, with_source=with_source), misfits=Counter(), redriven_by_reason=Counter()),
        # Clocks differ: an end before its start counts as no time.
        duration_seconds=max(0.0, (done.done_at - commit.started_at).total_seconds()),
        work=(commit.started_at + clock_off, decided_at + clock_off),
        for_operator=quarantined_files(commit, moment),
        sizes=sized_bytes(sizes_by_partition(commit), target_file_bytes),
        arrivals=arrival_seconds(accepted, commit, done.done_at),
        reject_files=tuple(file.final for file in commit.rejects),
    )


_FINE_SECONDS = 10.0
_MERGE_AT = 4096

T = TypeVar("T")


def _rounded(seconds: float) -> float:
    """Round to 0.1 s, or to three digits, so that many times have few different values."""
    return round(seconds, 1) if seconds < _FINE_SECONDS else float(f"{seconds:.3g}")


class Newest(Generic[T]):
    """The newest `limit` of many things. Of things with the same moment, the first ones are kept."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._found: list[tuple[datetime, T]] = []

    def add(self, moment: datetime, thing: T) -> None:
        self._found.append((moment, thing))
        if len(self._found) > 2 * self._limit:
            self._found = self._newest()

    def _newest(self) -> list[tuple[datetime, T]]:
        return nlargest(self._limit, self._found, key=lambda entry: entry[0])

    def __iter__(self) -> Iterator[T]:
        """From newest to oldest."""
        return (thing for _, thing in self._newest())


CHECKED_FILES = 5_000
"""The newest quarantined files of a period: for each the report reads what settled it."""

NEWEST_DEAD_LETTERS = 200
SAMPLED_MANIFESTS = 3
SHOWN_UNREADABLE = 10

_COUNTED = [each.name for each in fields(figures.Work) if each.type is int]


@dataclass(slots=True)
class _Sums:
    """The sums of a bucket, or of the period."""

    counts: Counts = field(default_factory=Counts)
    durations: Counter[float] = field(default_factory=Counter)
    arrivals: Counter[float] = field(default_factory=Counter)

    def add(self, facts: CommitFacts) -> None:
        self.counts += facts.counts
        self.durations[_rounded(facts.duration_seconds)] += 1
        self.arrivals.update(map(_rounded, facts.arrivals))

    def work(self) -> dict[str, Any]:
        """The fields of `Work`."""
        return {name: getattr(self.counts, name) for name in _COUNTED} | {
            "durations": Distribution(self.durations).spread,
            "latency": Distribution(self.arrivals).spread,
        }


@dataclass(slots=True)
class RejectingManifests:
    """The manifests that rejected lines for one reason; `newest` has the reject files of the newest of them."""

    manifests: int = 0
    newest: Newest[tuple[str, ...]] = field(default_factory=lambda: Newest(SAMPLED_MANIFESTS))


class Tallies:
    """The sums so far.

    Attributes:
        more: Sums that `Counts` does not have, by the names of the fields of `Totals`.
        rejecting: By the reason for which lines were rejected.
        for_operator: The newest quarantined files.
        dead_letters: The newest dead letters, each with its moment.
        unreadable: Records that are damaged.
    """

    def __init__(self, period: Period, sla_seconds: float | None) -> None:
        self._period = period
        self._sla_seconds = sla_seconds
        self._pieces = pieces_of(period)
        self._sums = [_Sums() for _ in self._pieces]
        self._whole = _Sums()
        self._at_work: list[tuple[datetime, datetime]] = []
        self._merge_at = _MERGE_AT
        self.sizes = SizedBytes(0, 0, 0, None)
        self.more = Counter[str](late_files=0, slow_manifests=0, clocks_off=0, failed_attempts=0, redrives=0)
        self.rejecting: dict[str, RejectingManifests] = {}
        self.for_operator = Newest[QuarantinedFile](CHECKED_FILES)
        self.dead_letters = Newest[tuple[DeadLetter, datetime]](NEWEST_DEAD_LETTERS)
        self.dead_letters_by_reason = Counter[str]()
        self.unreadable = figures.Unreadable(0, ())

    @property
    def counts(self) -> Counts:
        """The counts of the whole period."""
        return self._whole.counts

    def add_records(self, records: Mapping[str, datetime]) -> None:
        """Count listed names: redrives, and attempts that failed without an outcome."""
        for name, written_at in records.items():
            if self._period.holds(written_at):
                self.more["failed_attempts"] += name.endswith("-failed.json")
                self.more["redrives"] += redrive_number(name) is not None

    def add_unreadable(self, message: str) -> None:
        """Add a damaged record."""
        messages = (*self.unreadable.messages, message)[:SHOWN_UNREADABLE]
        self.unreadable = figures.Unreadable(self.unreadable.records + 1, messages)

    def add_dead_letter(self, facts: DeadLetterFacts) -> None:
        self.dead_letters.add(facts.moment, (facts.letter, facts.moment))
        self.dead_letters_by_reason[facts.letter.reason] += 1
        self.more["clocks_off"] += facts.is_clock_off

    def add(self, facts: CommitFacts) -> None:
        """Add a committed manifest."""
        self._sums[piece_at(self._pieces, facts.moment)].add(facts)
        self._whole.add(facts)
        self.more["clocks_off"] += facts.is_clock_off
        if self._sla_seconds is not None:
            self.more["late_files"] += sum(seconds > self._sla_seconds for seconds in facts.arrivals)
            self.more["slow_manifests"] += facts.duration_seconds > self._sla_seconds / 2
        self._add_work(*facts.work)
        old, new = self.sizes, facts.sizes
        self.sizes = with_share(
            old.size_bytes + new.size_bytes,
            old.right_sized_bytes + new.right_sized_bytes,
            old.small_bytes + new.small_bytes,
        )
        for reason, lines in facts.counts.rejects_by_reason.items():
            if lines > 0:  # else they were redriven
                found = self.rejecting.setdefault(reason, RejectingManifests())
                found.manifests += 1
                found.newest.add(facts.moment, facts.reject_files)
        for file in facts.for_operator:
            self.for_operator.add(facts.moment, file)

    def _add_work(self, began: datetime, ended: datetime) -> None:
        """Add a span of work; overlapping spans are merged at intervals, so that memory grows only with gaps."""
        self._at_work.append((max(began, self._period.since), ended))
        if len(self._at_work) >= self._merge_at:
            self._at_work = merged_spans(self._at_work)
            self._merge_at = _MERGE_AT + 2 * len(self._at_work)

    def buckets(self) -> Iterator[figures.Bucket]:
        for piece, sums in zip(self._pieces, self._sums, strict=True):
            bucket = figures.Bucket(**vars(piece), **sums.work())
            # Lines may be redriven in a later bucket than they were rejected in.
            yield replace(bucket, rejected_lines=max(0, bucket.rejected_lines))

    def totals(self) -> figures.Totals:
        counts, at_work = self.counts, covered_seconds(self._at_work)
        more: Any = self.more
        return figures.Totals(
            **self._whole.work(),
            **more,
            dead_letters=self.dead_letters_by_reason.total(),
            lines=counts.lines,
            blank_lines=counts.blank_lines,
            erased_lines=counts.erased_lines,
            at_work_seconds=at_work,
            at_work_bytes_per_second=counts.input_bytes / at_work if at_work else None,
            output_bytes_per_input_byte=bytes_per_byte(counts.output_bytes, counts.input_bytes),
        )
