"""Decides which files a redriven manifest may name: those that exist, are allowed, and that no other manifest has."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from compactor.core.documents.manifest import ManifestFile
from compactor.core.documents.manifest_parsing import is_allowed
from compactor.core.documents.records import Commit, DeadLetter, FileReport, FileStatus
from compactor.core.errors import AccessError, StuckError
from compactor.core.kafka.ports import NoKafka, OpenKafka
from compactor.core.kafka.ranges import is_kafka
from compactor.core.kinesis.places import is_kinesis
from compactor.core.layout import canonical, redriven_id
from compactor.core.manifest_key import ManifestKey
from compactor.core.map_ordered import map_ordered
from compactor.core.ports import ObjectInfo
from compactor.ledger.accounts.account import Account
from compactor.ledger.planned.given import check_given, is_planned, names_planned
from compactor.ledger.state import State
from compactor.manifests.file_search import FileSearch, Naming
from compactor.ops.redrive.claims import RedriveClaims
from compactor.ops.redrive.draft import Draft
from compactor.ops.redrive.originals import committed_under, original_of
from compactor.ops.redrive.ranges import NothingLeft, RangesLeft, Untold

_GONE = "there is no such object; expected it to be there by now, or `compactor dismiss` to give it up"


@dataclass(frozen=True, kw_only=True)
class RedrivePlanner:
    """Drafts new manifests, and claims their files."""

    state: State
    claims: RedriveClaims
    search: FileSearch
    allowed_prefixes: Sequence[str]  # folders that may have input
    kafka: OpenKafka = NoKafka()  # noqa: RUF009 - it is frozen; tells what is left of quarantined ranges
    _named_here: dict[str, list[Naming]] = field(default_factory=dict, init=False)

    @cached_property
    def _ranges(self) -> RangesLeft:
        return RangesLeft(self.kafka)

    def draft(self, account: Account, root: ManifestKey, reason: str | None) -> Draft:
        """Draft the redrive of a manifest: of files with a reason, or of all.

        Raises:
            ManifestError: The manifest is a dead letter and still wrong.
        """
        if account.letter is not None:
            draft = self._draft_of_letter(account, account.letter, root)
        else:
            draft = self._draft_of_files(account, root, reason)
        holders = self.claims.holders(draft.files)
        draft.refuse_held({uri: holder for uri, holder in holders.items() if not draft.is_own(holder)})
        draft.unclaimed.update(file.uri for file in draft.files if file.uri not in holders)
        return draft

    def refuse_known(self, drafts: Sequence[Draft]) -> None:
        """Refuse files without a claim that another manifest has, by one search of the ledger for all drafts.

        Where a record cannot be read, the files of its date are refused, for it may name them; others are not.
        """
        self._named_here.clear()
        wanted = {canonical(uri) for draft in drafts for uri in draft.unclaimed}
        if not wanted:
            return
        found: dict[str, list[Naming]] = {}
        # In this order: a manifest that a job accepts meanwhile moves from the prefix to the records.
        unknown = self._search(self.search.waiting(wanted), found)
        dates = {date for draft in drafts for date in draft.dates()}
        unread = {date: self._search(self.search.on_date(date, wanted), found) for date in sorted(dates)}
        for draft in drafts:
            draft.refuse_named(draft.unclaimed_files(), found)
            if why := unknown or next(filter(None, map(unread.get, sorted(draft.dates()))), ""):
                draft.refuse({uri: why for uri in draft.unclaimed if uri not in draft.refused})

    @staticmethod
    def _search(searched: Iterable[Naming], found: dict[str, list[Naming]]) -> str:
        """Add what a search finds; returns why it cannot tell, empty if it can."""
        try:
            for naming in searched:
                found.setdefault(naming.uri, []).append(naming)
        except StuckError as exc:
            return f"cannot tell whether another manifest has it: {exc}"
        return ""

    def free(self, draft: Draft, files: Sequence[ManifestFile]) -> list[ManifestFile]:
        """Those of some files that no other draft has taken since the last search."""
        draft.refuse_named(files, self._named_here)
        return [file for file in files if file.uri not in draft.refused]

    def claim(self, draft: Draft, files: Sequence[ManifestFile], manifest_id: str) -> list[ManifestFile]:
        """Claim files of a draft for a new manifest; returns those that it got."""
        lost = self.claims.take(files, manifest_id, lambda holder: draft.is_before(holder, manifest_id))
        draft.refuse_held(lost)
        return [file for file in files if file.uri not in lost]

    def remember(self, files: Sequence[ManifestFile], manifest_id: str) -> None:
        """Remember the files of a new manifest, which the last search could not find."""
        for file in files:
            naming = Naming(manifest_id, canonical(file.uri), file.etag, "waiting")
            self._named_here.setdefault(naming.uri, []).append(naming)

    def _draft_of_files(self, account: Account, root: ManifestKey, reason: str | None) -> Draft:
        rejects_of = account.commit.rejects_of if account.commit is not None else ""
        draft = Draft(account, root, account.key.date, rejects_of=rejects_of or None)
        accepted = account.accepted
        draft.listed_at = accepted.manifest.listed_at if accepted and accepted.manifest else None
        for report in account.open_reports(reason):
            named = self._named_again(report)
            if isinstance(named, str):
                draft.refuse({report.uri: named})
                continue
            draft.files += named
            draft.reasons |= dict.fromkeys((file.uri for file in named), str(report.status))
        # Any id of the lineage will do: only its root counts here.
        new_id, folder = redriven_id(root.id, 1), self.state.layout.redriven_folder
        outside = [file.uri for file in draft.files if not is_allowed(file.uri, new_id, self.allowed_prefixes, folder)]
        draft.refuse(dict.fromkeys(outside, "it is not below an allowed prefix"))
        found = self._pin(draft)
        draft.refuse({uri: why for uri, why in found.items() if isinstance(why, str)})
        return draft

    def _named_again(self, report: FileReport) -> list[ManifestFile] | str:
        """What a quarantined input is redriven as, or why it cannot be."""
        if is_kinesis(report.uri):
            return "retention removed it before it was landed; `compactor accept` puts on record that it is gone"
        if not is_kafka(report.uri):
            return [_named(report)]
        parts = self._ranges.parts_of(report)
        return parts.why if isinstance(parts, NothingLeft | Untold) else parts

    def _draft_of_letter(self, account: Account, letter: DeadLetter, root: ManifestKey) -> Draft:
        accepted = account.accepted
        original = original_of(letter, accepted, self.state, self.allowed_prefixes)
        draft = Draft(account, root, original.date, files=list(original.files), rejects_of=original.rejects_of)
        if names_planned(self.state, original):  # a copy under another id may name what the first one has
            claimed = original.model_copy(update={"manifest_id": redriven_id(root.id, 1)})
            check_given(self.state, claimed, letter.source_uri)
            if accepted is None or accepted.manifest is None:
                draft.planned.update(file.uri for file in original.files if is_planned(self.state, file))
        draft.listed_at = original.listed_at
        draft.reasons = dict.fromkeys((file.uri for file in original.files), letter.reason)
        self._pin(draft)  # the job quarantines a file that is missing now
        if original.manifest_id != letter.manifest_id:
            draft.alias = original.manifest_id
            commit = committed_under(draft.alias, self.state)
            draft.refuse_named(draft.files, {} if commit is None else _compacted(commit))
        return draft

    def _pin(self, draft: Draft) -> dict[str, ObjectInfo | str]:
        """Give files without a version that of now; returns, by URI, what was found or why nothing was."""
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
    """A quarantined file, in the version of now; of one that grew the lines that were not read."""
    named = report.as_input()
    return named if named.grown else named.model_copy(update={"size_bytes": None, "etag": None, "range": None})


def _compacted(commit: Commit) -> dict[str, list[Naming]]:
    return {
        canonical(report.uri): [Naming(commit.manifest_id, canonical(report.uri), report.etag or None, "compacted")]
        for report in commit.files
        if report.status is FileStatus.COMPACTED
    }


def _pinned(file: ManifestFile, found: ObjectInfo | str | None) -> ManifestFile:
    if not isinstance(found, ObjectInfo) or file.size_bytes not in {None, found.size_bytes}:
        return file
    pinned = {"size_bytes": found.size_bytes, "etag": found.etag, "event_time": file.event_time or found.modified_at}
    return file.model_copy(update=pinned)
