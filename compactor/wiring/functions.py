"""The bodies of the functions in `lambdas/`. Each call reads the settings; clients are kept between calls."""

import os
from collections.abc import Mapping
from typing import Any

from compactor.control.plane import Check, ControlPlane
from compactor.core.errors import CompactorError, SettingsError
from compactor.core.map_ordered import THREADS, map_ordered
from compactor.core.ports import FLUSH_SECONDS
from compactor.sources.events.sealer import SealedParts, log_sealed
from compactor.telemetry.logs import configure_logs, log_event
from compactor.wiring import planning
from compactor.wiring.app import App
from compactor.wiring.control import control_planes, scaling
from compactor.wiring.settings_files import settings_at


def build_messages(event: Mapping[str, Any]) -> dict[str, list[dict[str, str]]]:
    """Turn a batch of messages from an SQS event source mapping for S3 events into manifests and pending parts.

    Returns:
        The messages for SQS to redeliver, as `batchItemFailures`. After an error it redelivers all of them.
    """
    app = lasting().renewed()
    report = planning.builder(app).build({record["messageId"]: record["body"] for record in event["Records"]})
    report.log()
    for stream, figures in report.figures.items():
        app.at(stream).metrics.emit(figures)
    if app.settings.streams:
        app.metrics.emit({"FilesUnrouted": report.unrouted})
    _flush(app)
    return {"batchItemFailures": [{"itemIdentifier": message_id} for message_id in report.failed]}


def seal_parts() -> dict[str, int]:
    """Seal the pending parts that are large enough or have waited long enough; return counts, for the caller's log.

    Raises:
        CompactorError: A stream's first error, once the others were sealed.
    """
    app = lasting().renewed()
    streams = [*app.of_streams] or [""]
    errors: list[CompactorError] = []

    def seal(stream: str) -> SealedParts:
        try:
            return planning.sealer(app.at(stream), groups_at_once=max(1, THREADS // len(streams))).seal()
        except CompactorError as exc:
            if stream:
                log_event("stream.not_sealed", stream=stream, error=exc)
            errors.append(exc)
            return SealedParts()

    reports = list(map_ordered(seal, streams))
    if errors and not app.settings.streams:
        raise errors[0]
    counts = log_sealed(reports)
    for stream, report in zip(streams, reports, strict=True):
        app.at(stream).metrics.emit(report.figures)
    _flush(app)
    if errors:
        raise errors[0]
    return counts


def _flush(app: App) -> None:
    for each in [*app.of_streams.values(), app]:
        each.metrics.flush(FLUSH_SECONDS)


def check_job(event: Mapping[str, Any]) -> dict[str, Any]:
    """Run one control-plane check, for a scheduled event or a `Glue Job State Change`.

    Returns the decisions, actions and failures, for the caller's log.
    """
    app = lasting()
    shards = scaling(app)
    count = shards.count()
    planes = app.opened(f"control_planes of {count.shards}", lambda: control_planes(app.settings, count.shards))
    changed = event.get("detail", {}).get("jobName")
    if changed is not None and changed not in planes:
        log_event("control.other_job", job=changed)
        return {"ignored": f"an event of job {changed}"}
    checked = [_checked(each) for name, each in planes.items() if changed in {None, name}]
    if changed is None:
        shards.follow(count, checked[0].snapshot.whole_backlog)  # of the first shard's check, which sees all
    return {
        "decided": [f"{action.kind}: {action.reason}" for each in checked for action in each.actions],
        "done": [words for each in checked for words in each.done],
        "failed": [words for each in checked for words in each.failed],
    }


def _checked(plane: ControlPlane) -> Check:
    checked = plane.check()
    plane.flush_metrics()
    return checked


_KEPT: list[App] = []


def lasting() -> App:
    """The ports of the previous call with their open clients, unless the settings have changed.

    Settings are read in each call, so a change takes effect with the next one.

    Raises:
        SettingsError: `COMPACTOR_CONFIG` is not set, or the settings have faults.
    """
    if not _KEPT:
        configure_logs(as_json=True)
    place = os.environ.get("COMPACTOR_CONFIG", "")
    if not place:
        raise SettingsError(["COMPACTOR_CONFIG: not set -> expected the settings' place, as s3://bucket/key"])
    settings = settings_at(place, os.environ)
    if not _KEPT or _KEPT[0].settings != settings:
        _KEPT[:] = [App(settings)]
    return _KEPT[0]


def forget_clients() -> None:
    """Start afresh, like a new process."""
    _KEPT.clear()
