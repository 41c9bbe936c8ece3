"""The figures of building and sealing, for the catalogue of metrics and the log."""

from collections.abc import Mapping, Sequence

from compactor.manifests.building.builder import BuildReport
from compactor.manifests.building.sealer import SealReport
from compactor.telemetry.logs import log_event


def build_metrics(report: BuildReport) -> dict[str, float]:
    """The figures of one batch of messages."""
    return {
        "FilesAnnounced": report.announced,
        "BytesAnnounced": report.announced_bytes,
        "FilesSkipped": report.skipped.total(),
        "FilesRepeated": report.repeated,
        "FilesMisdated": report.misdated,
        "MessagesFailed": len(report.failed),
        "ManifestsBuilt": len(report.manifests),
    }


def seal_metrics(report: SealReport) -> dict[str, float]:
    """The figures of one call of the sealer."""
    return {
        "ManifestsBuilt": len(report.manifests),
        "PartsPending": report.waiting_parts,
        "OldestPartAgeSeconds": report.oldest_seconds,
        "PartsUnreadable": len(report.unreadable),
    }


def log_built(reports: Sequence[BuildReport], *, messages: int, skipped: Mapping[str, int], failed: int) -> None:
    """Log one batch of messages, of one stream or of several."""
    log_event(
        "messages.built",
        messages=messages,
        files=sum(each.announced for each in reports),
        repeated=sum(each.repeated for each in reports),
        skipped=dict(skipped),
        manifests=sum(len(each.manifests) for each in reports),
        parts=sum(len(each.parts) for each in reports),
        failed=failed,
    )


def log_sealed(reports: Sequence[SealReport]) -> None:
    """Log one call of the sealer, for one stream or for several. The catalogue is held against names at the call."""
    log_event(
        "parts.sealed",
        manifests=sum(len(each.manifests) for each in reports),
        sealed_parts=sum(each.sealed_parts for each in reports),
        waiting_parts=sum(each.waiting_parts for each in reports),
        unreadable_parts=sum(len(each.unreadable) for each in reports),
        oldest_seconds=max((each.oldest_seconds for each in reports), default=0.0),
        discarded_parts=sum(each.discarded for each in reports),
    )


def seal_counts(reports: Sequence[SealReport]) -> dict[str, int]:
    """Counts of one call of the sealer, for the log of its caller."""
    return {
        "manifests": sum(len(each.manifests) for each in reports),
        "sealed_parts": sum(each.sealed_parts for each in reports),
        "waiting_parts": sum(each.waiting_parts for each in reports),
        "unreadable_parts": sum(len(each.unreadable) for each in reports),
    }
