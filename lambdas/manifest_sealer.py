"""Seals the files that wait in pending parts into manifests; called once a minute."""

from collections.abc import Mapping
from typing import Any

from compactor.core.ports import FLUSH_SECONDS
from compactor.manifests.building.reports import seal_metrics
from compactor.telemetry.logs import log_event
from compactor.wiring.functions import function_components


def handler(_event: Mapping[str, Any], _context: object) -> dict[str, Any]:
    """Seal what is enough, or waited long enough.

    Returns:
        What was done, for the log of whoever called.
    """
    parts = function_components()
    report = parts.sealer().seal()
    log_event(
        "parts.sealed",
        manifests=len(report.manifests),
        sealed_parts=report.sealed_parts,
        waiting_parts=report.waiting_parts,
        oldest_seconds=report.oldest_seconds,
        discarded_parts=report.discarded,
        unreadable_parts=len(report.unreadable),
    )
    parts.metrics.emit(seal_metrics(report))
    parts.metrics.flush(FLUSH_SECONDS)
    return {
        "manifests": len(report.manifests),
        "sealed_parts": report.sealed_parts,
        "waiting_parts": report.waiting_parts,
        "unreadable_parts": len(report.unreadable),
    }
