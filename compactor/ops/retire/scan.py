"""Finds what may be retired, before anything is removed. Writes nothing.

A date that was retired costs no read: the name of its record has the place of its last summary.
"""

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from compactor.core.documents.counts import Counts
from compactor.core.documents.records import Taking, Why
from compactor.core.errors import CompactorError, RecordUnreadable
from compactor.core.layout import ManifestKey, digest
from compactor.core.ports import ObjectInfo
from compactor.core.text.formatting import count
from compactor.core.text.safe_text import quoted
from compactor.ledger.accounts.reading import Scope, folded
from compactor.ledger.accounts.settling import Settling, open_file
from compactor.ledger.change_log import changed_dates, changes_about
from compactor.ledger.history.closed_dates import ClosedDates
from compactor.ledger.history.unsummarised import Unsummarised, read_unsummarised
from compactor.ledger.state import State
from compactor.ledger.visible import taken_by


@dataclass(frozen=True, slots=True)
class RetiredDate:
    """A date, or what was added to it since it was retired."""

    date: str  # the date
    manifests: int  # manifests whose files were removed
    rows: int  # rows that were removed
    rejected_lines: int  # rejected lines that were removed, or that were only counted
    output_files: int  # number of output files
    rejects_files: int  # number of rejects files
    archived_manifests: int  # number of archived manifests
    size_bytes: int  # of all these files
    in_work: int = 0  # manifests whose files stay until the next call, because they are being rebuilt


@dataclass(frozen=True, slots=True)
class NotRetired:
    """A date that was left as it is."""

    date: str  # the date
    why: str  # the reason, in words


@dataclass(slots=True)
class RetireReport:
    """What was retired. With `--dry-run` nothing is removed."""

    before: str  # the first date that stays
    dry_run: bool = False  # whether nothing was removed
    retired: list[RetiredDate] = field(default_factory=list)  # dates whose files were removed
    refused: list[NotRetired] = field(default_factory=list)  # dates that were left as they are
    retired_before: int = 0  # dates that earlier calls have retired
    finished: int = 0  # deletions that an earlier call began and did not finish


_NAME_CHARACTERS = 12

OwnerOf = Callable[[str], ManifestKey | None]


@dataclass(frozen=True, slots=True)
class Retirable:
    """What goes of a date.

    Attributes:
        name: Of its record: the place of the last summary, and a digest of the manifests.
        manifests: The generation of the outcome of each, by id.
        sizes: What that is.
    """

    name: str
    manifests: Mapping[str, int]
    sizes: RetiredDate


@dataclass(slots=True)
class RetireScan:
    """What may be retired, and what may not."""

    retirable: list[Retirable] = field(default_factory=list)
    refused: list[NotRetired] = field(default_factory=list)
    retired_before: int = 0


@dataclass(frozen=True, slots=True)
class DateFacts:
    """What is known of a date.

    Attributes:
        is_closed: It has a summary.
        in_work: Manifests of it that wait or are open.
        unsummarised: Manifests of it that are done and in no summary.
        unreadable: What cannot be read of it, and was expected; empty if all can.
        dead_letters: Dead letters that were not redriven.
        quarantined: Quarantined files that nothing settled.
    """

    date: str
    is_closed: bool
    in_work: int = 0
    unsummarised: int = 0
    unreadable: str = ""
    dead_letters: int = 0
    quarantined: int = 0


def why_not_retired(facts: DateFacts, *, with_unsettled: bool) -> str:
    """Return why a date may not be retired, with the next action; empty if it may.

    Args:
        facts: What is known of the date.
        with_unsettled: Whether dead letters and quarantined files are no reason.
    """
    if facts.unreadable or facts.in_work:
        in_work = f"{count(facts.in_work, 'manifest')} in work; expected every job to finish them first"
        return facts.unreadable or in_work
    if not facts.is_closed:
        return "it is not closed; expected `compactor close` first"
    if facts.unsummarised:
        return f"{count(facts.unsummarised, 'manifest')} in no summary; expected `compactor close` first"
    if facts.dead_letters and not with_unsettled:
        what = f"{count(facts.dead_letters, 'dead letter')} not redriven"
        return f"{what}; expected `compactor redrive manifests --date {quoted(facts.date)}`, or --with-unsettled"
    if facts.quarantined and not with_unsettled:
        what = f"{count(facts.quarantined, 'quarantined file')} not settled"
        return f"{what}; expected `compactor redrive files --date {quoted(facts.date)}`, or --with-unsettled"
    return ""


