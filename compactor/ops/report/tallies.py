"""Adds up manifests, one after the other, into the figures of a period. No I/O, and memory that does not grow."""

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, fields
from datetime import datetime, timedelta
from typing import Any, Generic, TypeVar

from compactor.core.distributions import Distribution
from compactor.core.documents.counts import bytes_per_byte, counts_of, without_zeros
from compactor.core.documents.records import Accepted, Commit, DeadLetter, Done
from compactor.core.layout import redrive_number
from compactor.ledger.accounts.account import QuarantinedFile, quarantined_files
from compactor.ledger.sizing import SizedBytes, sized_bytes, sizes_by_partition, with_share
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
    sizes: SizedBytes  # of its Parquet files
    arrivals: tuple[float, ...]  # seconds from the arrival of each compacted file until its rows were visible
    reject_files: tuple[str, ...]  # places of the rejected lines


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
    sla_seconds: float | None,
) -> CommitFacts:
    """Reduce the records of a committed manifest to their figures.

    Args:
        accepted: The record of its acceptance.
        commit: The valid commit.
        done: The record of when its rows were first visible.
        moment: When its rows became visible (see `moment_of`).
        decided_at: When its first generation was decided.
        target_file_bytes: How large an output file should be.
        with_source: Whether the manifest that rejected its redriven lines, if there is one, is of the period as well.
        sla_seconds: How long a file may take to be visible.
    """
    arrivals = arrival_seconds(accepted, commit, done.done_at)
    # Clocks differ: what seems to end before it began took no time.
    duration_seconds = max(0.0, (done.done_at - commit.started_at).total_seconds())
    found, clock_off = counts_of(commit, with_source=with_source), moment - done.done_at
    return CommitFacts(
        moment=moment,
        sums={
            **{name: getattr(found, name) for name in _SUMMED},
            "manifests": 1,
            "late_files": 0 if sla_seconds is None else sum(seconds > sla_seconds for seconds in arrivals),
            "slow_manifests": int(sla_seconds is not None and duration_seconds > sla_seconds / 2),
            "clocks_off": int(bool(clock_off)),
        },
        duration_seconds=duration_seconds,
        work=(commit.started_at + clock_off, decided_at + clock_off),
        rejects=without_zeros(found.rejects_by_reason),
        files_by_status=found.files_by_status,
        for_operator=quarantined_files(commit, moment),
        sizes=sized_bytes(sizes_by_partition(commit), target_file_bytes),
        arrivals=arrivals,
        reject_files=tuple(file.final for file in commit.rejects),
    )


_FINE_SECONDS = 10.0
_MERGE_AT = 4096

T = TypeVar("T")


def _rounded(seconds: float) -> float:
    """To 0.1 s, or to three digits: so a count of times has few different ones."""
    return round(seconds, 1) if seconds < _FINE_SECONDS else float(f"{seconds:.3g}")


