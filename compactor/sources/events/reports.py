"""The figures of building and sealing, for the catalogue of metrics and the log."""

from collections.abc import Sequence

from compactor.sources.events.builder import BuildReport
from compactor.sources.events.sealer import SealReport
from compactor.sources.plan import Plan
from compactor.telemetry.logs import log_event


def build_metrics(report: BuildReport) -> dict[str, dict[str, float]]:
    """The figures of one batch of messages for each stream; under an empty name those of what belongs to no stream."""
    figures = {stream: _of_plan(plan, report.failed_by[stream]) for stream, plan in report.plans.items()}
    of_none = figures.setdefault("", {})
    of_none["FilesSkipped"] = of_none.get("FilesSkipped", 0) + report.skipped.total()
    of_none["MessagesFailed"] = report.failed_by[""]
    return figures


def _of_plan(plan: Plan, failed: int) -> dict[str, float]:
    return {
        "FilesAnnounced": plan.candidates,
        "BytesAnnounced": plan.candidate_bytes,
        "FilesSkipped": plan.skipped.total(),
        "FilesRepeated": plan.planned_before,
        "FilesMisdated": plan.misdated,
        "MessagesFailed": failed,
        "ManifestsBuilt": len(plan.manifests),
    }


def seal_metrics(report: SealReport) -> dict[str, float]:
    """The figures of one call of the sealer."""
    return {
        "ManifestsBuilt": len(report.manifests),
        "PartsPending": report.waiting_parts,
        "OldestPartAgeSeconds": report.oldest_seconds,
        "PartsUnreadable": len(report.unreadable),
    }


def log_built(report: BuildReport) -> None:
    """Log one batch of messages."""
    plans = report.plans.values()
    log_event(
        "messages.built",
        messages=report.messages,
        files=sum(each.candidates for each in plans),
        repeated=sum(each.planned_before for each in plans),
        skipped=dict(sum((each.skipped for each in plans), start=report.skipped)),
        manifests=sum(len(each.manifests) for each in plans),
        parts=sum(len(each.parts) for each in plans),
        failed=len(report.failed),
    )


def log_sealed(reports: Sequence[SealReport]) -> dict[str, int]:
    """Log one call of the sealer, for one stream or for several; returns its counts, for the log of its caller."""
    counts = {
        "manifests": sum(len(each.manifests) for each in reports),
        "sealed_parts": sum(each.sealed_parts for each in reports),
        "waiting_parts": sum(each.waiting_parts for each in reports),
        "unreadable_parts": sum(len(each.unreadable) for each in reports),
    }
    # The catalogue is held against names at the call.
    log_event(
        "parts.sealed",
        manifests=counts["manifests"],
        sealed_parts=counts["sealed_parts"],
        waiting_parts=counts["waiting_parts"],
        unreadable_parts=counts["unreadable_parts"],
        oldest_seconds=max((each.oldest_seconds for each in reports), default=0.0),
        discarded_parts=sum(each.discarded for each in reports),
    )
    return counts
