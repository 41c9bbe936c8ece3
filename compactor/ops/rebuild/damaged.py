"""Finds the manifests to rebuild: what is wrong with their files, and whether their input is unchanged."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import partial

from compactor.core.documents.changes import Commit, StagedFile
from compactor.core.documents.manifest import ManifestFile
from compactor.core.documents.records import Accepted, FileReport, FileStatus
from compactor.core.errors import AccessError, StuckError
from compactor.core.layout import redriven_owner
from compactor.core.map_ordered import map_ordered
from compactor.core.results import only
from compactor.ledger.accounts.account import Account
from compactor.ledger.accounts.reading import Detail, Scope, folded
from compactor.ledger.state import State
from compactor.ledger.table.batches import RefusedBatches
from compactor.ledger.visible import Visible
from compactor.ops.verify.files import CommitFiles
from compactor.ops.verify.report import Discrepancy, ExpiredFiles, Finding

FORCED = "requested, although its files are intact"
ERASED = "lines of it were erased on request, and its input contains or contained them"
HELD_BACK = "the table's catalog refuses its files"


@dataclass(frozen=True, slots=True)
class NotChanged:
    """A manifest that could not be changed."""

    manifest_id: str  # empty if it concerns no manifest
    why: str  # the reason, in words


@dataclass(frozen=True, slots=True)
class Damaged:
    """A manifest to rebuild."""

    accepted: Accepted
    commit: Commit  # the valid one
    why: str  # fault in its files; empty for a decided but unpublished rebuild
    inputs: Mapping[str, ManifestFile] = field(default_factory=dict)  # other versions to read, by URI
    replaced: frozenset[str] = frozenset()  # those whose lines changed
    check: Callable[[], None] = lambda: None  # called before the decision; an `InputError` refuses it
    erasure: str = ""  # the erasure whose rows are omitted; the files are then staged again without the input


@dataclass(frozen=True, slots=True)
class _Expired:
    """A commit whose rows expired, or whose lost files an operator gave up."""

    commit: Commit


@dataclass(frozen=True, slots=True)
class RebuildScan:
    """The manifests to rebuild, and those that cannot be rebuilt."""

    damaged: tuple[Damaged, ...] = ()
    refused: tuple[NotChanged, ...] = ()
    intact: tuple[Commit, ...] = ()
    expired: tuple[Commit, ...] = ()


@dataclass(frozen=True, kw_only=True)
class RebuildScanner:
    """Finds manifests to rebuild. Writes nothing."""

    state: State
    files: CommitFiles

    def scan(self, ids: tuple[str, ...] = (), *, date: str | None = None, force: bool = False) -> RebuildScan:
        """Check the files of some manifests, and the input of those that have to be rebuilt.

        Args:
            ids: The manifests; empty for all.
            date: Only all manifests of this date.
            force: Also rebuild manifests with intact files.
        """
        # Each manifest's records are read in its turn: what is decided meanwhile is not damaged.
        keys = None if ids else self.state.ledger.manifests(date)
        asked = Scope(manifest_ids=ids, keys=keys, details=Detail.ACCEPTED)
        checked = folded(self.state, asked, partial(self._checked, is_named=bool(ids), force=force))
        found = [self._with_input(each) for each in self.state.meter.each("manifest", checked, len(ids) or None)]
        expired = tuple(each.commit for each in only(_Expired, found))
        return RebuildScan(only(Damaged, found), only(NotChanged, found), only(Commit, found), expired)

    def _with_input(self, found: object) -> object:
        """The finding; a damaged manifest whose input has changed cannot be rebuilt."""
        if not isinstance(found, Damaged) or not found.why:
            return found
        fault = input_fault(self.state, found.commit) if found.commit.erased is None else ERASED
        if not fault:
            return found
        return NotChanged(found.commit.manifest_id, f"{found.why}. The rows cannot be rebuilt: {fault}")

    def _checked(self, account: Account, *, is_named: bool, force: bool) -> object:
        if not account.key.date:
            place = self.state.layout.state
            return NotChanged(account.id, f"{place} has no record of it; expected the id of a manifest")
        try:
            return self._found(account.checked(), is_named=is_named, force=force)
        except StuckError as exc:
            return NotChanged(account.id, str(exc))

    def _found(
        self, account: Account, *, is_named: bool, force: bool
    ) -> Damaged | NotChanged | Commit | _Expired | None:
        """The finding about a manifest: its commit if it is intact, None if it is out of scope."""
        commit = account.commit
        if commit is None:
            return NotChanged(account.id, _why_no_commit(account)) if is_named else None
        if account.is_done:
            if (expired := self.files.visible.deletion("rows", commit.key, commit.generation)) is not None:
                why = f"its rows {expired.words}; expected rows that no rule took"
                return NotChanged(account.id, why) if is_named else _Expired(commit)
            checked = list(self.files.published(commit))
            why = _published_fault(commit, checked) or (FORCED if force else "")
            if not why:
                return _Expired(commit) if any(isinstance(each, ExpiredFiles) for each in checked) else commit
        else:
            why = self._staged_fault(commit)
            if not why and is_named and RefusedBatches(self.state).is_held(commit.key, commit.generation):
                why = HELD_BACK
            if not why and not commit.is_rebuilt:
                why = "it is committed and not published yet; expected the job to finish it first"
                return NotChanged(account.id, why) if is_named else None
        if account.accepted is None or account.accepted.manifest is None:
            return NotChanged(account.id, f"{why}. Its acceptance record is missing; expected it to be kept")
        return Damaged(account.accepted, commit, why)

    def _staged_fault(self, commit: Commit) -> str:
        """The files of an unfinished commit that are neither staged nor published; empty if there are none."""
        lost = [file for file in _files(commit) if self._is_lost(commit, file)]
        if not lost or self.state.ledger.is_done(commit.key, commit.generation):  # another driver was faster
            return ""
        faults = [f"{file.staged}: missing, and was not published" for file in lost]
        return _first_of(faults, len(_files(commit)), "staged files lost")

    def _is_lost(self, commit: Commit, file: StagedFile) -> bool:
        if self.state.store.stat(file.staged) is not None:
            return False
        # After a rebuild, a file from an earlier generation may have the same name and length.
        published = self.state.store.stat(file.final) if not commit.is_rebuilt else None
        return published is None or published.size_bytes != file.size_bytes


def compacted(commit: Commit) -> list[FileReport]:
    """The files for which a commit has rows or rejects. Quarantined files may have been redriven as other manifests."""
    # guard: quarantined files are not compacted by a rebuild
    return [file for file in commit.files if file.status is FileStatus.COMPACTED]


def input_fault(state: State, commit: Commit) -> str:
    """Why the input of a commit cannot be read again unchanged; empty if it can."""
    store, folder = state.store, state.layout.redriven_folder

    def fault(file: FileReport) -> str:
        expected = f"expected the compacted version {file.etag!r}"
        try:
            info = store.stat(file.uri)
        except AccessError as exc:
            return f"{file.uri}: {exc}"
        if info is None and redriven_owner(file.uri, folder) == commit.manifest_id:
            expired = Visible(state).deletion("redriven", commit.key, commit.generation)
            if expired is not None:
                return f"{file.uri}: it {expired.words}"
        if info is None:
            return f"{file.uri}: missing; {expected}"
        # guard: a different version of the input is refused
        if info.etag == file.etag or file.may_have_grown(info.size_bytes):
            return ""
        return f"{file.uri}: now has version {info.etag!r}; {expected}"

    files = compacted(commit)
    return _first_of(filter(None, map_ordered(fault, files)), len(files), "input files changed or missing")


def _published_fault(commit: Commit, checked: Iterable[Finding]) -> str:
    """The fault in a finished commit's checked files; empty if there is none."""
    finals = {file.final for file in _files(commit)}
    found = [each for each in checked if isinstance(each, Discrepancy) and each.where in finals]
    words = [f"{each.where}: expected {each.expected}, found {each.found}" for each in found]
    return _first_of(words, len(finals), "files lost or damaged")


def _why_no_commit(account: Account) -> str:
    if account.letter is not None:
        return f"it is a dead letter ({account.letter.reason}) and has no rows; expected `compactor redrive manifests`"
    return "it has no outcome yet; expected a commit"


def _files(commit: Commit) -> tuple[StagedFile, ...]:
    return (*commit.outputs, *commit.rejects)


def _first_of(found: Iterable[str], number: int, what: str) -> str:
    faults = list(found)
    return f"{len(faults):,} of {number:,} {what}: {faults[0]}" if faults else ""
