"""Where measurements can go on any machine: the log, or nowhere."""

from collections.abc import Mapping

from compactor.logs import log_event


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


class DroppedMetrics:
    """For when nobody wants to know."""

    def emit(self, values: Mapping[str, float]) -> None:
        """Drop the values."""
