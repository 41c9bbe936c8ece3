"""Turns a batch of messages from the queue of S3 events into manifests and pending parts."""

from collections.abc import Mapping
from typing import Any

from compactor.core.ports import FLUSH_SECONDS
from compactor.manifests.building.reports import build_metrics
from compactor.telemetry.logs import log_event
from compactor.wiring.functions import function_components


def handler(event: Mapping[str, Any], _context: object) -> dict[str, list[dict[str, str]]]:
    """Take in a batch.

    Args:
        event: Of an event source mapping on SQS, set up to take partial batch responses.

    Returns:
        Which messages are to come again, as `batchItemFailures`. Whatever is raised acknowledges none of them.
    """
    parts = function_components()
    report = parts.builder().build({record["messageId"]: record["body"] for record in event["Records"]})
    log_event(
        "messages.built",
        messages=report.messages,
        files=report.announced,
        repeated=report.repeated,
        skipped=dict(report.skipped),
        manifests=len(report.manifests),
        parts=len(report.parts),
        failed=len(report.failed),
    )
    parts.metrics.emit(build_metrics(report))
    parts.metrics.flush(FLUSH_SECONDS)
    return {"batchItemFailures": [{"itemIdentifier": message_id} for message_id in report.failed]}
