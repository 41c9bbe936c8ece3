"""How inputs without rows get settled: dead letters and quarantined files. One rule for all commands.

A quarantined file version is settled once it was redriven, or once an attempt that started later compacted that file. A
later version that was quarantined too settles nothing, nor does a deleted file. It may be given up; see `GivenUp`.

A dead letter is settled once it was redriven or given up, or once later manifests have committed rows for each of its
files: from each version that it names, or a later one. This happens when a redrive claims its files and dies before
recording itself, and a plan takes them over. A file that had changed by then needs no rows: its new version has its own
event. A refused duplicate of a planned manifest is settled once that one is committed.

Summaries list what was open when its date was closed, and what settled it. So only manifests in no summary can have
settled it since. What is in no summary may be settled by any later manifest.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import count
from typing import TypeVar

from compactor.core.documents.changes import (
    Commit,
    DeadLetter,
    GivenUp,
    Why,
)
from compactor.core.documents.closed_dates import OpenFile
from compactor.core.documents.manifest import Manifest, each_version
from compactor.core.documents.records import Accepted
from compactor.core.errors import ObjectNotFound, StuckError
from compactor.core.layout import ManifestKey, duplicate_id, is_of_new, is_within, redriven_id, root_id
from compactor.core.logs.names import is_log
from compactor.core.map_ordered import map_ordered
from compactor.ledger.accounts.account import Account, DeadLetterManifest, QuarantinedFile, letter_of, redriven_uris
from compactor.ledger.accounts.later_rows import KnownRows, Version, later_rows, may_settle
from compactor.ledger.accounts.reading import Detail, Listed, accounts_of, is_there
from compactor.ledger.change_log import changes_about
from compactor.ledger.history.redrive_log import RedriveLog, effective_redrives_of
from compactor.ledger.history.unsummarised import Unsummarised, unsummarised_if_readable
from compactor.ledger.state import State

L = TypeVar("L", bound=DeadLetterManifest)

_ENDING = "-dup-"
_NAMES_NOTHING = frozenset({"empty", "not_json"})  # dead letter reasons


@dataclass(frozen=True, slots=True)
class Settling:
    """Finds how inputs without rows were settled.

    Attributes:
        state: Has the records.
        known: Rows found in commits; new findings are added.
        found: The manifests in no summary, if already read.
    """

    state: State
    known: KnownRows = field(default_factory=KnownRows)
    found: Unsummarised | None = None

    def files(
        self, files: Sequence[QuarantinedFile], among: Iterable[ManifestKey] | None = None
    ) -> list[QuarantinedFile]:
        """Quarantined files with what settled each.

        Args:
            files: Files of any manifests. A `redriven` of None is read.
            among: The manifests that may have later versions; None for all candidates.
        """
        checked = self._with_dismissals(self._with_redrives(files))
        left = [each for each in checked if not each.is_settled]
        if not left:
            return checked
        versions = [_version(each) for each in left]
        if among is None:
            found = self._index()
            closed = {(each.manifest_id, each.uri) for each in (found.totals.quarantined if found else ())}
            fresh = [each for each in versions if (each.manifest_id, each.uri) not in closed]
            manifests = may_settle(self.state, found, fresh)
        else:
            manifests = map(Listed, among)
        rows = later_rows(self.state, versions, manifests, self.known)
        return [each if each.is_settled else replace(each, settled_by=rows.get(_version(each), "")) for each in checked]

    def letters(self, letters: Sequence[L], among: Collection[ManifestKey] | None = None) -> list[L]:
        """Dead letters with what settled each.

        Args:
            letters: The dead letters.
            among: The manifests that may have taken over the last file of each; None for all candidates.
        """
        redriven, named = dict[str, bool | None](), dict[str, Sequence[Version]]()
        ids = [each.manifest_id for each in letters]
        for each in accounts_of(self.state, ids, Detail.ACCEPTED | Detail.LINEAGE):
            redriven[each.id] = None if each.fault is not None else each.was_redriven  # `verify` reports the fault
            if redriven[each.id] is False:
                named[each.id] = named_versions(each)
        dismissals = self.dismissals(named)
        named = {each: versions for each, versions in named.items() if each not in dismissals}
        taken = self.duplicates(list(named)) | self.taken_over(named, among)

        def marked(letter: L) -> L:
            found, by = dismissals.get(letter.manifest_id), taken.get(letter.manifest_id, "")
            letter = replace(letter, redriven=redriven[letter.manifest_id], settled_by=by)
            return letter if found is None else replace(letter, settled_by=found.words, dismissed=found.how)

        return list(map(marked, letters))

    def dismissals(self, manifest_ids: Collection[str]) -> dict[str, GivenUp]:
        """How each given dead letter was given up; others are omitted."""
        found = zip(manifest_ids, map_ordered(self._dismissals, manifest_ids), strict=True)
        return {each: by_input["", ""] for each, by_input in found if ("", "") in by_input}

    def duplicates(self, manifest_ids: Sequence[str]) -> dict[str, str]:
        """The manifest that each given one redundantly duplicates; others are omitted."""
        ids = [each for each in manifest_ids if is_of_new(each)]
        found = zip(ids, map_ordered(partial(_duplicate_of, self.state), ids), strict=True)
        return {each: settled_by for each, settled_by in found if settled_by}

    def taken_over(
        self, named: Mapping[str, Sequence[Version]], among: Collection[ManifestKey] | None = None
    ) -> dict[str, str]:
        """The manifest that took over the last file of each dead letter; omitted if any file remains.

        Args:
            named: The versions that each dead letter names; none was redriven.
            among: As for `letters`.
        """
        versions = {each: found for each, found in named.items() if found}
        if not versions:
            return {}
        found, asked = self._index(), set(versions)
        if among is None:
            asked &= {each.manifest_id for each in (found.totals.letters if found else ())}
            among = found.keys if found else ()
        rows = later_rows(self.state, _all(versions, asked), map(Listed, among)) if asked else {}
        may_be = {each for each, those in versions.items() if each not in asked or any(one in rows for one in those)}
        if not may_be:
            return {}
        wanted = _all(versions, may_be)
        manifests = list(may_settle(self.state, found, wanted))
        self.known.keep_only({each.key.id for each in manifests})
        taken = later_rows(self.state, wanted, manifests, self.known)
        return {each: taken[versions[each][-1]] for each in may_be if all(one in taken for one in versions[each])}

    def was_interrupted(self, manifest_id: str) -> bool:
        """Whether a redrive in a dead letter's lineage lost its claims before it was recorded."""
        ids = (redriven_id(root_id(manifest_id), number) for number in count(1))
        try:
            for record in map(self.state.ledger.accepted, ids):
                if record is None or record.kind == "revoked":
                    return record is not None
        except StuckError:
            pass
        return False

    def _index(self) -> Unsummarised | None:
        return self.found or unsummarised_if_readable(self.state)

    def _with_redrives(self, files: Sequence[QuarantinedFile]) -> list[QuarantinedFile]:
        """The files, with whether they were redriven, where readable."""
        ids = list(dict.fromkeys(each.manifest_id for each in files if each.redriven is None))
        taken = dict(zip(ids, map_ordered(self._redriven_uris, ids), strict=True))

        def marked(file: QuarantinedFile) -> QuarantinedFile:
            uris = taken[file.manifest_id] if file.redriven is None else None
            return file if uris is None else replace(file, redriven=file.uri in uris)

        return list(map(marked, files))

    def _redriven_uris(self, manifest_id: str) -> set[str] | None:
        """A manifest's files that were redriven; None if unreadable."""
        try:
            return redriven_uris(
                effective_redrives_of(manifest_id, RedriveLog(state=self.state).entries_about(manifest_id))
            )
        except (ObjectNotFound, StuckError):
            return None

    def _with_dismissals(self, files: Sequence[QuarantinedFile]) -> list[QuarantinedFile]:
        """The files, with who dismissed them unless they were redriven."""
        ids = list(dict.fromkeys(each.manifest_id for each in files if not each.is_settled))
        found = dict(zip(ids, map_ordered(self._dismissals, ids), strict=True))

        def marked(file: QuarantinedFile) -> QuarantinedFile:
            dismissal = None if file.is_settled else found[file.manifest_id].get((file.uri, file.etag))
            return file if dismissal is None else replace(file, settled_by=dismissal.words, dismissed=dismissal.how)

        return list(map(marked, files))

    def _dismissals(self, manifest_id: str) -> Mapping[tuple[str, str], GivenUp]:
        """A manifest's dismissals, by input and version; none if unreadable, so that its files need an operator."""
        try:
            found = changes_about(self.state, GivenUp, manifest_id, Why.GIVEN_UP)
            return {(each.input, each.etag): each for each in found if not each.generation and self._still_holds(each)}
        except (ObjectNotFound, StuckError):
            return {}

    def _still_holds(self, given_up: GivenUp) -> bool:
        """Whether a finding is still true; an operator's decision stays."""
        if given_up.how == "removed":
            return not is_there(self.state, given_up.input, if_forbidden=False)
        return given_up.how != "excluded" or self.state.rules.excludes(given_up.input)


