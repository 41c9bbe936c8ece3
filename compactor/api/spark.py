"""Runs the job's batches in the caller's stream, on the caller's Spark."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from compactor.api.arguments import Place, settings_of
from compactor.core.errors import SettingsError, TryAgainError
from compactor.core.extras import need
from compactor.core.results import printed
from compactor.job.report import RunReport
from compactor.job.results import log_result
from compactor.wiring import engines, streaming
from compactor.wiring.app import App
from compactor.wiring.opening import job_registry
from compactor.wiring.spark import joined


@dataclass(frozen=True, slots=True)
class DeliveredManifests:
    """A `compactor.job.service.ManifestSource` that ends after its only micro-batch.

    Attributes:
        uris: The manifests.
    """

    uris: Sequence[str]

    def start(self, on_batch: Callable[[Sequence[str]], None], *, once: bool) -> None:  # noqa: ARG002 - of the port
        """Deliver them, in the caller's thread."""
        on_batch(self.uris)

    def wait(self, timeout_seconds: float) -> bool:  # noqa: ARG002 - of the port
        """There is nothing to wait for."""
        return True

    def is_idle(self) -> bool:
        """Whether all were delivered."""
        return True

    def stop(self) -> None:
        """End."""


@printed(
    *("batch_id", "run.committed", "run.dead_lettered", "run.quarantined_files", "run.records", "run.rejected_lines"),
    *("run.failures", "run.stuck"),
)
@dataclass(frozen=True, slots=True, repr=False)
class BatchResult:
    """The result of a micro-batch.

    Attributes:
        batch_id: Its number in the stream.
        run: Its work. Manifests in `stuck` need an operator; they stay, and the others continue.
    """

    batch_id: int
    run: RunReport


def manifest_stream(spark: Any, dst: Place, *, max_manifests: int | None = None) -> Any:
    """Make a streaming DataFrame of new manifests, for `foreach_batch`.

    It reads only their names, into the column `file_path`.

    Args:
        spark: A `pyspark.sql.SparkSession` of this process.
        dst: DST of `compact`, the place of its state, or a settings file.
        max_manifests: The most manifests in a micro-batch; by default four times `stream.manifests_in_flight`.

    Returns:
        A `pyspark.sql.DataFrame`, whose `writeStream` takes `foreach_batch`.

    Raises:
        SettingsError: There are no settings at `dst`, or an argument is wrong.
        ExtraMissing: pyspark is not installed.
        AccessError: The prefix of the manifests may not be written.
    """
    need("spark")
    from compactor.adapters.spark.stream import manifest_names  # noqa: PLC0415 - pyspark is slow to load

    if max_manifests is not None and max_manifests < 1:
        raise SettingsError([f"max_manifests: {max_manifests} -> expected 1 or more"])
    app = App(settings_of(dst))
    app.store.create(app.layout.keep_marker, b"")  # Spark refuses to watch a missing folder
    most = max_manifests or app.settings.stream.manifests_per_trigger
    return manifest_names(spark, app.layout.manifests_folder, most)


def foreach_batch(
    spark: Any, dst: Place, *, on_batch: Callable[[BatchResult], None] | None = None
) -> Callable[[Any, int], None]:
    """Make the function that compacts the manifests of a micro-batch, as the job does, on the caller's Spark.

    Pass it to `writeStream.foreachBatch` of `manifest_stream`, or of any stream with manifest URIs in the column
    `file_path`. It returns when all manifests in the watched prefix are done: those of the batch, and those left by an
    earlier batch or a dead process. A batch that is delivered again, with a different checkpoint or after a failure,
    duplicates no row. It neither changes nor closes the session.

    Args:
        spark: A `pyspark.sql.SparkSession` of this process. Its executors need this package, and with the native engine
            its wheel.
        dst: DST of `compact`, the place of its state, or a settings file.
        on_batch: Called at the end of each micro-batch, in the thread of the stream.

    Returns:
        The function. It raises compactor errors, which end the stream: `TryAgainError` if manifests failed
        repeatedly, or if `compactor stop` asked it to stop, so that Spark delivers the batch again when the stream
        restarts.

    Raises:
        SettingsError: There are no settings at `dst`, the schema file has faults, or the session uses Spark Connect.
        ExtraMissing: pyspark is not installed.
        AccessError: Something may not be read.
    """
    need("spark")
    settings = settings_of(dst)
    session = joined(settings, spark)
    first = App(settings)
    job_registry(first).check_declared()

    def process(batch: Any, batch_id: int) -> None:
        from compactor.adapters.spark.stream import uris_of  # noqa: PLC0415 - as above

        app = App(
            settings, spark=session, metrics=first.metrics, catalog_table=first.catalog_table, on_result=log_result
        )
        service = streaming.service_on(
            app, engines.engine(app), DeliveredManifests(uris_of(batch, app.layout.manifests_folder))
        )
        report = service.run(once=True)
        if on_batch is not None:
            on_batch(BatchResult(batch_id, report))
        if service.was_stopped:  # unfinished manifests must not count as delivered
            raise TryAgainError(f"{app.layout.state}: the run was asked to stop; start the stream again")

    return process
