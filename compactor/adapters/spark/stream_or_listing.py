"""Finds new manifests by Spark's stream, or by listings once the stream cannot get past one of their objects."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from compactor.core.layout import canonical
from compactor.job.service import ManifestSource
from compactor.telemetry.logs import log_event


@dataclass(slots=True, kw_only=True)
class StreamOrListing:
    """A `compactor.job.service.ManifestSource`. Spark's file source fails for good at an object that it may not open.

    The stream's error is raised as it is, so that the job starts its source again.

    Attributes:
        stream: Spark's.
        listing: Takes its place until the run ends.
        manifests: The watched prefix; ends with `/`.
    """

    stream: ManifestSource
    listing: ManifestSource
    manifests: str
    _lists: bool = False

    def start(self, on_batch: Callable[[Sequence[str]], None], *, once: bool) -> None:
        """Start delivering micro-batches."""
        self._chosen().start(on_batch, once=once)

    def wait(self, timeout_seconds: float) -> bool:
        """Wait for the source to end; raises the error that ended it."""
        try:
            return self._chosen().wait(timeout_seconds)
        except Exception as exc:
            if not self._lists and self._names_object(exc):
                self.stream.stop()
                self._lists = True
                log_event("stream.replaced", error=exc)
            raise

    def is_idle(self) -> bool:
        """Whether the last listing had no new manifests."""
        return self._chosen().is_idle()

    def stop(self) -> None:
        """End the source."""
        self._chosen().stop()

    def _chosen(self) -> ManifestSource:
        return self.listing if self._lists else self.stream

    def _names_object(self, error: Exception) -> bool:
        """Whether Spark's own error names an object of the watched prefix."""
        _, _, place = canonical(self.manifests).rpartition("://")
        following = str(error.__cause__ or "").split(place)[1:]
        return any(rest[:1].strip() for rest in following)
