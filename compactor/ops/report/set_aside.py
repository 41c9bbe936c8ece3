"""Reads of what was set aside whether it was put back."""

from collections.abc import Iterable

from compactor.core.errors import ObjectNotFound, StuckError
from compactor.core.map_ordered import ahead
from compactor.core.records import NEEDS_OPERATOR, Commit, Redrive
from compactor.ledger.ledger import Ledger
from compactor.ops.redrive.selection import Scope, files_left
from compactor.ops.redrive.trail import Trail, is_put_back, taken_from
from compactor.ops.report.facts import DeadLetterFacts, Finished
from compactor.ops.report.figures import DeadLetterLine, SetAsideFile

SHOWN_FILES = 50


def dead_letter_lines(letters: Iterable[DeadLetterFacts], trail: Trail) -> tuple[DeadLetterLine, ...]:
    """Dead letters as they are shown, and whether each was put back.

    Args:
        letters: From the newest to the oldest.
        trail: What was put back.
    """

    def line_of(facts: DeadLetterFacts) -> DeadLetterLine:
        outcome = facts.outcome
        return DeadLetterLine(
            manifest_id=outcome.manifest_id,
            reason=outcome.reason,
            message=outcome.message,
            since=facts.finished.moment,
            is_redriven=_is_redriven(trail, outcome.manifest_id),
        )

    return tuple(ahead(line_of, letters))


def _is_redriven(trail: Trail, manifest_id: str) -> bool | None:
    try:
        return is_put_back(manifest_id, trail.entries_about(manifest_id))
    except (StuckError, ObjectNotFound):
        return None


def set_aside_files(manifests: Iterable[Finished], ledger: Ledger, trail: Trail) -> tuple[SetAsideFile, ...]:
    """The first `SHOWN_FILES` files of some manifests that need an operator, and whether each was put back.

    Args:
        manifests: From the newest to the oldest.
        ledger: What became of their files.
        trail: What was put back.
    """

    def files_of(finished: Finished) -> list[SetAsideFile]:
        outcome = ledger.outcome(finished.day, finished.manifest_id)
        return _files_of(finished, outcome, trail) if isinstance(outcome, Commit) else []

    shown: list[SetAsideFile] = []
    for files in ahead(files_of, manifests):
        shown += files[: SHOWN_FILES - len(shown)]
    return tuple(shown)


def _files_of(finished: Finished, commit: Commit, trail: Trail) -> list[SetAsideFile]:
    redrives = _redrives(trail, finished.manifest_id)
    left = None if redrives is None else {each.uri for each in files_left(Scope("files"), commit, redrives)}
    return [
        SetAsideFile(
            uri=report.uri,
            manifest_id=finished.manifest_id,
            status=str(report.status),
            detail=report.detail,
            since=finished.moment,
            is_redriven=None if left is None else report.uri not in left,
        )
        for report in commit.files
        if report.status in NEEDS_OPERATOR
    ][:SHOWN_FILES]


def _redrives(trail: Trail, manifest_id: str) -> list[Redrive] | None:
    """What was put back of a manifest; None where that cannot be read."""
    try:
        return taken_from(manifest_id, trail.entries_about(manifest_id))
    except (StuckError, ObjectNotFound):
        return None
