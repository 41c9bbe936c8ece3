"""Reads whether dead letters and quarantined files were redriven."""

from collections.abc import Callable, Iterable, Sequence
from typing import TypeVar

from compactor.core.errors import ObjectNotFound, StuckError
from compactor.core.map_ordered import map_ordered
from compactor.core.records import NEEDS_OPERATOR, Commit
from compactor.ledger.ledger import Ledger
from compactor.ops.redrive.quarantined_file import QuarantinedFile
from compactor.ops.redrive.redrive_log import RedriveLog, RedriveLogEntry, taken_from, was_redriven
from compactor.ops.redrive.selection import Scope, files_left
from compactor.ops.report.facts import DeadLetterFacts, Finished
from compactor.ops.report.figures import DeadLetterLine

SHOWN_FILES = 50

T = TypeVar("T")


def dead_letter_lines(letters: Iterable[DeadLetterFacts], redrive_log: RedriveLog) -> tuple[DeadLetterLine, ...]:
    """Dead letters with their state of redrive, in the order given."""

    def line_of(facts: DeadLetterFacts) -> DeadLetterLine:
        outcome, redriven = facts.outcome, _redrives(was_redriven, facts.outcome.manifest_id, redrive_log)
        return DeadLetterLine(outcome.manifest_id, outcome.reason, outcome.message, facts.finished.moment, redriven)

    return tuple(map_ordered(line_of, letters))


def quarantined_files(
    manifests: Iterable[Finished], ledger: Ledger, redrive_log: RedriveLog
) -> tuple[QuarantinedFile, ...]:
    """The first `SHOWN_FILES` quarantined files of some manifests that need an operator, with their state."""

    def files_of(finished: Finished) -> list[QuarantinedFile]:
        outcome = ledger.outcome(finished.key)
        return _files_of(finished, outcome, redrive_log) if isinstance(outcome, Commit) else []

    shown: list[QuarantinedFile] = []
    for files in map_ordered(files_of, manifests):
        shown += files[: SHOWN_FILES - len(shown)]
    return tuple(shown)


def _files_of(finished: Finished, commit: Commit, redrive_log: RedriveLog) -> list[QuarantinedFile]:
    redrives = _redrives(taken_from, finished.key.id, redrive_log)
    left = None if redrives is None else {each.uri for each in files_left(Scope("files"), commit, redrives)}
    return [
        QuarantinedFile(
            manifest_id=finished.key.id,
            uri=file.uri,
            status=file.status,
            detail=file.detail,
            committed_at=finished.moment,
            redriven=None if left is None else file.uri not in left,
        )
        for file in commit.files
        if file.status in NEEDS_OPERATOR
    ][:SHOWN_FILES]


def _redrives(of: Callable[[str, Sequence[RedriveLogEntry]], T], manifest_id: str, redrive_log: RedriveLog) -> T | None:
    """What the redrives of a manifest say; None if they cannot be read."""
    try:
        return of(manifest_id, redrive_log.entries_about(manifest_id))
    except (StuckError, ObjectNotFound):
        return None
