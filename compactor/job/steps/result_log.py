"""Logs how manifests ended."""

from compactor.core.documents.records import Commit
from compactor.job.steps.results import CompactionResult
from compactor.telemetry.logs import log_event


def log_result(result: CompactionResult) -> None:
    """Log how a manifest ended."""
    outcome = result.outcome
    if isinstance(outcome, Commit):
        log_event(
            "manifest.committed",
            manifest_id=result.manifest_id,
            files=len(outcome.files),
            input_bytes=sum(file.size_bytes for file in outcome.files),
            rows=sum(file.records for file in outcome.files),
            rejected_lines=sum(file.rejected_lines for file in outcome.files),
            output_files=len(outcome.outputs),
            output_bytes=sum(file.size_bytes for file in outcome.outputs),
            seconds=round((outcome.decided_at - outcome.started_at).total_seconds(), 3),
        )
    elif outcome is not None:
        log_event(
            "manifest.dead_lettered", manifest_id=result.manifest_id, reason=outcome.reason, message=outcome.message
        )