@dataclass(frozen=True)
class RetireScanner:
    """Finds the dates to retire."""

    state: State

    @property
    def _dates(self) -> ClosedDates:
        return ClosedDates(self.state.store, self.state.layout)

    def scan(self, before: str, *, with_unsettled: bool = False) -> RetireScan:
        """Find the dates before a date. What cannot be read of one date is no reason to refuse the others.

        Args:
            before: The first date that stays.
            with_unsettled: Also dates with dead letters and quarantined files that nothing settled.

        Raises:
            CompactorError: No date was ever closed here.
            RecordUnreadable: A record is damaged without which it is not known what is in work on any date.
        """
        found = read_unsummarised(self.state)
        if found is None:
            raise CompactorError(f"{self.state.layout.state} has no closed dates; expected `compactor close` first")
        places: dict[str, set[int]] = defaultdict(set)
        for date, name, _ in changed_dates(self.state, Why.RETIRED):
            places[date].add(int(name.partition("-")[0]))
        scan = RetireScan()
        for facts in self._facts(found, before):
            is_new = facts.in_work or facts.unsummarised
            if facts.is_closed and not is_new and found.totals.dates[facts.date].places[-1] in places[facts.date]:
                scan.retired_before += 1
            elif why := why_not_retired(facts, with_unsettled=with_unsettled):
                scan.refused.append(NotRetired(facts.date, why))
            else:
                self._add(scan, found, facts.date)
        return scan

    def _add(self, scan: RetireScan, found: Unsummarised, date: str) -> None:
        try:
            retirable = self._retirable(found, date)
        except RecordUnreadable as exc:
            scan.refused.append(NotRetired(date, str(exc)))
            return
        if retirable is None:
            scan.retired_before += 1
        else:
            scan.retirable.append(retirable)

    def _facts(self, found: Unsummarised, before: str) -> Iterator[DateFacts]:
        """What is known of each date before a date."""
        keys = [key for key in found.keys if key.date < before]
        known = list(folded(self.state, Scope(keys=keys), lambda each: (each.key.date, each.is_done, each.fault)))
        done = Counter(date for date, is_done, _ in known if is_done)
        unreadable = {date: str(fault) for date, _, fault in known if fault is not None}
        fresh = Counter(key.date for key in keys)
        letters, files = self._unsettled(found, before)
        for date in sorted({*found.totals.dates, *fresh}):
            if date < before:
                yield DateFacts(
                    date,
                    is_closed=date in found.totals.dates,
                    in_work=fresh[date] - done[date],
                    unsummarised=done[date],
                    unreadable=unreadable.get(date, ""),
                    dead_letters=letters[date],
                    quarantined=files[date],
                )

    def _unsettled(self, found: Unsummarised, before: str) -> tuple[Counter[str], Counter[str]]:
        """The dead letters and the quarantined files that wait for a person, by date."""
        letters = [each for each in found.totals.letters if each.date < before]
        settling = Settling(self.state, found=found)
        fates = settling.letters([each.manifest_id for each in letters])
        left = Counter(each.date for each in letters if not fates[each.manifest_id].is_settled)
        opened = [each for each in found.totals.quarantined if each.date < before]
        checked = settling.files([open_file(each) for each in opened])
        dates = {(each.manifest_id, each.uri): each.date for each in opened}
        return left, Counter(dates[each.manifest_id, each.uri] for each in checked if not each.is_settled)

    def _retirable(self, found: Unsummarised, date: str) -> Retirable | None:
        """What goes of a closed date; None if all of it was retired, as before the summaries were made anew."""
        records = list(changes_about(self.state, Taking, date, Why.RETIRED))
        places = found.totals.dates[date].places
        manifests: dict[str, int] = {}
        sums = []
        for place in places:
            members = {each.id: each.generation for each in self._dates.members(place)}
            fresh = {
                manifest_id: generation
                for manifest_id, generation in members.items()
                if taken_by(records, "rows", ManifestKey(date, manifest_id), generation) is None
            }
            manifests |= fresh
            sums += [self._dates.read(place).sums] if fresh else []
        if not manifests:
            return None
        total = sum(sums, Counts())
        name = f"{places[-1]:08d}-{digest(repr(sorted(manifests.items())).encode())[:_NAME_CHARACTERS]}"
        return Retirable(name, manifests, self._sizes(date, manifests, total.rows, total.rejected_lines))

    def _sizes(self, date: str, manifests: Mapping[str, int], rows: int, rejected_lines: int) -> RetiredDate:
        layout = self.state.layout
        outputs = self._owned(layout.output_folder_of(date), layout.output_owner, manifests)
        rejects = self._owned(layout.rejects_folder_of(date), layout.rejects_owner, manifests)
        archived = self._owned(layout.archive_folder_of(date), layout.archived_key, manifests)
        return RetiredDate(
            date=date,
            manifests=len(manifests),
            rows=rows,
            rejected_lines=rejected_lines,
            output_files=len(outputs),
            rejects_files=len(rejects),
            archived_manifests=len(archived),
            size_bytes=sum(info.size_bytes for info in (*outputs, *rejects, *archived)),
        )

    def _owned(self, folder: str, owner_of: OwnerOf, manifests: Iterable[str]) -> list[ObjectInfo]:
        """The objects in a folder that belong to some manifests."""
        ids = set(manifests)
        listed = ((info, owner_of(info.uri)) for info in self.state.store.list(folder))
        return [info for info, key in listed if key is not None and key.id in ids]
