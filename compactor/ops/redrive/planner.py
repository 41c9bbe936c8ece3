"""Decides which files a redriven manifest may name: existing, allowed ones that no other manifest has."""

from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime

from compactor.core.documents.changes import Commit, DeadLetter
from compactor.core.documents.manifest import Manifest, ManifestFile, each_version
from compactor.core.documents.manifest_parsing import check_length, is_allowed, parse_manifest
from compactor.core.documents.records import Accepted, FileReport, FileStatus
from compactor.core.errors import AccessError, ManifestError, ObjectNotFound, StuckError
from compactor.core.inputs.dates import possible_dates
from compactor.core.layout import ManifestKey, canonical, number_of_redrive, redriven_id, root_id
from compactor.core.logs.names import is_log
from compactor.core.map_ordered import map_ordered
from compactor.core.ports import ClaimTable, ObjectInfo
from compactor.core.rules.next_steps import READ_AS_JSON
from compactor.ledger.accounts.account import Account, AccountState
from compactor.ledger.accounts.reading import Detail, account_of, accounts_of
from compactor.ledger.landing.given import check_given, is_landed, names_landed
from compactor.ledger.state import State
from compactor.ops.redrive.redrivable import Refused
from compactor.sources.claiming import claim_key, manifests_of
from compactor.sources.file_search import FileSearch, Naming

_Version = tuple[str, str | None]
"""The URI and ETag of a file."""


def _keys(files: Sequence[ManifestFile]) -> dict[str, _Version]:
    """The versions of files by the keys of their claims."""
    return {claim_key(each): (each.uri, each.etag) for each in each_version(files) if each.etag is not None}


@dataclass(slots=True)
class Draft:
    """The files that a new manifest may name."""

    account: Account  # of the redriven manifest
    root: ManifestKey  # of its lineage
    date: str  # the date of the new manifest
    alias: str = ""  # the id inside the original of a dead letter, if it differs from the id of the letter
    files: list[ManifestFile] = field(default_factory=list)
    unclaimed: set[str] = field(default_factory=set)  # URIs of the files without a claim
    rejects_of: str | None = None  # the manifest that rejected the lines, if its files have redriven lines
    listed_at: datetime | None = None  # when a listing found the files; None if something announced them
    # By URI, why a file was quarantined or its manifest dead-lettered
    reasons: dict[str, str] = field(default_factory=dict)
    refused: dict[str, str] = field(default_factory=dict)  # by URI, why a file cannot be redriven
    # By URI and version, the other manifest that has it
    held: dict[str, dict[str | None, str]] = field(default_factory=dict)
    planned: set[str] = field(default_factory=set)  # URIs that only plans give, if the manifest was refused

    def is_own(self, holder: str) -> bool:
        """Whether the holder of a claim belongs to the redriven lineage."""
        return self.root.id in {holder, root_id(holder)} or holder == self.alias

    def is_before(self, holder: str, manifest_id: str) -> bool:
        """Whether the holder of a claim belongs to the lineage and comes before a redrive of it.

        A delayed redrive must not take the claims of one with a later number.
        """
        numbers = (number_of_redrive(each, self.root.id) for each in (holder, manifest_id))
        # guard: a redrive that was held up leaves the claims of a later one
        return self.is_own(holder) and next(numbers) < next(numbers)

    def refuse(self, refused: Mapping[str, str]) -> None:
        """Leave out files, by URI with the reason."""
        for file in self.files:
            if file.uri in refused:
                self.held.pop(file.uri, None)  # others have only some of its versions
        self.refused.update(refused)
        self.files = [file for file in self.files if file.uri not in refused]

    def refuse_held(self, holders: Mapping[_Version, str], has: str = "has claimed it") -> None:
        """Leave out versions that other manifests have, with the holder, and files without any other version."""
        for (uri, etag), holder in holders.items():
            self.held.setdefault(uri, {})[etag] = holder
            self.refused[uri] = f"manifest {holder} {has}"
        left = [file.without(self.held.get(file.uri, ())) for file in self.files]
        self.files = [file for file in left if file is not None]
        for file in self.files:
            self.refused.pop(file.uri, None)

    def refuse_named(self, files: Sequence[ManifestFile], found: Mapping[str, Sequence[Naming]]) -> None:
        """Leave out the given files that another manifest has; `found` has the namings by canonical URI."""
        holders: dict[str, dict[_Version, str]] = {}
        for file in each_version(files):
            namings = found.get(canonical(file.uri), ())
            naming = next((each for each in namings if each.may_have(file.etag)), None)
            if naming is not None:
                has = "has compacted it" if naming.state == "compacted" else "names it, and is not done"
                holders.setdefault(has, {})[file.uri, file.etag] = naming.manifest_id
        for has, versions in holders.items():
            self.refuse_held(versions, has)

    def refusals(self) -> list[Refused]:
        """The files that were left out."""
        return [Refused(self.account.id, uri, why) for uri, why in self.refused.items()]

    def files_left(self, account: Account, reason: str | None) -> list[ManifestFile]:
        """The files that were not redriven meanwhile, by the manifest's current account."""
        if isinstance(account.outcome, DeadLetter):
            of_plans = next(
                (each.manifest.manifest_id for each in account.effective_redrives if each.kind == "planned"), ""
            )
            if of_plans:
                self.refuse(dict.fromkeys(self.planned, f"manifest {of_plans} has the plan for this id"))
            return list(self.files)
        left = {report.uri for report in account.open_reports(reason)}
        return [file for file in self.files if file.uri in left]

    def unclaimed_files(self) -> list[ManifestFile]:
        return self.files_among(self.unclaimed)

    def files_among(self, uris: Container[str]) -> list[ManifestFile]:
        """The files that it still may name, of those with these URIs."""
        return [file for file in self.files if file.uri in uris]

    def dates(self) -> set[str]:
        """The dates whose manifests may have the files without a claim."""
        day = datetime.fromisoformat(self.date).replace(tzinfo=UTC)
        own = (possible_dates(file.uri, file.event_time or day) for file in self.unclaimed_files())
        return {self.date, self.account.key.date}.union(*own)


