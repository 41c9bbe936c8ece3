"""Which files a redriven manifest may name: those that exist, are allowed, and that no other manifest has."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from itertools import chain

from compactor.core.errors import AccessError, ManifestError, ObjectNotFound, StuckError
from compactor.core.layout import Layout, canonical, date_of_file, redriven_id, root_id
from compactor.core.manifest import MAX_MANIFEST_BYTES, Manifest, ManifestFile, is_allowed, parse_manifest
from compactor.core.map_ordered import map_ordered
from compactor.core.ports import ObjectInfo, ObjectStore
from compactor.core.records import Commit, DeadLetter, FileStatus, Redrive
from compactor.ledger.ledger import Ledger
from compactor.manifests.file_search import FileSearch, Naming
from compactor.ops.redrive.claims import RedriveClaims
from compactor.ops.redrive.redrive_log import Lineage
from compactor.ops.redrive.selection import Scope, files_left


@dataclass(frozen=True, slots=True)
class Refused:
    """Something that is not redriven.

    Attributes:
        manifest_id: The manifest that it belongs to.
        uri: The file; empty where the whole of the manifest is meant.
        why: In words.
    """

    manifest_id: str
    uri: str
    why: str


@dataclass(slots=True)
class Draft:
    """What a new manifest may come to name.

    Attributes:
        outcome: Of the manifest that the files are taken from.
        lineage: Of that manifest.
        date: The date of the new manifest.
        alias: The id that the original of a dead letter gives itself, where the letter goes by another one.
        files: All that is not refused.
        untold: URIs of those that claims say nothing of.
        reasons: By URI, why a file was set aside.
        refused: By URI, why a file cannot be redriven.
    """

    outcome: Commit | DeadLetter
    lineage: Lineage
    date: str
    alias: str = ""
    files: list[ManifestFile] = field(default_factory=list)
    untold: set[str] = field(default_factory=set)
    reasons: dict[str, str] = field(default_factory=dict)
    refused: dict[str, str] = field(default_factory=dict)

    def is_own(self, holder: str) -> bool:
        """Whether a claim of this holder is one of the family."""
        return self.lineage.root.id in {holder, root_id(holder)} or holder == self.alias

    def refuse(self, refused: Mapping[str, str]) -> None:
        """Leave files out, each with its reason."""
        self.refused.update(refused)
        self.files = [file for file in self.files if file.uri not in refused]

    def refusals(self) -> list[Refused]:
        """What was left out for good."""
        return [Refused(self.outcome.manifest_id, uri, why) for uri, why in self.refused.items()]

    def files_left(self, scope: Scope, redrives: Sequence[Redrive]) -> list[ManifestFile]:
        """The files that were not redriven meanwhile."""
        if isinstance(self.outcome, DeadLetter):
            return list(self.files)
        own = [each for each in redrives if each.source == self.outcome.manifest_id]
        left = {report.uri for report in files_left(scope, self.outcome, own)}
        return [file for file in self.files if file.uri in left]


class RedrivePlanner:
    """Drafts new manifests of files, and claims them.

    Args:
        store: Where the files and the dead letters are.
        layout: The places.
        ledger: What is on record.
        claims: Who holds which file.
        search: Finds manifests that name a file, where claims cannot tell.
        allowed_prefixes: Folders that input may be in.
    """

    def __init__(
        self,
        *,
        store: ObjectStore,
        layout: Layout,
        ledger: Ledger,
        claims: RedriveClaims,
        search: FileSearch,
        allowed_prefixes: Sequence[str],
    ) -> None:
        self._store = store
        self._layout = layout
        self._ledger = ledger
        self._claims = claims
        self._search = search
        self._allowed_prefixes = allowed_prefixes
        self._named_here: dict[str, list[Naming]] = {}

    def draft(self, scope: Scope, lineage: Lineage, outcome: Commit | DeadLetter, redrives: Sequence[Redrive]) -> Draft:
        """The files that a manifest leaves to be redriven.

        Raises:
            ManifestError: A dead letter that is as wrong as it was.
        """
        if isinstance(outcome, DeadLetter):
            draft = self._draft_of_letter(lineage, outcome)
        else:
            draft = self._draft_of_files(scope, lineage, outcome, redrives)
        holders = self._claims.holders(draft.files)
        draft.refuse({uri: _held_by(holder) for uri, holder in holders.items() if not draft.is_own(holder)})
        draft.untold.update(file.uri for file in draft.files if file.uri not in holders)
        return draft

    def search(self, drafts: Sequence[Draft]) -> None:
        """Refuse files that claims say nothing of, and that another manifest has; one search for all drafts."""
        self._named_here.clear()
        wanted = {canonical(uri) for draft in drafts for uri in draft.untold}
        if not wanted:
            return
        days = {day for draft in drafts for day in _days(draft)}
        try:
            found = self._namings(days, wanted)
        except StuckError as exc:
            for draft in drafts:
                draft.refuse(dict.fromkeys(draft.untold, f"nobody can tell whether another manifest has it: {exc}"))
            return
        for draft in drafts:
            draft.refuse(_conflicts([file for file in draft.files if file.uri in draft.untold], found))

    def _namings(self, days: Collection[str], wanted: Collection[str]) -> dict[str, list[Naming]]:
        found: dict[str, list[Naming]] = {}
        # In this order: a manifest that a job takes up meanwhile goes from the prefix to the records.
        searched = chain(self._search.waiting(wanted), *(self._search.on_date(day, wanted) for day in sorted(days)))
        for naming in searched:
            found.setdefault(naming.uri, []).append(naming)
        return found

    def free(self, draft: Draft, files: Sequence[ManifestFile]) -> list[ManifestFile]:
        """Those of some files that no other draft of the same search has taken."""
        draft.refuse(_conflicts(files, self._named_here))
        return [file for file in files if file.uri not in draft.refused]

    def claim(self, draft: Draft, files: Sequence[ManifestFile], manifest_id: str) -> list[ManifestFile]:
        """Claim files of a draft for a new manifest, and return those that could be had."""
        lost = self._claims.take(files, manifest_id, draft.is_own)
        draft.refuse({uri: _held_by(holder) for uri, holder in lost.items()})
        return [file for file in files if file.uri not in lost]

    def remember(self, files: Sequence[ManifestFile], manifest_id: str) -> None:
        """Keep in mind that files are in a manifest which the last search could not see."""
        for file in files:
            naming = Naming(manifest_id, canonical(file.uri), file.etag, "waiting")
            self._named_here.setdefault(naming.uri, []).append(naming)

    def _draft_of_files(self, scope: Scope, lineage: Lineage, commit: Commit, redrives: Sequence[Redrive]) -> Draft:
        draft = Draft(commit, lineage, commit.date)
        own = [each for each in redrives if each.source == commit.manifest_id]
        for report in files_left(scope, commit, own):
            draft.files.append(ManifestFile(uri=report.uri))
            draft.reasons[report.uri] = str(report.status)
        # The next id has the same root, which is all that counts here.
        new_id, folder = redriven_id(lineage.root.id, 1), self._layout.redriven_folder
        outside = [file.uri for file in draft.files if not is_allowed(file.uri, new_id, self._allowed_prefixes, folder)]
        draft.refuse(dict.fromkeys(outside, "it is not below an allowed prefix"))
        found = self._pin(draft)
        draft.refuse({uri: why for uri, why in found.items() if isinstance(why, str)})
        return draft

    def _draft_of_letter(self, lineage: Lineage, letter: DeadLetter) -> Draft:
        original = self._original(letter)
        draft = Draft(letter, lineage, original.date, files=list(original.files))
        draft.reasons = dict.fromkeys((file.uri for file in original.files), letter.reason)
        self._pin(draft)  # a file that is not there now becomes a file that was set aside
        if original.manifest_id != letter.manifest_id:
            draft.alias = original.manifest_id
            self._leave_to_holder(draft)
        return draft

    def _original(self, letter: DeadLetter) -> Manifest:
        """The manifest of a dead letter, by the settings of today."""
        accepted = self._ledger.accepted(letter.manifest_id)
        if accepted is not None and accepted.manifest is not None:
            data = accepted.manifest.to_json()
        else:
            data = self._kept_original(letter)
        return parse_manifest(
            data,
            uri=letter.source_uri,
            # The day that it was given when it was set aside, where nothing in it says another one.
            modified_at=datetime.fromisoformat(letter.date).replace(tzinfo=UTC),
            allowed_prefixes=self._allowed_prefixes,
            redriven_folder=self._layout.redriven_folder,
        )

    def _kept_original(self, letter: DeadLetter) -> bytes:
        uri = self._layout.failed_manifest(letter.manifest_id)
        info = self._store.stat(uri)
        if info is not None and info.size_bytes > MAX_MANIFEST_BYTES:
            raise ManifestError("too_big", f"{uri}: {info.size_bytes} bytes, expected at most {MAX_MANIFEST_BYTES}")
        try:
            return self._store.read(uri)
        except ObjectNotFound as exc:
            raise ManifestError(letter.reason, f"{uri}: the original is gone; expected it to be kept") from exc

    def _leave_to_holder(self, draft: Draft) -> None:
        """Leave out what the manifest has that holds the id which a dead letter gives itself.

        Raises:
            ManifestError: That id is void, or nobody can tell yet.
        """
        alias = draft.alias
        holder = self._ledger.accepted(alias)
        if holder is None:
            if self._store.stat(self._layout.manifest(alias)) is not None:
                raise ManifestError("id_already_used", f"manifest {alias} waits; expected it to be done first")
            return
        if holder.kind == "revoked":
            raise ManifestError(
                "id_already_used", f"the id {alias} was given up by its planner, and its files were planned again"
            )
        try:
            outcome = self._ledger.outcome(holder.key)
        except ObjectNotFound as exc:
            raise ManifestError(
                "id_already_used", f"manifest {alias} is in work; expected it to be done first"
            ) from exc
        if isinstance(outcome, Commit):
            compacted = {
                canonical(report.uri): [Naming(alias, canonical(report.uri), report.etag or None, "compacted")]
                for report in outcome.files
                if report.status is FileStatus.COMPACTED
            }
            draft.refuse(_conflicts(draft.files, compacted))

    def _pin(self, draft: Draft) -> dict[str, ObjectInfo | str]:
        """Have files without a version name that of now; returns, by URI, what was found or why nothing was."""
        unpinned = [file for file in draft.files if file.etag is None]
        found = dict(zip((file.uri for file in unpinned), map_ordered(self._found, unpinned), strict=True))
        draft.files = [_pinned(file, found.get(file.uri)) for file in draft.files]
        return found

    def _found(self, file: ManifestFile) -> ObjectInfo | str:
        try:
            info = self._store.stat(file.uri)
        except AccessError as exc:
            return str(exc)
        return "there is no such object; expected it to be there by now" if info is None else info


def _pinned(file: ManifestFile, found: ObjectInfo | str | None) -> ManifestFile:
    if not isinstance(found, ObjectInfo) or file.size_bytes not in {None, found.size_bytes}:
        return file
    return ManifestFile(
        uri=file.uri,
        size_bytes=found.size_bytes,
        etag=found.etag,
        event_time=file.event_time or found.modified_at,
    )


def _days(draft: Draft) -> set[str]:
    """The days whose manifests may have the files of a draft."""
    day = datetime.fromisoformat(draft.date).replace(tzinfo=UTC)
    own = (date_of_file(file.uri, file.event_time or day) for file in draft.files if file.uri in draft.untold)
    return {draft.date, draft.outcome.date, *own}


def _conflicts(files: Sequence[ManifestFile], found: Mapping[str, Sequence[Naming]]) -> dict[str, str]:
    """By URI, which manifest has a file already."""
    conflicts: dict[str, str] = {}
    for file in files:
        naming = next((each for each in found.get(canonical(file.uri), ()) if each.may_have(file.etag)), None)
        if naming is not None:
            has = "has compacted it" if naming.state == "compacted" else "names it, and is not done"
            conflicts[file.uri] = f"manifest {naming.manifest_id} {has}"
    return conflicts


def _held_by(holder: str) -> str:
    return f"manifest {holder} holds the claim of it"
