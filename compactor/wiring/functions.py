"""The bodies of the functions in `lambdas/`. Each call reads the settings; clients are kept between calls."""

import os
from collections.abc import Mapping
from typing import Any, TypeVar

from compactor.control.plane import Check
from compactor.core.errors import SettingsError
from compactor.core.ports import FLUSH_SECONDS
from compactor.manifests.building.reports import build_metrics, log_built, log_sealed, seal_counts, seal_metrics
from compactor.telemetry.logs import configure_logs, log_event
from compactor.wiring.components import Components
from compactor.wiring.control import ControlComponents
from compactor.wiring.settings_files.remote_settings import settings_at
from compactor.wiring.stream_functions import build_streams, seal_streams

C = TypeVar("C", bound=Components)

_KEPT: dict[type[Components], Components] = {}


def build_messages(event: Mapping[str, Any]) -> dict[str, list[dict[str, str]]]:
    """Turn a batch of messages from an SQS event source mapping for S3 events into manifests and pending parts.

    Returns:
        The messages that SQS must deliver again, as `batchItemFailures`. An error makes it deliver all of them again.
    """
    components = function_components()
    messages = {record["messageId"]: record["body"] for record in event["Records"]}
    if components.settings.streams:
        failed = build_streams(components, messages)
    else:
        report = components.builder().build(messages)
        log_built([report], messages=report.messages, skipped=report.skipped, failed=len(report.failed))
        components.metrics.emit(build_metrics(report))
        failed = report.failed
    components.metrics.flush(FLUSH_SECONDS)
    return {"batchItemFailures": [{"itemIdentifier": message_id} for message_id in failed]}


def seal_parts() -> dict[str, int]:
    """Seal the pending parts that are large enough or have waited long enough; returns counts, for the caller's log."""
    components = function_components()
    if components.settings.streams:
        return seal_streams(components)
    report = components.sealer().seal()
    log_sealed([report])
    components.metrics.emit(seal_metrics(report))
    components.metrics.flush(FLUSH_SECONDS)
    return seal_counts([report])


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
