"""What the notes of planning a topic or a stream have in common."""

from pydantic import AwareDatetime

from compactor.core.documents.document import Document


class PlanProgress(Document):
    """How far a job is with planning, for people to see. Overwritten after each plan and each failure.

    Attributes:
        expected_since: Since when a job is to plan it, as far as that is known; None once one has.
        seen_at: When a plan last succeeded, which all else but the failures is of; None before the first.
        failures: How many plans have failed since.
        failing_since: When the first of these failed.
        error: Why the last of these failed; empty if none did.
    """

    run_id: str
    expected_since: AwareDatetime | None = None
    seen_at: AwareDatetime | None = None
    failures: int = 0
    failing_since: AwareDatetime | None = None
    error: str = ""
