"""A quarantined file, as `status`, `verify` and `report` show it, and whether it was redriven."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from compactor.core.errors import ObjectNotFound, StuckError
from compactor.core.records import NEEDS_OPERATOR, Commit, FileStatus
from compactor.ops.redrive.redrive_log import RedriveLog, taken_from


@dataclass(frozen=True, slots=True)
class QuarantinedFile:
    """An input file that was quarantined whole."""

    manifest_id: str
    uri: str
    status: FileStatus  # why it was quarantined
    detail: str  # what was found, and what was expected
    committed_at: datetime  # when its manifest was committed
    redriven: bool | None  # whether it was redriven since; None where that could not be read


def quarantined_files(commit: Commit, committed_at: datetime) -> list[QuarantinedFile]:
    """The files of a commit that need an operator, before anything is read of redrives."""
    return [
        QuarantinedFile(commit.manifest_id, each.uri, each.status, each.detail, committed_at, redriven=None)
        for each in commit.files
        if each.status in NEEDS_OPERATOR
    ]


def with_redrives(files: Sequence[QuarantinedFile], redrive_log: RedriveLog) -> list[QuarantinedFile]:
    """Quarantined files of one manifest, with whether they were redriven where that can be read."""
    if not files:
        return []
    manifest_id = files[0].manifest_id
    try:
        redrives = taken_from(manifest_id, redrive_log.entries_about(manifest_id))
    except (ObjectNotFound, StuckError):
        return list(files)
    taken = {file.uri for each in redrives if each.kind == "files" for file in each.manifest.files}
    return [replace(each, redriven=each.uri in taken) for each in files]
