"""Logs how manifests ended."""

from compactor.core.documents.closed_dates import commit_totals
from compactor.core.documents.records import Commit
from compactor.job.steps.results import CompactionResult
from compactor.telemetry.logs import log_event


def log_result(result: CompactionResult) -> None:
    """Log how a manifest ended."""
    outcome = result.outcome
    if isinstance(outcome, Commit):
        found = commit_totals(outcome, with_source=False)
        log_event(
            "manifest.committed",
            manifest_id=result.manifest_id,
            input_files=found.input_files,
            input_bytes=found.input_bytes,
            rows=found.rows,
            rejected_lines=found.rejected_lines,
            output_files=found.output_files,
            output_bytes=found.output_bytes,
            seconds=round((outcome.decided_at - outcome.started_at).total_seconds(), 3),
        )
    elif outcome is not None:
        log_event(
            "manifest.dead_lettered", manifest_id=result.manifest_id, reason=outcome.reason, message=outcome.message
        )
