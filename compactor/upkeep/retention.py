"""Decides what must stay although it is old: only committed and finished work may be deleted."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from compactor.core.documents.changes import Commit, DeadLetter
from compactor.core.documents.records import Accepted, FileReport, FileStatus
from compactor.core.errors import ObjectNotFound, RecordUnreadable
from compactor.core.layout import ManifestKey, redriven_owner
from compactor.ledger.history.redrive_log import RedriveLog
from compactor.ledger.state import State
from compactor.ledger.table.orphans import Fate, InPlaceFiles

Found = tuple[ManifestKey, int]
"""A manifest that is committed and done, and its commit's generation."""


def is_left(file: FileReport, redriven_folder: str, manifest_id: str) -> bool:
    """Whether lines redriven as a manifest were quarantined there, so that they can be redriven again."""
    return file.status != FileStatus.COMPACTED and redriven_owner(file.uri, redriven_folder) == manifest_id


@dataclass(frozen=True, slots=True)
class Retention:
    """Decides what must stay. Methods return the reason, or else an empty text, or the deletable object's manifest.

    Attributes:
        living_runs: Returns which of some runs have a heartbeat.
    """

    state: State
    living_runs: Callable[[Iterable[str]], frozenset[str]]

    def why_keep_archived(self, uri: str) -> Found | str:
        """Why an archived manifest must stay."""
        key = self.state.layout.archived_key(uri)
        return "its name is not that of an archived manifest" if key is None else self._done(key)

    def why_keep_rejects(self, owner: str) -> Found | str:
        """Why a manifest's rejects must stay, given its date and id separated by `/`."""
        date, _, manifest_id = owner.partition("/")
        return self._done(ManifestKey(date, manifest_id))

    def why_keep_redriven(self, manifest_id: str) -> Found | str:
        """Why the lines redriven as a manifest must stay."""
        accepted = self._accepted(manifest_id)
        if isinstance(accepted, str):
            return accepted
        commit = self._done_commit(accepted.key)
        if isinstance(commit, str):
            return commit
        place = self.state.layout.redriven_folder
        is_quarantined = any(is_left(file, place, manifest_id) for file in commit.files)
        if not is_quarantined and self._has_open_redrive(accepted.key):
            return "the plan for its id is not done"
        return "some of its files are quarantined" if is_quarantined else (accepted.key, commit.generation)

    def _has_open_redrive(self, key: ManifestKey) -> bool:
        """Whether a redrive of the planned content of an id that has different content is not committed and done."""
        try:
            planned = RedriveLog(state=self.state).planned(key)
        except RecordUnreadable:
            return True
        return any(isinstance(self._done_commit(each.redrive.manifest.key), str) for each in planned)

    def why_keep_staged(self, manifest_id: str) -> str:
        """Why a manifest's old staging must stay."""
        if self.state.store.stat(self.state.layout.open_marker(manifest_id)) is not None:
            return "its manifest is open"
        accepted = self._accepted(manifest_id)
        if isinstance(accepted, str):
            return accepted
        outcome = self._outcome(accepted.key)
        if isinstance(outcome, str):
            return outcome
        if isinstance(outcome, Commit) and not self.state.ledger.is_done(accepted.key, outcome.generation):
            return "its commit is not done"
        newest = 1 if outcome is None else outcome.generation
        # Read after the outcome: a rebuild's staging before its decision belongs to a later generation.
        staged = self.state.store.list(self.state.layout.staging_of(manifest_id))
        # guard: the cleaner leaves what a rebuild has staged and not decided
        if any(self.state.layout.staged_generation(info.uri) > newest for info in staged):
            return "a rebuild of it is undecided"
        return ""

    def why_keep_checkpoint(self, name: str) -> str:
        """Why a run's checkpoint must stay, given its folder name."""
        run_id = name.rpartition("-")[0]  # a run numbers its checkpoints
        return "its run is active" if self.living_runs([run_id]) else ""

    def _done(self, key: ManifestKey) -> Found | str:
        commit = self._done_commit(key)
        return commit if isinstance(commit, str) else (key, commit.generation)

    def _accepted(self, manifest_id: str) -> Accepted | str:
        try:
            accepted = self.state.ledger.accepted(manifest_id)
        except RecordUnreadable:
            return "its acceptance record is unreadable"
        return accepted or "its manifest is not on record"

    def _outcome(self, key: ManifestKey) -> Commit | DeadLetter | str | None:
        try:
            return self.state.ledger.outcome(key)
        except ObjectNotFound:
            return None
        except RecordUnreadable:
            return "its outcome is unreadable"

    def _done_commit(self, key: ManifestKey) -> Commit | str:
        """The commit of a manifest whose output is all in its final place, or why there is none."""
        outcome = self._outcome(key)
        if isinstance(outcome, Commit):
            return outcome if self.state.ledger.is_done(key, outcome.generation) else "its commit is not done"
        return outcome if isinstance(outcome, str) else "its manifest is not committed"


def why_keep_in_place(files: InPlaceFiles, uri: str) -> str | None:
    """Why an in-place file must stay; empty if it is an orphan, None if a commit names it."""
    fate = files.fate(uri)
    if fate is Fate.NAMED:
        return None
    # guard: nothing in place is deleted before its manifest is decided
    return "" if fate is Fate.ORPHANED else fate.value
