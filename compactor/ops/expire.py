"""Finds dates to expire, records what expires, and removes it.

An expired date costs no read: its record's name contains the place of its last summary.
"""

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace

from compactor.core.documents.changes import Taking, Why
from compactor.core.documents.counts import Counts
from compactor.core.errors import CompactorError, RecordUnreadable
from compactor.core.layout import ManifestKey, digest
from compactor.core.ports import ObjectInfo
from compactor.core.results import as_document, only
from compactor.core.text.formatting import count
from compactor.core.text.safe_text import quoted
from compactor.ledger.accounts.account import letter_of
from compactor.ledger.accounts.reading import Scope, folded
from compactor.ledger.accounts.settling import Settling, open_file
from compactor.ledger.change_log import changed_dates, changes_about
from compactor.ledger.history.closed_dates import ClosedDates
from compactor.ledger.history.unsummarised import Unsummarised, read_unsummarised
from compactor.ledger.state import State
from compactor.ledger.visible import expired_by
from compactor.upkeep.expiring import Expirer

_NAME_CHARACTERS = 12


@dataclass(frozen=True, slots=True)
class ExpiredDate:
    """A date, or additions to it since it expired."""

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
class NotExpired:
    """A date that did not expire."""

    date: str  # the date
    why: str  # the reason, in words


@dataclass(frozen=True, slots=True)
class Expirable:
    """The data of a date that would be removed.

    Attributes:
        name: The name of its record: the place of the last summary, and a digest of the manifests.
        manifests: The generation of the outcome of each manifest, by id.
    """

    name: str
    manifests: Mapping[str, int]
    sizes: ExpiredDate


@as_document(omits=("expirable",))
@dataclass(frozen=True, slots=True)
class ExpireReport:
    """What expired. With `--dry-run` nothing is removed."""

    before: str  # the first date that stays
    dry_run: bool = False  # whether nothing was removed
    expired: tuple[ExpiredDate, ...] = ()  # dates whose files were removed
    refused: tuple[NotExpired, ...] = ()  # dates that were left as they are
    expired_before: int = 0  # dates that expired by earlier calls
    finished: int = 0  # deletions that an earlier call started and did not finish
    expirable: tuple[Expirable, ...] = ()  # what a call that is no dry run would remove