def original_of(
    letter: DeadLetter, accepted: Accepted | None, state: State, allowed_prefixes: Sequence[str]
) -> Manifest:
    """The original of a dead letter.

    Raises:
        ManifestError: It is still invalid.
    """
    manifest = accepted.manifest if accepted is not None else None
    return parse_manifest(
        _kept(letter, state) if manifest is None else manifest.to_json(),
        uri=letter.source_uri,
        # If the original has no date, it keeps the date that it got as a dead letter.
        modified_at=datetime.fromisoformat(letter.date).replace(tzinfo=UTC),
        allowed_prefixes=allowed_prefixes,
        redriven_folder=state.layout.redriven_folder,
        rules=state.rules,
    )


def _kept(letter: DeadLetter, state: State) -> bytes:
    uri = state.layout.failed_manifest(letter.manifest_id)
    info = state.store.stat(uri)
    if info is not None:
        check_length(uri, info.size_bytes)
    try:
        return state.store.read(uri)
    except ObjectNotFound as exc:
        raise ManifestError(letter.reason, f"{uri}: the original is missing; expected it to be kept") from exc


_NOT_DONE = {
    AccountState.UNWRITTEN: "manifest {} is on record as a redrive; expected it to be done first",
    AccountState.WAITING: "manifest {} waits; expected it to be done first",
    AccountState.IN_WORK: "manifest {} is in progress; expected it to be done first",
    AccountState.REVOKED: "the id {} was revoked by its planner, and its files were planned again",
}


def committed_under(manifest_id: str, state: State) -> Commit | None:
    """The commit under an id; None if no manifest has that id, or if it is a dead letter.

    Raises:
        ManifestError: That id is revoked, or its manifest is not done yet.
    """
    account = account_of(state, manifest_id)
    if account.state in _NOT_DONE:
        raise ManifestError("id_already_used", _NOT_DONE[account.state].format(manifest_id))
    return account.commit


_GONE = "there is no such object; expected it to exist by now, or `compactor dismiss` to give it up"
_NOT_LANDED = "retention removed it before it was landed; `compactor dismiss` records the loss"


_AS_ITS_BYTES = frozenset({FileStatus.UNREADABLE, FileStatus.NOT_NDJSON})
"""Why a file is quarantined for as long as its bytes stay."""