class Newest(Generic[T]):
    """The newest `limit` of many things. Of things of one moment, those that came first are kept."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._found: list[tuple[datetime, T]] = []

    def add(self, moment: datetime, thing: T) -> None:
        self._found.append((moment, thing))
        if len(self._found) > 2 * self._limit:
            self._found = self._newest()

    def _newest(self) -> list[tuple[datetime, T]]:
        return sorted(self._found, key=lambda entry: entry[0], reverse=True)[: self._limit]

    def __iter__(self) -> Iterator[T]:
        """From the newest to the oldest."""
        return (thing for _, thing in self._newest())


CHECKED_FILES = 5_000
"""Quarantined files of a period, the newest, of which is read what settled each."""

NEWEST_DEAD_LETTERS = 200
SAMPLED_MANIFESTS = 3
SHOWN_UNREADABLE = 10


@dataclass(slots=True)
class _Sums:
    """What is added up of a bucket, or of the period."""

    counts: Counter[str] = field(default_factory=Counter)
    durations: Counter[float] = field(default_factory=Counter)
    arrivals: Counter[float] = field(default_factory=Counter)

    def add(self, facts: CommitFacts) -> None:
        self.counts.update(facts.sums)
        self.durations[_rounded(facts.duration_seconds)] += 1
        self.arrivals.update(map(_rounded, facts.arrivals))

    def work(self, kind: type[figures.Work]) -> dict[str, Any]:
        """The counts and spreads of a kind of work, by the names of its fields."""
        return {each.name: self.counts[each.name] for each in fields(kind) if each.type is int} | {
            "durations": Distribution(self.durations).spread,
            "latency": Distribution(self.arrivals).spread,
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
        counts: Sums of the whole period by the names of the fields of `Totals`.
        reasons: Rejected lines by reason.
        files_by_status: Files of the committed manifests by the result for each.
        for_operator: The newest quarantined files.
        dead_letters: The newest dead letters, each with its moment.
    """

    def __init__(self, period: Period) -> None:
        self._period = period
        self._grid = Buckets.of(period)
        self._sums = [_Sums() for _ in self._grid.starts]
        self._whole = _Sums()
        self._at_work: list[tuple[datetime, datetime]] = []
        self._merge_at = _MERGE_AT
        self._size_bytes = self._right_sized_bytes = self._small_bytes = 0
        self._unreadable: list[str] = []
        self._unreadable_records = 0
        self.counts = self._whole.counts
        self.step_seconds = self._grid.step_seconds
        self.reasons: dict[str, ReasonTally] = {}
        self.files_by_status = Counter[str]()
        self.for_operator = Newest[QuarantinedFile](CHECKED_FILES)
        self.dead_letters = Newest[tuple[DeadLetter, datetime]](NEWEST_DEAD_LETTERS)
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
        self.dead_letters.add(facts.moment, (facts.letter, facts.moment))
        self.dead_letters_by_reason[facts.letter.reason] += 1
        self.counts.update(dead_letters=1, clocks_off=facts.is_clock_off)

    def add(self, facts: CommitFacts) -> None:
        """Add a committed manifest."""
        self._sums[self._grid.index(facts.moment)].add(facts)
        self._whole.add(facts)
        self.files_by_status.update(facts.files_by_status)
        self._add_work(*facts.work)
        self._size_bytes += facts.sizes.size_bytes
        self._right_sized_bytes += facts.sizes.right_sized_bytes
        self._small_bytes += facts.sizes.small_bytes
        for reason, lines in facts.rejects.items():
            tally = self.reasons.setdefault(reason, ReasonTally())
            tally.lines += lines
            if lines > 0:  # else they were redriven
                tally.manifests += 1
                tally.newest.add(facts.moment, facts.reject_files)
        for file in facts.for_operator:
            self.for_operator.add(facts.moment, file)

    def _add_work(self, began: datetime, ended: datetime) -> None:
        """Add a span of work; spans are merged now and then, so that memory grows with the gaps between them alone."""
        self._at_work.append((max(began, self._period.since), ended))
        if len(self._at_work) >= self._merge_at:
            self._at_work = merged_spans(self._at_work)
            self._merge_at = _MERGE_AT + 2 * len(self._at_work)

    def buckets(self) -> tuple[figures.Bucket, ...]:
        pieces = zip(self._grid.pieces(), self._sums, strict=True)
        for sums in self._sums:  # lines that were redriven in a later part of the period than they were rejected in
            sums.counts["rejected_lines"] = max(0, sums.counts["rejected_lines"])
        return tuple(figures.Bucket(**vars(piece), **sums.work(figures.Bucket)) for piece, sums in pieces)

    def sizes(self) -> SizedBytes:
        return with_share(self._size_bytes, self._right_sized_bytes, self._small_bytes)

    def totals(self) -> figures.Totals:
        work, at_work = self._whole.work(figures.Totals), covered_seconds(self._at_work)
        return figures.Totals(
            **work,
            at_work_seconds=at_work,
            at_work_bytes_per_second=work["input_bytes"] / at_work if at_work else None,
            output_bytes_per_input_byte=bytes_per_byte(work["output_bytes"], work["input_bytes"]),
        )

    def unreadable(self) -> figures.Unreadable:
        return figures.Unreadable(self._unreadable_records, tuple(self._unreadable))
