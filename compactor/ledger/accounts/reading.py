"""Folds the records into accounts of manifests, the basis of every command's figures on manifests, files and lines.

The cost of a scope is independent of the number of closed dates, as far as their summaries cover it.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from enum import Flag, auto
from itertools import islice, starmap
from typing import TypeVar

from compactor.core.documents.changes import Commit
from compactor.core.documents.records import (
    Accepted,
    Done,
    FileReport,
    FileStatus,
    RedrivenInput,
)
from compactor.core.errors import AccessError, ObjectNotFound, StuckError
from compactor.core.layout import ManifestKey, base_name, done_name, ledger_order
from compactor.core.map_ordered import map_ordered
from compactor.core.ports import ObjectInfo
from compactor.ledger.accounts.account import Account, Kind, quarantined_files
from compactor.ledger.history.redrive_log import RedriveLog
from compactor.ledger.history.unsummarised import (
    Unsummarised,
    dates_of_records,
    members_with_rejects,
    unsummarised_if_readable,
)
from compactor.ledger.ledger import is_done
from compactor.ledger.state import State

R = TypeVar("R")

PAGE_OBJECTS = 1_000
"""The number of objects that S3 lists per request."""

ASKED_FOR = 20
"""Up to this many dead letters are looked up by name at once."""

_REASON = ".reason.json"

DAYS_AT_ONCE = 4
"""Dates listed in parallel. Each holds its manifests until they are consumed."""


class Detail(Flag):
    """What is read about a manifest besides its outcome."""

    NONE = 0
    ACCEPTED = auto()  # the record that binds its id
    ATTEMPTS = auto()
    DONE = auto()  # when its rows became visible, and when that was decided
    LINEAGE = auto()  # its redrives, and those of its ancestors
    PLACE = auto()  # where its object is now
    EVERYTHING = ACCEPTED | ATTEMPTS | LINEAGE | PLACE  # without the times


@dataclass(frozen=True, slots=True)
class Scope:
    """Which manifests are read, and which details. All manifests on record by default.

    Attributes:
        kind: Only manifests that may have open items of this kind. Their lineage is read as well.
        manifest_ids: Only these, in this order, whether or not they are on record.
        reason: Only items of the kind with this reason.
        date: Only manifests of this date.
        keys: Only these.
        since: Only manifests with a record that the store received at this time or later. Their records are read if
            their rows became visible in this span.
        until: The end of the span, exclusive.
        details: What is read besides the outcome.
    """

    kind: Kind | None = None
    manifest_ids: tuple[str, ...] = ()
    reason: str | None = None
    date: str | None = None
    keys: Iterable[ManifestKey] | None = None
    since: datetime | None = None
    until: datetime | None = None
    details: Detail = Detail.NONE


def accounts(state: State, scope: Scope) -> Iterator[Account]:
    """The accounts of the manifests in a scope, one by one, in ledger order.

    If a manifest's records cannot be read, its account has a fault.
    """
    return folded(state, scope, lambda account: account)


def folded(state: State, scope: Scope, of: Callable[[Account], R]) -> Iterator[R]:
    """Apply a function, in several threads, to each account, so that a commit with many files is released at once."""
    reader = _Reader(state, scope)
    return map_ordered(lambda found: of(reader.read(found)), listed(state, scope))


def accounts_of(state: State, manifest_ids: Iterable[str], details: Detail) -> Iterator[Account]:
    """The accounts of these manifests, on record or not, each once; none for an empty list."""
    asked = tuple(dict.fromkeys(manifest_ids))
    return accounts(state, Scope(manifest_ids=asked, details=details)) if asked else iter(())


def account_of(state: State, manifest_id: str, details: Detail = Detail.EVERYTHING) -> Account:
    """The account of one manifest.

    Raises:
        RecordUnreadable: One of its records is damaged.
    """
    [account] = accounts_of(state, [manifest_id], details)
    return account.checked()


def read_listed(state: State, found: "Listed", details: Detail = Detail.NONE) -> Account:
    """The account of a manifest from its records as listed."""
    return _Reader(state, Scope(details=details)).read(found)


@dataclass(frozen=True, slots=True)
class Listed:
    """A manifest to read, with an empty date if unknown, and its records by name, if they were listed."""

    key: ManifestKey
    records: Mapping[str, datetime] | None = None


def listed(state: State, scope: Scope) -> Iterator[Listed]:
    """The manifests in a scope, before reading any of them."""
    if scope.manifest_ids:
        yield from (Listed(ManifestKey("", each)) for each in dict.fromkeys(scope.manifest_ids))
    elif scope.keys is not None:
        yield from map(Listed, scope.keys)
    elif scope.since is not None and scope.until is not None:
        yield from _written(state, scope.since, scope.until)
    elif scope.kind is not None and scope.date is None:
        yield from _with_things(state, scope.kind)
    else:
        yield from starmap(Listed, state.ledger.listed(scope.date))


def _written(state: State, since: datetime, until: datetime) -> Iterator[Listed]:
    """The manifests with records from a time span: one request per thousand records, several dates in parallel.

    The ledger is organised by the data's date, which says nothing about the time of the work. For closed dates, the
    summaries know the times of their records.
    """

    def of_date(date: str) -> list[Listed]:
        found = starmap(Listed, state.ledger.listed(date))
        return [each for each in found if any(since <= at < until for at in (each.records or {}).values())]

    for found in map_ordered(of_date, dates_of_records(state, since, until), threads=DAYS_AT_ONCE):
        yield from found


def _with_things(state: State, kind: Kind) -> Iterable[Listed]:
    """The manifests that may have items of a kind: those listed in summaries, and all that are in none."""
    found = unsummarised_if_readable(state)
    if kind == "manifests":
        return (Listed(ManifestKey("", each)) for each in sorted(kept_letters(state, found).waiting))
    if found is None:
        return starmap(Listed, state.ledger.listed())
    if kind == "files":
        keys = {each.key for each in found.totals.quarantined}
    else:
        keys = set(members_with_rejects(state, found.totals))
    return map(Listed, sorted({*keys, *found.keys}, key=ledger_order))


@dataclass(frozen=True, slots=True)
class KeptLetters:
    """The dead letters that are kept.

    Attributes:
        manifests: All of them, redriven or not.
        waiting: When each dead letter that was not redriven before its date was closed was written, by manifest id.
    """

    manifests: int
    waiting: Mapping[str, datetime]


def kept_letters(state: State, found: Unsummarised | None) -> KeptLetters:
    """The kept dead letters, given the manifests in no summary; without these, the whole folder is listed.

    Where dates are closed, the summaries have the dead letters of closed dates, and the marks of other manifests
    identify most commits. So only the rest is looked up: by name or, if they are many, by one listing of their folder.
    """
    layout = state.layout
    if found is None:
        reasons = _letters(state.store.list(layout.failed_folder))
        return KeptLetters(len(reasons), reasons)
    closed = {each.manifest_id for each in found.totals.letters}
    wanted = closed | {key.id for key in found.keys if key not in found.commits}
    if len(wanted) > ASKED_FOR:
        page = list(islice(state.store.list(layout.failed_folder), PAGE_OBJECTS))
        if len(page) < PAGE_OBJECTS:
            reasons = _letters(page)
            return KeptLetters(len(reasons), {each: at for each, at in reasons.items() if each in wanted})
    asked = map_ordered(state.store.stat, sorted(map(layout.failure_reason, wanted)))
    waiting = _letters(info for info in asked if info is not None)
    return KeptLetters(found.totals.sums.dead_letters + len(waiting.keys() - closed), waiting)


def _letters(reasons: Iterable[ObjectInfo]) -> dict[str, datetime]:
    named = ((base_name(info.uri), info.modified_at) for info in reasons)
    return {name.removesuffix(_REASON): at for name, at in named if name.endswith(_REASON)}


@dataclass(frozen=True, slots=True)
class _Reader:
    """Reads accounts. Safe for many threads."""

    state: State
    scope: Scope

    def read(self, listed: Listed) -> Account:
        account = Account(key=listed.key, records=listed.records or {})
        steps = self._steps(account, is_listed=listed.records is not None)
        try:
            while (step := next(steps, None)) is not None:
                account = step
        except (StuckError, ObjectNotFound) as exc:
            return replace(account, fault=exc)
        return account

    def _steps(self, account: Account, *, is_listed: bool) -> Iterator[Account]:
        """The account after each record read."""
        ledger, details, key = self.state.ledger, self.scope.details, account.key
        if is_listed and not self._is_asked(account):
            return
        if not key.date or Detail.ACCEPTED in details:
            accepted = ledger.accepted(key.id)
            key = accepted.key if accepted is not None and not key.date else key
            account = replace(account, key=key, accepted=accepted)
            yield account
        if key.date:
            records = account.records if is_listed else ledger.records(key)
            outcome = ledger.recorded_outcome(key, records)
            files = quarantined_files(outcome) if isinstance(outcome, Commit) else ()
            done = is_done(outcome, records)
            account = replace(account, records=records, outcome=outcome, is_done=done, quarantined=tuple(files))
            yield account
        if account.records and Detail.ATTEMPTS in details:
            account = replace(account, attempts=ledger.attempts(key, account.records))
            yield account
        if account.outcome is not None and Detail.DONE in details and done_name(1) in account.records:
            first = account.outcome if account.outcome.generation == 1 else ledger.outcome_of(key, 1)
            done_at = ledger.record(self.state.layout.done(key), Done)
            account = replace(account, done=done_at, first_decided_at=first.decided_at)
            yield account
        is_asked = Detail.LINEAGE in details and (account.may_be_redriven or not account.records)
        if is_asked or (self.scope.kind and account.left(self.scope.kind, self.scope.reason)):
            log = RedriveLog(state=self.state)
            root = log.root_of(key.id)
            lineage = log.entries(root) if root is not None else ()
            account = replace(account, root=root).with_lineage(lineage)
            yield account
        elif Detail.LINEAGE in details:
            account = account.with_lineage(())
            yield account
        if Detail.PLACE in details:
            yield replace(account, uri=self._place(key, account.accepted))

    def _is_asked(self, account: Account) -> bool:
        """Whether a manifest is read beyond its listing."""
        since, until = self.scope.since, self.scope.until
        if since is None or until is None:
            return True
        done_at = account.records.get(done_name(1))
        return done_at is not None and since <= done_at < until

    def _place(self, key: ManifestKey, accepted: Accepted | None) -> str:
        """Where a manifest's object is; empty if it does not exist."""
        layout = self.state.layout
        places = [layout.manifest(key.id) if accepted is None else accepted.source_uri or layout.manifest(key.id)]
        if accepted is not None:
            places += [layout.archived_manifest(key), layout.failed_manifest(key.id)]
        return next((uri for uri in places if is_there(self.state, uri)), "")