def settled(state: State, found: Account) -> Account:
    """An account with what settled its dead letter and its quarantined files."""
    settling = Settling(state)
    letters = settling.letters([letter_of(found.letter)] if found.letter is not None else [])
    settled_by = letters[0].fate if letters else ""
    return replace(found, settled_by=settled_by, quarantined=tuple(settling.files(found.quarantined)))


def named_versions(account: Account) -> list[Version]:
    """The versions that a dead letter names; none if its manifest was unreadable."""
    letter, accepted = account.letter, account.accepted
    if letter is None or accepted is None or accepted.manifest is None:
        return []
    versions = each_version(accepted.manifest.files)
    return [Version(account.id, each.uri, letter.decided_at, each.etag or "") for each in versions]


def open_file(file: OpenFile) -> QuarantinedFile:
    """A quarantined file from a summary, not considering later records that may have settled it."""
    return QuarantinedFile(
        file.manifest_id, file.uri, file.status, file.detail, file.committed_at, None, file.started_at
    )


def _version(file: QuarantinedFile) -> Version:
    return Version(file.manifest_id, file.uri, file.started_at)


def _all(versions: Mapping[str, Sequence[Version]], manifest_ids: Collection[str]) -> list[Version]:
    return [each for manifest_id, named in versions.items() if manifest_id in manifest_ids for each in named]


