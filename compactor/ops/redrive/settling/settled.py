"""Finds what became of redriven lines: those that are rows now, or were rejected again under another manifest."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from compactor.core.documents.records import Commit, FileReport, FileStatus, RedrivenInput
from compactor.core.errors import ObjectNotFound, RecordUnreadable
from compactor.core.layout import redrive_number, root_id
from compactor.core.manifest_key import ManifestKey
from compactor.ledger.history.redrive_log import RedriveLog, RedriveLogEntry
from compactor.ledger.ledger import is_done
from compactor.ledger.state import State


@dataclass(frozen=True, slots=True)
class Settled:
    """What became of the rejected lines of a manifest.

    Attributes:
        inputs: Files of redriven lines that were compacted. Their lines are no rejects of the manifest any more.
        reports: The reports on these files, and on all others of redriven lines in the lineage.
        commits: The commits that have them.
    """

    inputs: tuple[RedrivenInput, ...] = ()
    reports: tuple[FileReport, ...] = ()
    commits: tuple[Commit, ...] = ()


def may_be_redriven(manifest_id: str, names: Iterable[str]) -> bool:
    """Return whether lines of a manifest may have been redriven, by the names of its records alone."""
    return root_id(manifest_id) != manifest_id or any(redrive_number(name) is not None for name in names)


def settled_of(state: State, manifest_id: str) -> Settled:
    """What became of the rejected lines of a manifest.

    Raises:
        RecordUnreadable: A record is damaged.
    """
    entries = [entry for entry in RedriveLog(state=state).entries_about(manifest_id) if entry.in_effect]
    return settled_by(state, entries, manifest_id)


def settled_by(state: State, entries: Sequence[RedriveLogEntry], manifest_id: str) -> Settled:
    """The same by the redrives of its lineage that are in effect."""
    made = [entry.redrive.manifest.key for entry in entries if entry.fate == "accepted"]
    commits = tuple(commit for key in made if (commit := _done_commit(state, key)) is not None)
    reports = tuple(
        file for commit in commits for file in commit.files if file.source_uri and file.status is FileStatus.COMPACTED
    )
    compacted = {file.uri for file in reports}
    own = (entry.redrive for entry in entries if entry.redrive.source == manifest_id)
    inputs = tuple(each for redrive in own for each in redrive.inputs if each.uri in compacted)
    return Settled(inputs, reports, commits)


def _done_commit(state: State, key: ManifestKey) -> Commit | None:
    names = state.ledger.record_names(key)
    try:
        outcome = state.ledger.recorded_outcome(key, names)
    except (ObjectNotFound, RecordUnreadable):
        return None
    return outcome if isinstance(outcome, Commit) and is_done(outcome, names) else None
