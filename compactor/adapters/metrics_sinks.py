"""The metrics sinks: CloudWatch, the log, or none."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from compactor.core.distributions import Distribution
from compactor.core.ports import NO_DIMENSIONS, Clock, MetricsSink
from compactor.settings.settings import Settings
from compactor.telemetry.logs import log_event
from compactor.telemetry.metrics import CATALOGUE


def metrics_sink(settings: Settings, clock: Clock, *, sums_shards: bool = True) -> MetricsSink:
    """The sink in the settings.

    With `metrics.detail` "alarms", only what alarms need is sent. A stream's metrics also count for its job, so that
    alarms cover all streams. So do a shard's, unless `sums_shards` is false.

    Raises:
        AccessError: AWS cannot be reached, for example because no region is set.
    """
    sink = _whole_sink(settings, clock, sums_shards=sums_shards)
    return sink if settings.metrics.detail == "all" else AlarmMetrics(sink)


def _whole_sink(settings: Settings, clock: Clock, *, sums_shards: bool) -> MetricsSink:
    metrics, number = settings.metrics, settings.shard.number if settings.shard else None
    if metrics.sink == "log":
        shown = f"shard-{number}" if number else ""
        return LogMetrics("/".join(filter(None, (metrics.namespace, settings.name, shown))))
    if metrics.sink == "none":
        return DroppedMetrics()
    from compactor.adapters.aws.clients import cloudwatch_client  # noqa: PLC0415 - boto3 is slow to load
    from compactor.adapters.aws.cloudwatch import CloudWatchMetrics  # noqa: PLC0415 - boto3 is slow to load

    return CloudWatchMetrics(
        client=cloudwatch_client(settings.aws.region or None, settings.aws.endpoint_url or None),
        namespace=metrics.namespace,
        dimensions={"Job": settings.control.job_name, "Environment": metrics.environment},
        stream=settings.name,
        shard=str(number or ""),
        sums_shards=sums_shards,
        clock=clock,
    )


@dataclass(frozen=True, slots=True)
class AlarmMetrics:
    """Passes on what an alarm of the deployment needs, to a sink that has its price for each metric and hour."""

    sink: MetricsSink

    def emit(self, values: Mapping[str, float | Distribution], about: Mapping[str, str] = NO_DIMENSIONS) -> None:
        if needed := {name: value for name, value in values.items() if _is_needed(name, value)}:
            self.sink.emit(needed, about)

    def flush(self, timeout_seconds: float) -> bool:
        return self.sink.flush(timeout_seconds)


def _is_needed(name: str, value: float | Distribution) -> bool:
    alarm = CATALOGUE[name].alarm if name in CATALOGUE else "none"
    return alarm == "absence" or (alarm != "none" and value != 0)


@dataclass(frozen=True, slots=True)
class LogMetrics:
    """Logs each set of values as one event; a distribution as count, p50 and p99."""

    namespace: str

    def emit(self, values: Mapping[str, float | Distribution], about: Mapping[str, str] = NO_DIMENSIONS) -> None:
        shown = {name: _shown(value) for name, value in values.items()}
        log_event("metrics.emitted", namespace="/".join((self.namespace, *about.values())), values=shown)

    def flush(self, timeout_seconds: float) -> bool:  # noqa: ARG002 - part of the port; nothing is ever pending
        return True


class DroppedMetrics:
    """Drops all metrics."""

    def emit(self, values: Mapping[str, float | Distribution], about: Mapping[str, str] = NO_DIMENSIONS) -> None:
        """Do nothing."""

    def flush(self, timeout_seconds: float) -> bool:  # noqa: ARG002 - part of the port; nothing is ever pending
        return True


def _shown(value: float | Distribution) -> Any:
    if not isinstance(value, Distribution):
        return value
    if not value.total:
        return {"count": 0}
    return {"count": value.total, "p50": value.percentile(50), "p99": value.percentile(99)}