def _duplicate_of(state: State, manifest_id: str) -> str:
    """The manifest that settles a refused one.

    Producers cannot choose a planned manifest's id, so a duplicate of it was made from the planned manifest itself.
    Ranges and landed objects never change, so once the planned one is committed, a duplicate without other files is
    redundant. A duplicate with any other file stays open, and so does one whose files are unknown. An empty one, or
    text that is not JSON, names no files. The same holds for a refused manifest that has the planned id itself: then
    redrives contain what was planned.
    """
    try:
        refused = state.ledger.accepted(manifest_id)
        if refused is None or refused.kind != "refused":
            return ""
        planned = _duplicated(state, refused) if _ENDING in manifest_id else _in_its_place(state, refused)
        return planned.manifest_id if planned is not None and _adds_nothing(state, refused, planned) else ""
    except (ObjectNotFound, StuckError, ValueError):  # its files are unknown, so an operator has to check
        return ""


def _duplicated(state: State, refused: Accepted) -> Manifest | None:
    """The planned manifest that was duplicated, if it is committed."""
    holder = state.ledger.accepted(refused.manifest_id.rpartition(_ENDING)[0])
    if holder is None or holder.manifest is None or not _is_duplicate(refused, holder):
        return None
    if not _is_planned(state, holder.manifest):  # guard: a duplicate of a producer's manifest is not settled with it
        return None
    # guard: a duplicate is settled once the planned manifest is committed, not before
    is_committed = isinstance(state.ledger.outcome(holder.key), Commit)
    return holder.manifest if is_committed else None


def _in_its_place(state: State, refused: Accepted) -> Manifest | None:
    """The redriven content of an id's planned manifest, if all those redrives are committed; has the last one's id."""
    planned = [each.redrive.manifest for each in RedriveLog(state=state).planned(refused.key)]
    if not planned or not all(isinstance(state.ledger.outcome(each.key), Commit) for each in planned):
        return None
    return planned[-1].model_copy(update={"files": tuple(file for each in planned for file in each.files)})


def _is_duplicate(refused: Accepted, holder: Accepted) -> bool:
    is_refused = refused.kind == "refused" and holder.kind == "manifest"
    return is_refused and duplicate_id(holder.manifest_id, refused.digest) == refused.manifest_id


def _is_planned(state: State, manifest: Manifest) -> bool:
    """Whether a manifest names only gaps and landed objects, which only a plan, or a redrive of one, can name."""
    landed = state.layout.landed_inputs(root_id(manifest.manifest_id))
    return all(is_log(file.uri) or is_within(file.uri, landed) for file in manifest.files)


def _adds_nothing(state: State, refused: Accepted, planned: Manifest) -> bool:
    letter = state.ledger.outcome_of(refused.key, DeadLetter.generation)
    if isinstance(letter, DeadLetter) and letter.reason in _NAMES_NOTHING:
        return True
    data = state.store.read(state.layout.failed_manifest(refused.manifest_id))
    named = Manifest.model_validate_json(data).files
    versions = {(file.uri, file.etag) for file in planned.files}
    return all((file.uri, file.etag) in versions for file in named)
