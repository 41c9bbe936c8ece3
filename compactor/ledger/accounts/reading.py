"""Folds the records into accounts of manifests, which every command asks what became of manifests, files and lines.

What a scope costs does not depend on how many dates are closed, as far as their summaries tell what it asks for.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from enum import Flag, auto
from itertools import groupby, islice
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
from compactor.core.layout import ManifestKey, base_name, done_name
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
"""As many objects as S3 lists in one request."""

ASKED_FOR = 20
"""Up to so many dead letters are asked for by name at once."""

_REASON = ".reason.json"

DAYS_AT_ONCE = 4
"""Dates that are listed at once. Each holds the manifests that it found until they are taken."""


class Detail(Flag):
    """What is read of a manifest beside its outcome."""

    NONE = 0
    ACCEPTED = auto()  # the record that binds its id
    ATTEMPTS = auto()
    DONE = auto()  # when its rows were first visible, and when that was decided
    LINEAGE = auto()  # its redrives, and those of what it redrives
    PLACE = auto()  # where its object is now
    EVERYTHING = ACCEPTED | ATTEMPTS | LINEAGE | PLACE  # except the times


@dataclass(frozen=True, slots=True)
class Scope:
    """Which manifests, and what is read of each. All on record, unless something narrows them.

    Attributes:
        kind: Only what may have things of this kind that nothing settled. Their lineage is read as well.
        manifest_ids: These, in their order, whether or not they are on record.
        reason: Of the kind, only things with this reason.
        date: Those of a date.
        keys: These.
        since: Those with a record that the store got from this time on. The records of those are read whose rows were
            visible first in this span.
        until: And before this one.
        details: What is read beside the outcome.
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
    """The accounts of the manifests of a scope, one by one, in the order of the ledger.

    A manifest whose records cannot be read has a fault in its account.
    """
    return folded(state, scope, lambda account: account)


def folded(state: State, scope: Scope, of: Callable[[Account], R]) -> Iterator[R]:
    """What a function makes of each of these accounts; so a commit of very many files is let go of at once.

    Args:
        state: Has the records.
        scope: The manifests.
        of: Called from several threads at once.
    """
    reader = _Reader(state, scope)
    return map_ordered(lambda found: of(reader.read(found)), listed(state, scope))


def accounts_of(state: State, manifest_ids: Iterable[str], details: Detail) -> Iterator[Account]:
    """The accounts of these manifests, on record or not, each once; none of none."""
    asked = tuple(dict.fromkeys(manifest_ids))
    return accounts(state, Scope(manifest_ids=asked, details=details)) if asked else iter(())


def account_of(state: State, manifest_id: str, details: Detail = Detail.EVERYTHING) -> Account:
    """The account of one manifest.

    Raises:
        RecordUnreadable: A record of it is damaged.
    """
    [account] = accounts_of(state, [manifest_id], details)
    return account.checked()


def read_listed(state: State, found: "Listed", details: Detail = Detail.NONE) -> Account:
    """The account of a manifest, as its records were when they were listed."""
    return _Reader(state, Scope(details=details)).read(found)


@dataclass(frozen=True, slots=True)
class Listed:
    """A manifest to read: its date is empty if it is not known. Its records by their names, if they were listed."""

    key: ManifestKey
    records: Mapping[str, datetime] | None = None


def listed(state: State, scope: Scope) -> Iterator[Listed]:
    """The manifests of a scope, before anything is read of each."""
    if scope.manifest_ids:
        yield from (Listed(ManifestKey("", each)) for each in dict.fromkeys(scope.manifest_ids))
    elif scope.keys is not None:
        yield from map(Listed, scope.keys)
    elif scope.since is not None and scope.until is not None:
        yield from _written(state, scope.since, scope.until)
    elif scope.kind is not None and scope.date is None:
        yield from _with_things(state, scope.kind)
    else:
        folder = state.layout.ledger_folder_of(scope.date) if scope.date else state.layout.ledger_folder
        yield from _in_folder(state, folder)


