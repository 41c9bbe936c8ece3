"""Closes quiet dates: verifies what no summary has yet, and appends a summary of it to the log.

Any number of processes may close at once, and each may die at any point. A summary takes the next place in the log,
which only one process can create; a process that loses the place reads the winner's summary first. Marks are deleted
last, and only those that existed before the records were read. So a manifest that ends meanwhile keeps its mark, and
goes into an addition.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from compactor.core.documents.closed_dates import ClosedDate, ClosedTotals, ClosingBegun, DoubledVersion, totals_with
from compactor.core.errors import RecordUnreadable
from compactor.core.layout import ManifestKey, ledger_order
from compactor.core.map_ordered import map_ordered
from compactor.core.results import as_document, only
from compactor.core.text.formatting import count, duration
from compactor.ledger.history.closed_dates import ClosedDates, Mark
from compactor.ledger.history.unsummarised import (
    Unsummarised,
    marked,
    recorded,
    summarised_generations,
    unsummarised_of,
)
from compactor.ledger.state import State
from compactor.ops.closing.draft import Collected, Draft, VersionIndex, in_order, open_things, shared_within
from compactor.ops.verify.doubled import doubled_versions
from compactor.ops.verify.report import Discrepancy, VerifyResult
from compactor.ops.verify.verifier import Verifier, superseded_counts
from compactor.telemetry.logs import log_event


@dataclass(frozen=True, slots=True)
class Summarised:
    """One summary that was written."""

    date: str
    number: int  # 1 closed the date; a higher one is an addition
    manifests: int
    files: int  # number of file versions with rows


@dataclass(frozen=True, slots=True)
class LeftOpen:
    """One date that stays open, or whose addition waits."""

    date: str
    why: str  # the reason, in words
    is_wrong: bool = False  # whether there is an inconsistency, rather than a date that is still too recent


@as_document(shows=("needs_operator",))
@dataclass(frozen=True, slots=True)
class ClosingReport:
    """Which dates were closed, and which were not."""

    summarised: Sequence[Summarised] = ()  # summaries that were written
    left_open: Sequence[LeftOpen] = ()  # dates that stay open, or whose addition waits
    discrepancies: Sequence[Discrepancy] = ()  # inconsistencies that keep dates open, or duplicates

    @property
    def needs_operator(self) -> bool:
        """Whether there is an inconsistency: the exit code is 3."""
        return bool(self.discrepancies) or any(each.is_wrong for each in self.left_open)


ClosingFinding = Summarised | LeftOpen | Discrepancy


def report_of(findings: Iterable[ClosingFinding]) -> ClosingReport:
    """Collect the results per date, in order."""
    parts = list(findings)
    return ClosingReport(only(Summarised, parts), only(LeftOpen, parts), only(Discrepancy, parts))


@dataclass(frozen=True, slots=True)
class _Candidates:
    """A date's manifests that are in no summary, and their marks."""

    date: str
    marks: list[Mark]
    new: Unsummarised

    @property
    def places(self) -> Sequence[int]:
        return self.new.totals.places(self.date)