@dataclass(frozen=True, slots=True)
class DateFacts:
    """The state of a date.

    Attributes:
        is_closed: It has a summary.
        in_work: Manifests that wait or are open.
        unsummarised: Manifests that are done and in no summary.
        unreadable: A message about records that cannot be read; empty if all can.
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

    def why_not(self, *, with_unsettled: bool) -> str:
        """Why the date may not expire, with the next action; empty if it may."""
        if self.unreadable or self.in_work:
            in_work = f"{count(self.in_work, 'manifest')} in progress; expected every job to finish them first"
            return self.unreadable or in_work
        if not self.is_closed:
            return "it is not closed; expected `compactor data close` first"
        if self.unsummarised:
            return f"{count(self.unsummarised, 'manifest')} in no summary; expected `compactor data close` first"
        if self.dead_letters and not with_unsettled:
            what = f"{count(self.dead_letters, 'dead letter')} not redriven"
            return f"{what}; expected `compactor redrive manifests --date {quoted(self.date)}`, or --with-unsettled"
        if self.quarantined and not with_unsettled:
            what = f"{count(self.quarantined, 'quarantined file')} not settled"
            return f"{what}; expected `compactor redrive files --date {quoted(self.date)}`, or --with-unsettled"
        return ""


def find_expirable(state: State, before: str, *, with_unsettled: bool = False) -> ExpireReport:
    """Find the dates to expire, for `expire_dates`. An unreadable record of one date does not stop the others.

    With `with_unsettled`, includes dates with unsettled dead letters and quarantined files.

    Raises:
        CompactorError: No date was ever closed here.
        RecordUnreadable: A record is damaged that is needed to find active manifests of any date.
    """
    found = read_unsummarised(state)
    if found is None:
        raise CompactorError(f"{state.layout.state} has no closed dates; expected `compactor data close` first")
    places: dict[str, set[int]] = defaultdict(set)
    for date, name, _ in changed_dates(state, Why.DATE):
        places[date].add(int(name.partition("-")[0]))

    def judged(facts: DateFacts) -> Expirable | NotExpired | None:
        is_new = facts.in_work or facts.unsummarised
        if facts.is_closed and not is_new and found.totals.dates[facts.date].places[-1] in places[facts.date]:
            return None
        if why := facts.why_not(with_unsettled=with_unsettled):
            return NotExpired(facts.date, why)
        try:
            return _expirable(state, found, facts.date)
        except RecordUnreadable as exc:
            return NotExpired(facts.date, str(exc))

    of_dates = [judged(facts) for facts in _facts(state, found, before)]
    expirable = only(Expirable, of_dates)
    return ExpireReport(
        before,
        dry_run=True,
        expired=tuple(each.sizes for each in expirable),
        refused=only(NotExpired, of_dates),
        expired_before=of_dates.count(None),
        expirable=expirable,
    )


def expire_dates(expirer: Expirer, found: ExpireReport) -> ExpireReport:
    """Expire the dates that were found, earliest first, after finishing deletions of earlier calls.

    Safe alongside jobs, closings, redrives, rebuilds and other expiries.

    Raises:
        AccessError: The store refused to delete something. The next call continues.
    """
    rule, finished = f"`compactor data expire --before {quoted(found.before)}`", len(expirer.finish([Why.DATE]))

    def expired(each: Expirable) -> ExpiredDate:
        waiting = expirer.expire(Why.DATE, each.sizes.date, each.name, rule, dict(each.manifests))
        return replace(each.sizes, in_work=len(waiting))

    dates = tuple(map(expired, expirer.state.meter.each("date", found.expirable, len(found.expirable))))
    return replace(found, dry_run=False, expired=dates, finished=finished)


def _facts(state: State, found: Unsummarised, before: str) -> Iterator[DateFacts]:
    """The state of each date before a given one."""
    keys = [key for key in found.keys if key.date < before]
    known = list(folded(state, Scope(keys=keys), lambda each: (each.key.date, each.is_done, each.fault)))
    done = Counter(date for date, is_done, _ in known if is_done)
    unreadable = {date: str(fault) for date, _, fault in known if fault is not None}
    fresh = Counter(key.date for key in keys)
    letters, files = _unsettled(state, found, before)
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


def _unsettled(state: State, found: Unsummarised, before: str) -> tuple[Counter[str], Counter[str]]:
    """The dead letters and quarantined files that need an operator, by date."""
    letters = [each for each in found.totals.letters if each.date < before]
    settling = Settling(state, found=found)
    with_letters = zip(letters, settling.letters(list(map(letter_of, letters))), strict=True)
    left = Counter(each.date for each, fate in with_letters if not fate.is_settled)
    opened = [each for each in found.totals.quarantined if each.date < before]
    checked = settling.files([open_file(each) for each in opened])
    dates = {(each.manifest_id, each.uri): each.date for each in opened}
    return left, Counter(dates[each.manifest_id, each.uri] for each in checked if not each.is_settled)


def _expirable(state: State, found: Unsummarised, date: str) -> Expirable | None:
    """The removable data of a closed date; None if all of it expired before its summaries were recreated."""
    records, closed = list(changes_about(state, Taking, date, Why.DATE)), ClosedDates(state.store, state.layout)
    places = found.totals.dates[date].places
    manifests: dict[str, int] = {}
    sums = []
    for place in places:
        fresh = {
            each.id: each.generation
            for each in closed.members(place)
            if expired_by(records, "rows", ManifestKey(date, each.id), each.generation) is None
        }
        manifests |= fresh
        sums += [closed.read(place).sums] if fresh else []
    if not manifests:
        return None
    total = sum(sums, Counts())
    name = f"{places[-1]:08d}-{digest(repr(sorted(manifests.items())).encode())[:_NAME_CHARACTERS]}"
    layout = state.layout
    outputs = _owned(state, layout.output_folder_of(date), layout.output_owner, manifests)
    rejects = _owned(state, layout.rejects_folder_of(date), layout.rejects_owner, manifests)
    archived = _owned(state, layout.archive_folder_of(date), layout.archived_key, manifests)
    sizes = ExpiredDate(
        date=date,
        manifests=len(manifests),
        rows=total.rows,
        rejected_lines=total.rejected_lines,
        output_files=len(outputs),
        rejects_files=len(rejects),
        archived_manifests=len(archived),
        size_bytes=sum(info.size_bytes for info in (*outputs, *rejects, *archived)),
    )
    return Expirable(name, manifests, sizes)


def _owned(
    state: State, folder: str, owner_of: Callable[[str], ManifestKey | None], manifests: Iterable[str]
) -> list[ObjectInfo]:
    ids = set(manifests)
    listed = ((info, owner_of(info.uri)) for info in state.store.list(folder))
    return [info for info, key in listed if key is not None and key.id in ids]
