"""The bodies of the functions in `lambdas/`. Each call reads the settings; clients are kept between calls."""

import os
from collections.abc import Mapping
from typing import Any, TypeVar

from compactor.control.plane import Check
from compactor.core.errors import CompactorError, SettingsError
from compactor.core.map_ordered import THREADS, map_ordered
from compactor.core.ports import FLUSH_SECONDS
from compactor.sources.events.sealer import SealedParts, log_sealed
from compactor.telemetry.logs import configure_logs, log_event
from compactor.wiring.components import Components
from compactor.wiring.control import ControlComponents
from compactor.wiring.settings_files import settings_at

C = TypeVar("C", bound=Components)

_KEPT: dict[type[Components], Components] = {}


def build_messages(event: Mapping[str, Any]) -> dict[str, list[dict[str, str]]]:
    """Turn a batch of messages from an SQS event source mapping for S3 events into manifests and pending parts.

    Returns:
        The messages that SQS must deliver again, as `batchItemFailures`. An error makes it deliver all of them again.
    """
    components = function_components()
    report = components.builder().build({record["messageId"]: record["body"] for record in event["Records"]})
    report.log()
    for stream, figures in report.figures.items():
        _of(components, stream).metrics.emit(figures)
    if components.settings.streams:
        components.metrics.emit({"FilesUnrouted": report.unrouted})
    _flush(components)
    return {"batchItemFailures": [{"itemIdentifier": message_id} for message_id in report.failed]}


def seal_parts() -> dict[str, int]:
    """Seal the pending parts that are large enough or have waited long enough; returns counts, for the caller's log.

    Raises:
        CompactorError: The first error of a stream, once the others were sealed.
    """
    components = function_components()
    streams = [each.name for each in components.settings.streams] or [""]
    errors: list[CompactorError] = []

    def seal(stream: str) -> SealedParts:
        try:
            return _of(components, stream).sealer(groups_at_once=max(1, THREADS // len(streams))).seal()
        except CompactorError as exc:
            if stream:
                log_event("stream.not_sealed", stream=stream, error=exc)
            errors.append(exc)
            return SealedParts()

    reports = list(map_ordered(seal, streams))
    if errors and not components.settings.streams:
        raise errors[0]
    counts = log_sealed(reports)
    for stream, report in zip(streams, reports, strict=True):
        _of(components, stream).metrics.emit(report.figures)
    _flush(components)
    if errors:
        raise errors[0]
    return counts


def _of(components: Components, stream: str) -> Components:
    """The components of a stream; of an empty name those of what belongs to none."""
    return components.of_streams[stream] if stream else components


def _flush(components: Components) -> None:
    for stream in [*(each.name for each in components.settings.streams), ""]:
        _of(components, stream).metrics.flush(FLUSH_SECONDS)


def check_job(event: Mapping[str, Any]) -> dict[str, Any]:
    """Run one control-plane check, for an event of the schedule or a `Glue Job State Change`.

    Returns what was decided, done and not done, for the caller's log.
    """
    components = _lasting_components(ControlComponents)
    jobs = components.of_jobs
    changed = event.get("detail", {}).get("jobName")
    if changed is not None and changed not in jobs:
        log_event("control.other_job", job=changed)
        return {"ignored": f"an event of job {changed}"}
    meant = jobs.values() if changed is None else [jobs[changed]]
    checked = [_checked(each) for each in meant]
    return {
        "decided": [f"{action.kind}: {action.reason}" for each in checked for action in each.actions],
        "done": [words for each in checked for words in each.done],
        "failed": [words for each in checked for words in each.failed],
    }


def _checked(components: ControlComponents) -> Check:
    checked = components.plane.check()
    for each in (components, *(components.of_streams[each.name] for each in components.settings.sharing)):
        each.metrics.flush(FLUSH_SECONDS)
    if components.sum_metrics is not None:
        components.sum_metrics.flush(FLUSH_SECONDS)
    return checked


def function_components() -> Components:
    """New components for one call, with the store, claims and metrics of the call before."""
    lasting = _lasting_components(Components)
    return lasting.renewed()


def _lasting_components(kind: type[C]) -> C:
    """The components of the call before, which have open clients, unless the settings have changed since.

    Settings are read in each call, so a change takes effect with the next one.

    Raises:
        SettingsError: `COMPACTOR_CONFIG` is not set, or the settings have faults.
    """
    kept = _KEPT.get(kind)
    if kept is None:
        configure_logs(as_json=True)
    place = os.environ.get("COMPACTOR_CONFIG", "")
    if not place:
        raise SettingsError(["COMPACTOR_CONFIG: not set -> expected the place of the settings, as s3://bucket/key"])
    settings = settings_at(place, os.environ)
    if not isinstance(kept, kind) or kept.settings != settings:
        kept = _KEPT[kind] = kind(settings)
    return kept


def forget_components() -> None:
    """Start anew, as a fresh process would."""
    _KEPT.clear()