@dataclass(frozen=True, kw_only=True)
class RedrivePlanner:
    """Drafts new manifests, and claims their files. A file of unknown version cannot be claimed."""

    state: State
    search: FileSearch
    claims: ClaimTable | None  # None if nothing is ever planned
    is_any_format: bool  # whether the settings read more than NDJSON, so that files may be read differently now
    lease_seconds: float  # how long the claims of a new manifest hold until it is written
    _named_here: dict[str, list[Naming]] = field(default_factory=dict, init=False)

    def draft(self, account: Account, root: ManifestKey, reason: str | None) -> Draft:
        """Draft the redrive of a manifest: of files with a reason, or of all.

        Raises:
            ManifestError: The manifest is a dead letter and still invalid.
        """
        if account.letter is not None:
            draft = self._draft_of_letter(account, account.letter, root)
        else:
            draft = self._draft_of_files(account, root, reason)
        holders = self._holders(draft.files)
        draft.refuse_held({version: holder for version, holder in holders.items() if not draft.is_own(holder)})
        draft.unclaimed.update(each.uri for each in each_version(draft.files) if (each.uri, each.etag) not in holders)
        return draft

    def refuse_known(self, drafts: Sequence[Draft]) -> None:
        """Refuse files without a claim that another manifest has, by one search of the ledger for all drafts.

        If a record is unreadable, only the files of its date are refused, because it may name them.
        """
        self._named_here.clear()
        wanted = {canonical(uri) for draft in drafts for uri in draft.unclaimed}
        if not wanted:
            return
        found: dict[str, list[Naming]] = {}
        # In this order: a manifest that a job accepts meanwhile moves from the prefix to the records.
        unknown = self._search(self.search.waiting(wanted), found)
        dates = {date for draft in drafts for date in draft.dates()}
        unread = {date: self._search(self.search.on_dates({date: wanted}), found) for date in sorted(dates)}
        for draft in drafts:
            draft.refuse_named(draft.unclaimed_files(), found)
            if why := unknown or next(filter(None, map(unread.get, sorted(draft.dates()))), ""):
                draft.refuse({uri: why for uri in draft.unclaimed if uri not in draft.refused})

    @staticmethod
    def _search(searched: Iterable[Naming], found: dict[str, list[Naming]]) -> str:
        """Add what a search finds; return why the search failed, empty if it did not."""
        try:
            for naming in searched:
                found.setdefault(naming.uri, []).append(naming)
        except StuckError as exc:
            return f"unclear whether another manifest has it: {exc}"
        return ""

    def free(self, draft: Draft, files: Sequence[ManifestFile]) -> list[ManifestFile]:
        """The given files that no other draft has taken since the last search."""
        draft.refuse_named(files, self._named_here)
        return draft.files_among({file.uri for file in files})

    def claim(self, draft: Draft, files: Sequence[ManifestFile], manifest_id: str) -> list[ManifestFile]:
        """Claim a draft's files for a manifest to be written; return the claimed ones."""
        if self.claims is None:
            return [*files]
        now, lease, keys = self.state.clock.now(), self.lease_seconds, _keys(files)
        claims = self.claims.claim(list(keys), manifest_id, now=now, lease_seconds=lease)
        others = {key: claim.holder for key, claim in claims.items() if claim.holder != manifest_id}
        manifests, taken_over = manifests_of(self.claims, others.values()), set[str]()
        for holder in set(others.values()):
            if draft.is_before(manifests[holder], manifest_id):
                held = [key for key, other in others.items() if other == holder]
                taken_over |= self.claims.take_over(
                    held, from_holder=holder, to_holder=manifest_id, now=now, lease_seconds=lease
                )
        lost = {keys[key]: manifests[holder] for key, holder in others.items() if key not in taken_over}
        draft.refuse_held(lost)
        return draft.files_among({file.uri for file in files})

    def _holders(self, files: Sequence[ManifestFile]) -> dict[_Version, str]:
        """The manifest that holds each version; omits free and unknown ones."""
        keys = _keys(files)
        if self.claims is None or not keys:
            return {}
        found = self.claims.get_many(list(keys))
        manifests = manifests_of(self.claims, (claim.holder for claim in found.values()))
        return {keys[key]: manifests[claim.holder] for key, claim in found.items()}

    def remember(self, files: Sequence[ManifestFile], manifest_id: str) -> None:
        """Remember the files of a new manifest, which the last search could not find."""
        for file in each_version(files):
            naming = Naming(manifest_id, canonical(file.uri), file.etag, "waiting")
            self._named_here.setdefault(naming.uri, []).append(naming)

    def why_done(self, draft: Draft) -> str:
        """Why nothing of a dead letter is left to do: other manifests have the rows of all its files; empty if not."""
        if (
            draft.account.letter is None
            or draft.files
            or not draft.refused
            or draft.refused.keys() != draft.held.keys()
        ):
            return ""
        holders = [holder for held in draft.held.values() for holder in held.values()]
        commits = {each.id: each.commit for each in accounts_of(self.state, holders, Detail.ACCEPTED)}
        has = {each: _compacted(commit, missed=True) if commit is not None else {} for each, commit in commits.items()}
        for uri, held in draft.held.items():
            for etag, holder in held.items():
                if not any(each.may_have(etag) for each in has[holder].get(canonical(uri), ())):
                    return ""
        number, last = len(draft.held), holders[-1]
        if number == 1:
            return f"manifest {last} has compacted its file"
        return f"other manifests have compacted its {number:,} files, the last one {last}"

    def _draft_of_files(self, account: Account, root: ManifestKey, reason: str | None) -> Draft:
        rejects_of = account.commit.rejects_of if account.commit is not None else ""
        draft = Draft(account, root, account.key.date, rejects_of=rejects_of or None)
        accepted = account.accepted
        draft.listed_at = accepted.manifest.listed_at if accepted and accepted.manifest else None
        for report in account.open_reports(reason):
            if is_log(report.uri):
                draft.refuse({report.uri: _NOT_LANDED})
                continue
            named = _named(report)
            draft.files.append(named)
            draft.reasons[named.uri] = str(report.status)
        # Any id of the lineage will do: only its root counts here.
        rules = redriven_id(root.id, 1), self.search.allowed_prefixes, self.state.layout.redriven_folder
        outside = [file.uri for file in draft.files if not is_allowed(file.uri, *rules)]
        draft.refuse(dict.fromkeys(outside, "it is not below an allowed prefix"))
        found = self._pin(draft)
        draft.refuse({uri: why for uri, why in found.items() if isinstance(why, str)})
        draft.refuse(self._unchanged(account, draft.files))
        return draft

    def _unchanged(self, account: Account, files: Sequence[ManifestFile]) -> dict[str, str]:
        """Why files would be quarantined again: their bytes are as they were, and are read in the same way."""
        commit = account.commit
        if self.is_any_format or commit is None or commit.grok is not None:
            return {}
        reports = {report.uri: report for report in commit.files if report.status in _AS_ITS_BYTES}
        same = (file.uri for file in files if file.uri in reports and reports[file.uri].etag == file.etag)
        why = "it is the version that was quarantined as {}; expected a new version"
        return {uri: why.format(reports[uri].status) for uri in same if READ_AS_JSON not in reports[uri].detail}

    def _draft_of_letter(self, account: Account, letter: DeadLetter, root: ManifestKey) -> Draft:
        accepted = account.accepted
        original = original_of(letter, accepted, self.state, self.search.allowed_prefixes)
        draft = Draft(account, root, original.date, files=list(original.files), rejects_of=original.rejects_of)
        if names_landed(self.state, original):  # a copy under a different id may name the same files as the first one
            claimed = original.model_copy(update={"manifest_id": redriven_id(root.id, 1)})
            check_given(self.state, claimed, letter.source_uri)
            if accepted is None or accepted.manifest is None:
                draft.planned.update(file.uri for file in original.files if is_landed(self.state, file))
        draft.listed_at = original.listed_at
        draft.reasons = dict.fromkeys((file.uri for file in original.files), letter.reason)
        self._pin(draft)  # the job quarantines a missing file
        if original.manifest_id != letter.manifest_id:
            draft.alias = original.manifest_id
            commit = committed_under(draft.alias, self.state)
            draft.refuse_named(draft.files, {} if commit is None else _compacted(commit))
        return draft

    def _pin(self, draft: Draft) -> dict[str, ObjectInfo | str]:
        """Give files without a version the current one; return, by URI, what was found or why nothing was."""
        unpinned = [file for file in draft.files if file.etag is None]
        found = dict(zip((file.uri for file in unpinned), map_ordered(self._found, unpinned), strict=True))
        draft.files = [_pinned(file, found.get(file.uri)) for file in draft.files]
        return found

    def _found(self, file: ManifestFile) -> ObjectInfo | str:
        try:
            info = self.state.store.stat(file.uri)
        except AccessError as exc:
            return str(exc)
        return _GONE if info is None else info


def _named(report: FileReport) -> ManifestFile:
    """A quarantined file in its current version, or the unread lines of a grown one."""
    named = report.as_input()
    return named if named.grown else named.model_copy(update={"size_bytes": None, "etag": None, "range": None})


def _compacted(commit: Commit, *, missed: bool = False) -> dict[str, list[Naming]]:
    """The compacted files, in the version that was read; with `missed` also in those that no longer existed."""
    found: dict[str, list[Naming]] = {}
    for report in commit.files:
        if report.status is FileStatus.COMPACTED:
            uri, etag = canonical(report.uri), None if missed and report.superseded else report.etag or None
            found[uri] = [Naming(commit.manifest_id, uri, etag, "compacted")]
    return found


def _pinned(file: ManifestFile, found: ObjectInfo | str | None) -> ManifestFile:
    if not isinstance(found, ObjectInfo) or file.size_bytes not in {None, found.size_bytes}:
        return file
    pinned = {"size_bytes": found.size_bytes, "etag": found.etag, "event_time": file.event_time or found.modified_at}
    return file.model_copy(update=pinned)
