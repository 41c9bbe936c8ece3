"""Records of failed attempts."""

from datetime import datetime

from compactor.core.documents.records import Attempt, AttemptFailure


def attempt_failure(attempt: Attempt, error: str, moment: datetime, *, passing: bool = True) -> AttemptFailure:
    """The record of an attempt that ended by an error."""
    return AttemptFailure(
        manifest_id=attempt.manifest_id, number=attempt.number, passing=passing, error=error, failed_at=moment
    )
