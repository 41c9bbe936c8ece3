"""Where measurements can go on any machine: the log, or nowhere."""

from collections.abc import Mapping

from compactor.logs import log_event
from compactor.ports import Clock, MetricsSink
from compactor.settings import Settings


def metrics_sink(settings: Settings, clock: Clock) -> MetricsSink:  # noqa: ARG001 - a sink that dates its values needs it
    """The sink that the settings name."""
    metrics = settings.metrics
    return LogMetrics(metrics.namespace) if metrics.sink == "log" else DroppedMetrics()


class LogMetrics:
    """Logs each set of values as one event.

    Args:
        namespace: What they are filed under.
    """

    def __init__(self, namespace: str) -> None:
        self._namespace = namespace

    def emit(self, values: Mapping[str, float]) -> None:
        """Log the values."""
        log_event("metrics.emitted", namespace=self._namespace, values=dict(values))

    def flush(self, timeout_seconds: float) -> bool:  # noqa: ARG002 - a port's method; nothing is ever under way
        return True


class DroppedMetrics:
    """For when nobody wants to know."""

    def emit(self, values: Mapping[str, float]) -> None:
        """Drop the values."""

    def flush(self, timeout_seconds: float) -> bool:  # noqa: ARG002 - a port's method; nothing is ever under way
        return True
