"""Reads of what was set aside whether it was put back."""

from collections.abc import Iterable

from compactor.core.errors import ObjectNotFound, StuckError
from compactor.core.map_ordered import map_ordered
from compactor.core.records import NEEDS_OPERATOR, Commit, Redrive
from compactor.ledger.ledger import Ledger
from compactor.ops.redrive.redrive_log import RedriveLog, taken_from, was_redriven
from compactor.ops.redrive.selection import Scope, files_left
from compactor.ops.report.facts import DeadLetterFacts, Finished
from compactor.ops.report.figures import DeadLetterLine, QuarantinedFile

SHOWN_FILES = 50


def dead_letter_lines(letters: Iterable[DeadLetterFacts], redrive_log: RedriveLog) -> tuple[DeadLetterLine, ...]:
    """Dead letters as they are shown, and whether each was put back.

    Args:
        letters: From the newest to the oldest.
        redrive_log: What was put back.
    """

    def line_of(facts: DeadLetterFacts) -> DeadLetterLine:
        outcome = facts.outcome
        return DeadLetterLine(
            manifest_id=outcome.manifest_id,
            reason=outcome.reason,
            message=outcome.message,
            since=facts.finished.moment,
            is_redriven=_is_redriven(redrive_log, outcome.manifest_id),
        )

    return tuple(map_ordered(line_of, letters))


def _is_redriven(redrive_log: RedriveLog, manifest_id: str) -> bool | None:
    try:
        return was_redriven(manifest_id, redrive_log.entries_about(manifest_id))
    except (StuckError, ObjectNotFound):
        return None


def quarantined_files(
    manifests: Iterable[Finished], ledger: Ledger, redrive_log: RedriveLog
) -> tuple[QuarantinedFile, ...]:
    """The first `SHOWN_FILES` files of some manifests that need an operator, and whether each was put back.

    Args:
        manifests: From the newest to the oldest.
        ledger: What became of their files.
        redrive_log: What was put back.
    """

    def files_of(finished: Finished) -> list[QuarantinedFile]:
        outcome = ledger.outcome(finished.key)
        return _files_of(finished, outcome, redrive_log) if isinstance(outcome, Commit) else []

    shown: list[QuarantinedFile] = []
    for files in map_ordered(files_of, manifests):
        shown += files[: SHOWN_FILES - len(shown)]
    return tuple(shown)


def _files_of(finished: Finished, commit: Commit, redrive_log: RedriveLog) -> list[QuarantinedFile]:
    redrives = _redrives(redrive_log, finished.key.id)
    left = None if redrives is None else {each.uri for each in files_left(Scope("files"), commit, redrives)}
    return [
        QuarantinedFile(
            uri=report.uri,
            manifest_id=finished.key.id,
            status=str(report.status),
            detail=report.detail,
            since=finished.moment,
            is_redriven=None if left is None else report.uri not in left,
        )
        for report in commit.files
        if report.status in NEEDS_OPERATOR
    ][:SHOWN_FILES]


def _redrives(redrive_log: RedriveLog, manifest_id: str) -> list[Redrive] | None:
    """What was put back of a manifest; None where that cannot be read."""
    try:
        return taken_from(manifest_id, redrive_log.entries_about(manifest_id))
    except (StuckError, ObjectNotFound):
        return None