@dataclass(frozen=True, kw_only=True)
class Closer:
    """Closes dates. Safe while jobs, redrives, rebuilds and other closers run.

    Attributes:
        close_after: How long a date must have been without a new record.
    """

    state: State
    verifier: Verifier
    close_after: timedelta

    @property
    def _dates(self) -> ClosedDates:
        return ClosedDates(self.state.store, self.state.layout)

    def has_begun(self) -> bool:
        """Whether `data close` was ever called here."""
        return self._dates.has_begun()

    def close(self) -> ClosingReport:
        """Close quiet dates, one after the other."""
        report = report_of(self._close())
        for each in report.left_open:
            if each.is_wrong:
                log_event("date.not_closed", date=each.date, why=each.why)
        return report

    def _close(self) -> Iterator[ClosingFinding]:
        self._begin()
        in_work = Counter(map_ordered(self._date_of, self.state.ledger.open_ids()))
        by_date: dict[str, list[Mark]] = defaultdict(list)
        for mark in self._dates.marks():
            by_date[mark.key.date].append(mark)
        index = VersionIndex(self._dates)
        for date, marks in self.state.meter.each("date", sorted(by_date.items()), len(by_date)):
            yield from self._close_date(self._candidates(date, marks), in_work[date], index)

    def _begin(self) -> None:
        """Mark every recorded date, once. From then on, each finished manifest gets its own mark."""
        if self._dates.has_begun():
            return
        for date in self.state.ledger.dates():
            self._dates.mark_date(date, self.state.ledger.run_id)
        self._dates.begin(ClosingBegun(run_id=self.state.ledger.run_id, begun_at=self.state.clock.now()))

    def _date_of(self, manifest_id: str) -> str | None:
        """The date of an open manifest; None if no record gives it."""
        try:
            accepted = self.state.ledger.accepted(manifest_id)
        except RecordUnreadable:  # only its own date waits until the record is fixed
            return self.state.ledger.opened_date(manifest_id)
        return accepted.date if accepted is not None else None

    def _candidates(self, date: str, marks: list[Mark]) -> _Candidates:
        totals = self._dates.totals()
        found = list(marked(self.state, marks))
        if date not in totals.dates:
            found += recorded(self.state, date)
        return _Candidates(date, marks, unsummarised_of(self._dates, totals, found))

    def _close_date(self, found: _Candidates, in_work: int, index: VersionIndex) -> Iterator[ClosingFinding]:
        later = self._later_records(found)
        if not found.new.keys and not later:
            self._clear(found, summarised_generations(self._dates, found.new.totals, found.date))
            return
        if in_work:
            yield LeftOpen(found.date, f"{count(in_work, 'manifest')} in work")
            return
        times = [*later, *self._times(found)]
        begins_at, until = min(times), max(times)
        quiet = self.state.clock.now() - until
        if quiet < self.close_after:
            wait = duration((self.close_after - quiet).total_seconds())
            yield LeftOpen(found.date, f"its last record is new; it can be closed in {wait}")
            return
        collected = Collected()
        is_closed = bool(found.places)
        verified = self.verifier.verify_for_summary(None if is_closed else found.date, found.new.keys, collected.add)
        if verified.discrepancies:  # guard: a date with a discrepancy stays open
            yield from verified.discrepancies
            why = count(len(verified.discrepancies), "discrepancy", "discrepancies")
            yield LeftOpen(found.date, why, is_wrong=True)
        elif unfinished := len(found.new.keys) - len(collected.members):
            yield LeftOpen(found.date, f"{count(unfinished, 'manifest')} not done")
        else:
            yield from self._write(found, self._draft(found, collected, verified, begins_at, until), index)

    def _draft(
        self, found: _Candidates, collected: Collected, verified: VerifyResult, begins_at: datetime, until: datetime
    ) -> Draft:
        letters, files = open_things(verified, found.date)
        summary = ClosedDate(
            date=found.date,
            number=len(found.places) + 1,
            run_id=self.state.ledger.run_id,
            closed_at=self.state.clock.now(),
            begins_at=begins_at,
            until=until,
            # guard: an earlier summary's share of a rebuilt manifest is subtracted
            sums=verified - superseded_counts(self.state, found.new.superseded),
            letters=letters,
            quarantined=files,
            members=0,
            member_bytes=0,
            versions=0,
        )
        return Draft(summary, found.places, collected.members, in_order(collected.versions))

    def _later_records(self, found: _Candidates) -> list[datetime]:
        """The store's times of records added to a closed date, as by redrives, if the whole date is marked."""
        if not (found.places and any(not mark.key.id for mark in found.marks)):
            return []
        until = found.new.totals.dates[found.date].until
        return [each for each in self._written(self.state.layout.ledger_folder_of(found.date)) if each > until]

    def _times(self, found: _Candidates) -> list[datetime]:
        """The store's times of the manifests' records and marks."""
        keys, layout = found.new.keys, self.state.layout
        folders = map(layout.ledger_records, keys) if found.places else [layout.ledger_folder_of(found.date)]
        times = [each for some in map_ordered(self._written, folders) for each in some]
        return times + [mark.info.modified_at for mark in found.marks if mark.key in set(keys)]

    def _written(self, folder: str) -> list[datetime]:
        """The store's times of the records in a folder."""
        return [info.modified_at for info in self.state.store.list(folder)]

    def _write(self, found: _Candidates, draft: Draft, index: VersionIndex) -> Iterator[ClosingFinding]:
        """Put the draft in the next place of the log, unless another process has summarised the date meanwhile."""
        date, compared, doubled = found.date, None, list[DoubledVersion]()
        while True:
            totals = self._dates.totals()
            places = totals.places(date)
            if list(places) != list(draft.places):  # guard: of two processes that close a date at once, one gives up
                yield LeftOpen(date, "another process has just summarised it")
                return
            index.read_to(totals.upto)
            doubled += self._doubled(draft, index, totals, after=compared)
            compared = totals.upto
            place = totals.upto + 1
            if self._dates.write(place, draft.following(self.state, totals, doubled), draft.members, draft.versions):
                break
        self._dates.keep_totals(totals_with(totals, [(place, self._dates.read(place))]))
        self._clear(found, {each.id: each.generation for each in draft.members})
        yield from filter(None, (doubled_versions(self.state, *each.keys) for each in doubled))
        number, manifests = draft.summary.number, len(draft.members)
        yield Summarised(date, number, manifests, len(draft.versions))
        log_event("date.summarised", date=date, number=number, manifests=manifests, summary_place=place)

    def _doubled(
        self, draft: Draft, index: VersionIndex, totals: ClosedTotals, *, after: int | None
    ) -> list[DoubledVersion]:
        """Pairs of manifests with a common version: with summaries after a place; with None, all and each other."""
        own = draft.keys
        pairs = {(own[one], own[other]) for one, other in shared_within(draft.versions)} if after is None else set()
        dates = {place: date for date, span in totals.dates.items() for place in span.places}
        shared = list(index.shared(draft.versions, after=after or 0))
        members = {place: self._dates.members(place) for place in {each[1] for each in shared}}
        pairs |= {(own[one], ManifestKey(dates[place], members[place][other].id)) for one, place, other in shared}
        in_order = {tuple(sorted(pair, key=ledger_order)) for pair in pairs if pair[0] != pair[1]}
        found = [((first, second), doubled_versions(self.state, first, second)) for first, second in sorted(in_order)]
        return [
            DoubledVersion(first_date=first.date, first_id=first.id, second_date=second.date, second_id=second.id)
            for (first, second), discrepancy in found
            if discrepancy is not None
        ]

    def _clear(self, found: _Candidates, summarised: dict[str, int]) -> None:
        """Delete the marks of summarised manifests that existed when their records were read."""
        done = [
            mark.info.uri
            for mark in found.marks
            if not mark.key.id or mark.generation <= summarised.get(mark.key.id, 0)
        ]
        self.state.store.delete(done)
