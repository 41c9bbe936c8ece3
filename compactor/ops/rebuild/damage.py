"""Finds what is wrong with the files of a commit, and whether its input is still as it was. Writes nothing."""

from collections.abc import Sequence
from dataclasses import dataclass

from compactor.core.documents.records import Commit, FileReport, FileStatus, StagedFile
from compactor.core.errors import AccessError
from compactor.core.layout import redriven_owner
from compactor.core.map_ordered import map_ordered
from compactor.ledger.state import State
from compactor.ledger.visible import Visible
from compactor.ops.verify.files import CommitFiles
from compactor.ops.verify.report import Discrepancy


@dataclass(frozen=True, kw_only=True)
class Damage:
    """Checks the files of commits."""

    state: State
    files: CommitFiles

    def of_published(self, commit: Commit) -> str:
        """What is wrong with the files of a commit that is done; empty if nothing is."""
        finals = {file.final for file in _files(commit)}
        faults = (each for each in self.files.published(commit) if isinstance(each, Discrepancy))
        found = [each for each in faults if each.where in finals]
        words = [f"{each.where}: expected {each.expected}, found {each.found}" for each in found]
        return _first_of(words, len(finals), "files lost or damaged")

    def of_staged(self, commit: Commit) -> str:
        """Which files of a commit that is not done are neither staged nor published; empty if all are there."""
        lost = [file for file in _files(commit) if self._is_lost(commit, file)]
        if not lost or self.state.ledger.is_done(commit.key, commit.generation):  # another driver was faster
            return ""
        faults = [f"{file.staged}: it is gone, and was not published" for file in lost]
        return _first_of(faults, len(_files(commit)), "staged files lost")

    def _is_lost(self, commit: Commit, file: StagedFile) -> bool:
        if self.state.store.stat(file.staged) is not None:
            return False
        # After a rebuild, a file of an earlier generation may have the same name and length.
        published = self.state.store.stat(file.final) if not commit.is_rebuilt else None
        return published is None or published.size_bytes != file.size_bytes


def compacted(commit: Commit) -> list[FileReport]:
    """The files that a commit has rows or rejects of. Quarantined ones may have been redriven as other manifests."""
    # guard: quarantined files are not compacted by a rebuild
    return [file for file in commit.files if file.status is FileStatus.COMPACTED]


def input_fault(state: State, commit: Commit) -> str:
    """Why the input of a commit cannot be read again as it was; empty if it can."""
    store, folder = state.store, state.layout.redriven_folder

    def fault(file: FileReport) -> str:
        expected = f"expected the version {file.etag!r}, which was compacted"
        try:
            info = store.stat(file.uri)
        except AccessError as exc:
            return f"{file.uri}: {exc}"
        if info is None and redriven_owner(file.uri, folder) == commit.manifest_id:
            expired = Visible(state).taken("redriven", commit.key, commit.generation)
            if expired is not None:
                return f"{file.uri}: it {expired.words}"
        if info is None:
            return f"{file.uri}: it is gone; {expected}"
        # guard: another version of the input is refused
        if info.etag == file.etag or file.may_have_grown(info.size_bytes):
            return ""
        return f"{file.uri}: it is version {info.etag!r} now; {expected}"

    files = compacted(commit)
    return _first_of([found for found in map_ordered(fault, files) if found], len(files), "input files changed or gone")


def _files(commit: Commit) -> tuple[StagedFile, ...]:
    return (*commit.outputs, *commit.rejects)


def _first_of(faults: Sequence[str], number: int, what: str) -> str:
    return f"{len(faults):,} of {number:,} {what}: {faults[0]}" if faults else ""
