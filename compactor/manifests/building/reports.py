"""The figures of building and sealing, for the catalogue of metrics."""

from compactor.manifests.building.builder import BuildReport
from compactor.manifests.building.sealer import SealReport


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