def _in_folder(state: State, folder: str) -> Iterator[Listed]:
    infos = (info for info in state.store.list(folder) if info.uri.endswith(".json"))
    for (date, manifest_id), records in groupby(infos, key=_date_and_id):
        yield Listed(ManifestKey(date, manifest_id), {base_name(info.uri): info.modified_at for info in records})


def _date_and_id(info: ObjectInfo) -> tuple[str, str]:
    date, manifest_id = info.uri.split("/")[-3:-1]
    return date, manifest_id


def _written(state: State, since: datetime, until: datetime) -> Iterator[Listed]:
    """The manifests with records of a span of time: one request for a thousand records, several dates at a time.

    The ledger is filed by the date of the data, which says nothing about the time of the work. Of closed dates their
    summaries tell when they have records.
    """

    def of_date(date: str) -> list[Listed]:
        found = _in_folder(state, state.layout.ledger_folder_of(date))
        return [each for each in found if any(since <= at < until for at in (each.records or {}).values())]

    for found in map_ordered(of_date, dates_of_records(state, since, until), threads=DAYS_AT_ONCE):
        yield from found


def _with_things(state: State, kind: Kind) -> Iterable[Listed]:
    """The manifests that may have things of a kind: those that summaries name, and all that are in none."""
    found = unsummarised_if_readable(state)
    if kind == "manifests":
        return (Listed(ManifestKey("", each)) for each in sorted(kept_letters(state, found).waiting))
    if found is None:
        return _in_folder(state, state.layout.ledger_folder)
    if kind == "files":
        keys = {each.key for each in found.totals.quarantined}
    else:
        keys = set(members_with_rejects(state, found.totals))
    return map(Listed, sorted({*keys, *found.keys}, key=lambda key: f"{key.date}/{key.id}/"))


@dataclass(frozen=True, slots=True)
class KeptLetters:
    """The dead letters that are kept.

    Attributes:
        manifests: All of them, redriven or not.
        waiting: When those were written that were not redriven before their dates were closed, by manifest id.
    """

    manifests: int
    waiting: Mapping[str, datetime]


def kept_letters(state: State, found: Unsummarised | None) -> KeptLetters:
    """The dead letters that are kept, given what is in no summary; without that, the whole folder is listed.

    Where dates are closed, the summaries have the dead letters of closed dates, and the marks of other manifests tell
    most commits. So only the rest is looked for: by name or, if that is much, by one request for their folder.
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
        """The account after each record that is read."""
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
        """Whether more is read of a manifest than what the listing says."""
        since, until = self.scope.since, self.scope.until
        if since is None or until is None:
            return True
        done_at = account.records.get(done_name(1))
        return done_at is not None and since <= done_at < until

    def _place(self, key: ManifestKey, accepted: Accepted | None) -> str:
        """Where the object of a manifest is; empty if it is gone."""
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
    """What became of the rejected lines of a manifest that were redriven.

    Attributes:
        inputs: Files of redriven lines that were compacted. Their lines are no rejects of the manifest any more.
        reports: The reports on these files, and on all others of redriven lines in the lineage.
        commits: The commits that have them.
    """

    inputs: tuple[RedrivenInput, ...] = ()
    reports: tuple[FileReport, ...] = ()
    commits: tuple[Commit, ...] = ()


def redriven_lines(state: State, account: Account) -> RedrivenLines:
    """What became of the rejected lines of a manifest, whose lineage was read.

    Raises:
        RecordUnreadable: A record of the manifest is damaged.
    """
    made = [each.redrive.manifest.key for each in account.checked().lineage if each.fate == "accepted"]
    found = [each for each in accounts(state, Scope(keys=made)) if each.is_done]
    commits = tuple(each.commit for each in found if each.commit is not None)
    reports = tuple(
        file for commit in commits for file in commit.files if file.source_uri and file.status is FileStatus.COMPACTED
    )
    compacted = {file.uri for file in reports}
    inputs = tuple(each for redrive in account.taken for each in redrive.inputs if each.uri in compacted)
    return RedrivenLines(inputs, reports, commits)
