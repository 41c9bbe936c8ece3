"""Watches the manifest prefix with a Spark file stream, which reports only the names of new manifests."""

import threading
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING
from urllib.parse import unquote

from pyspark.sql import DataFrame, SparkSession

from compactor.adapters.spark.failures import summarised
from compactor.adapters.spark.session import loss_reported
from compactor.core.errors import EngineLost, SettingsError
from compactor.core.layout import canonical
from compactor.engines.spark.names import spark_path
from compactor.job.service import ManifestSource
from compactor.telemetry.logs import log_event

if TYPE_CHECKING:
    from pyspark.sql.streaming.query import StreamingQuery


# Finds new manifests with Spark's stream, or with listings once the stream cannot get past an object.


@dataclass(slots=True, kw_only=True)
class StreamOrListing:
    """A `compactor.job.service.ManifestSource`: Spark's stream, or listings once the stream fails at an object.

    Spark's file source fails permanently at an object that it may not open. The error is raised unchanged, so that the
    job restarts its source.

    Attributes:
        listing: Replaces the stream until the run ends.
        manifests: The watched prefix; ends with `/`.
    """

    stream: ManifestSource
    listing: ManifestSource
    manifests: str
    _lists: bool = False

    def start(self, on_batch: Callable[[Sequence[str]], None], *, once: bool) -> None:
        self._chosen().start(on_batch, once=once)

    def wait(self, timeout_seconds: float) -> bool:
        try:
            return self._chosen().wait(timeout_seconds)
        except Exception as exc:
            if not self._lists and self._names_object(exc):
                self.stream.stop()
                self._lists = True
                log_event("stream.replaced", error=exc)
            raise

    def is_idle(self) -> bool:
        return self._chosen().is_idle()

    def stop(self) -> None:
        self._chosen().stop()

    def _chosen(self) -> ManifestSource:
        return self.listing if self._lists else self.stream

    def _names_object(self, error: Exception) -> bool:
        """Whether Spark's own error names an object in the watched prefix."""
        _, _, place = canonical(self.manifests).rpartition("://")
        following = str(error.__cause__ or "").split(place)[1:]
        return any(rest[:1].strip() for rest in following)


_NEVER = "36500d"
"""100 years: the file source must not skip a manifest because it saw a newer one first."""

READ_SECONDS = 10.0
"""How long a stopped stream may take to finish reading a micro-batch's names."""


def manifest_names(session: SparkSession, manifests: str, max_manifests_per_trigger: int) -> DataFrame:
    """A streaming DataFrame with the names of new manifests."""
    return (
        # This format opens a file only for its content: a name that Hadoop cannot open must not end the stream.
        session.readStream.format("binaryFile")
        .schema("path string, modificationTime timestamp, length long, content binary")
        .option("maxFilesPerTrigger", max_manifests_per_trigger)
        .option("maxFileAge", _NEVER)
        # Another driver may have archived a manifest between the listing and the read.
        .option("ignoreMissingFiles", True)
        .load(spark_path(manifests.rstrip("/")))
        # Only the name comes from Spark; the store reads the exact bytes.
        .select("_metadata.file_path")
    )


def uris_of(batch: DataFrame, manifests: str) -> list[str]:
    """The canonical URIs of a micro-batch's manifests.

    Raises:
        SettingsError: It has no name column.
    """
    if "file_path" not in batch.columns:
        raise SettingsError(
            [f"the batch has the columns {batch.columns} -> expected file_path, as from manifest_stream"]
        )
    names = (unquote(row["file_path"]).rsplit("/", 1)[-1] for row in batch.select("file_path").collect())
    return [canonical(manifests) + name for name in names]


@dataclass(slots=True, kw_only=True)
class SparkManifestSource:
    """Delivers new manifests in micro-batches, with Structured Streaming's file source.

    Each stream has its own checkpoint. A new stream lists the whole prefix again; the ledger knows what is left to do.

    Attributes:
        manifests: The watched prefix; ends with `/`.
        checkpoint: The URI of a folder that no stream has used.
        trigger_interval_seconds: The interval between listings of the prefix.
    """

    session: SparkSession
    manifests: str
    checkpoint: str
    max_manifests_per_trigger: int
    trigger_interval_seconds: float
    _query: "StreamingQuery | None" = None
    _batch_error: Exception | None = None
    _is_stopping: bool = False
    _reading: threading.Lock = field(default_factory=threading.Lock)

    def start(self, on_batch: Callable[[Sequence[str]], None], *, once: bool) -> None:
        self._batch_error, self._is_stopping = None, False
        with loss_reported():
            self._query = self._started(on_batch, once=once)

    def _started(self, on_batch: Callable[[Sequence[str]], None], *, once: bool) -> "StreamingQuery":
        stream = manifest_names(self.session, self.manifests, self.max_manifests_per_trigger)

        def deliver(batch: DataFrame, _batch_id: int) -> None:
            with self._reading:
                if self._is_stopping:
                    return
                uris = uris_of(batch, self.manifests)
            try:
                on_batch(uris)
            except Exception as exc:
                self._batch_error = exc  # Spark wraps it in a text with a stack trace
                raise

        writer = stream.writeStream.foreachBatch(deliver).option("checkpointLocation", self.checkpoint)
        if once:
            return writer.trigger(availableNow=True).start()
        return writer.trigger(processingTime=f"{self.trigger_interval_seconds} seconds").start()

    def wait(self, timeout_seconds: float) -> bool:
        """Wait for the stream to end; raise the error that ended it, a batch's own error unwrapped."""
        if self._query is None:
            return True
        try:
            with summarised(), loss_reported():
                return bool(self._query.awaitTermination(timeout_seconds))  # type: ignore[arg-type]  # takes floats
        except EngineLost:  # worse than any batch error: the run has to end
            raise
        except Exception as exc:  # noqa: BLE001 - raised below, where it is no context of the batch's own error
            error = self._batch_error or exc
        raise error

    def is_idle(self) -> bool:
        if self._query is None:
            return False
        with loss_reported():
            status = self._query.status
        # A query that has not started its first trigger has no data either.
        has_listed = status["message"].startswith("Waiting")
        return has_listed and not status["isDataAvailable"] and not status["isTriggerActive"]

    def stop(self) -> None:
        """Stop the stream without waiting for a batch in flight. The checkpoint is useless afterwards."""
        self._is_stopping = True
        if self._query is not None:
            if self._reading.acquire(timeout=READ_SECONDS):  # Spark logs pages of errors if it is stopped meanwhile
                self._reading.release()
            with suppress(EngineLost), loss_reported():  # a lost JVM has lost its streams
                self._query.stop()
            self._query = None