def is_there(state: State, uri: str, *, if_forbidden: bool = True) -> bool:
    """Whether an object exists; `if_forbidden` if the store denies access to it."""
    try:
        return state.store.stat(uri) is not None
    except AccessError:
        return if_forbidden


@dataclass(frozen=True, slots=True)
class RedrivenLines:
    """The results of a manifest's redriven rejected lines.

    Attributes:
        inputs: Files of redriven lines that were compacted. Their lines no longer count as rejects of the manifest.
        reports: The reports on these files, and on all other files of redriven lines in the lineage.
        commits: The commits with these reports.
    """

    inputs: tuple[RedrivenInput, ...] = ()
    reports: tuple[FileReport, ...] = ()
    commits: tuple[Commit, ...] = ()


def redriven_lines(state: State, account: Account) -> RedrivenLines:
    """The results of a manifest's redriven rejected lines, given an account with its lineage.

    Raises:
        RecordUnreadable: One of the manifest's records is damaged.
    """
    made = [each.redrive.manifest.key for each in account.checked().lineage if each.fate == "accepted"]
    found = accounts(state, Scope(keys=made))
    # A rebuild that is not published yet has the same lines as the generation before it, which is.
    commits = tuple(each.commit for each in found if each.commit and (each.is_done or each.commit.is_rebuilt))
    reports = tuple(
        file for commit in commits for file in commit.files if file.source_uri and file.status is FileStatus.COMPACTED
    )
    compacted = {file.uri for file in reports}
    inputs = tuple(each for redrive in account.effective_redrives for each in redrive.inputs if each.uri in compacted)
    return RedrivenLines(inputs, reports, commits)
