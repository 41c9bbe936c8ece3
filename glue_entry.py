"""Starts the job on AWS Glue, or with `spark-submit` on other clusters: arguments locate and override the settings.

Uses nothing from Glue's own library: Glue's bookmarks and metrics are not needed, and Spark's session is a plain one.
"""

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager

from compactor.cli.commands.job.run import run_job
from compactor.cli.ui.failures import ExitCode, exit_code_of
from compactor.core.errors import CompactorError
from compactor.job.results import log_result
from compactor.settings.spark_conf import check_cluster
from compactor.telemetry.logs import configure_logs, log_event
from compactor.wiring.app import App
from compactor.wiring.engine_choice import needs_spark
from compactor.wiring.opening import spark_session
from compactor.wiring.settings_files import job_arguments, overriding, settings_at


def main() -> None:
    """Run the job until it is asked to stop.

    Raises:
        SystemExit: The job failed. Work left to an operator is not a failure.
    """
    configure_logs(as_json=True)
    code = exit_code_of(_run)
    if code not in {ExitCode.DONE, ExitCode.NEEDS_OPERATOR}:
        raise SystemExit(int(code))


def _run() -> ExitCode:
    try:
        arguments = job_arguments(sys.argv)
        # Only names: a setting's value may be a secret.
        log_event("job.started", config=arguments["CONFIG"], overridden=sorted(overriding(arguments)))
        settings = settings_at(arguments["CONFIG"], {**os.environ, **overriding(arguments)})
        if stream := arguments.get("STREAM"):
            settings = settings.of_stream(stream)
        if shard := arguments.get("SHARD"):
            settings = settings.of_shard(shard)
        app = App(settings, on_result=log_result)
        return run_job(app, once=False, session_context=_on_cluster)
    except CompactorError as exc:
        log_event("job.failed", error=exc)
        raise


@contextmanager
def _on_cluster(app: App) -> Iterator[None]:
    """Refuse to run only on the driver, slowly, while paid workers idle."""
    if needs_spark(app.settings):
        check_cluster(spark_session(app).sparkContext.master, app.settings.spark.conf.get("spark.master", ""))
    yield


if __name__ == "__main__":
    main()
