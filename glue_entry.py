"""Starts the job on AWS Glue: the arguments of the job name and override the settings."""

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager

from compactor.cli.commands.run import run_job
from compactor.cli.failures import ExitCode, exit_code_of
from compactor.core.errors import CompactorError
from compactor.job.result_log import log_result
from compactor.telemetry.logs import configure_logs, log_event
from compactor.wiring.app import App
from compactor.wiring.job_arguments import job_arguments, overriding, resolved
from compactor.wiring.remote_settings import settings_at

try:
    from awsglue.context import GlueContext
    from awsglue.job import Job
    from awsglue.utils import getResolvedOptions as resolve  # noqa: N813 - Glue's name
except ImportError:  # not on Glue
    GlueContext = Job = None
    resolve = resolved


def main() -> None:
    """Run the job until it is told to stop.

    Raises:
        SystemExit: The job failed. Work that is left to an operator is no failure.
    """
    configure_logs(as_json=True)
    code = exit_code_of(_run)
    if code not in {ExitCode.DONE, ExitCode.NEEDS_OPERATOR}:
        raise SystemExit(int(code))


def _run() -> ExitCode:
    try:
        arguments = job_arguments(sys.argv, resolve)
        # Only names: the value of a setting may be a secret.
        log_event("job.started", config=arguments["CONFIG"], overridden=sorted(overriding(arguments)))
        app = App(settings_at(arguments["CONFIG"], {**os.environ, **overriding(arguments)}), on_result=log_result)
        return run_job(app, once=False, session_context=lambda app: _glue_job(app, arguments))
    except CompactorError as exc:
        log_event("job.failed", error=exc)
        raise


@contextmanager
def _glue_job(app: App, arguments: dict[str, str]) -> Iterator[None]:
    """Tell Glue when the job begins and ends, which its own metrics need."""
    if GlueContext is None:
        yield
        return
    # The Spark session exists with all of its properties before Glue gets it.
    job = Job(GlueContext(app.spark.sparkContext))
    job.init(arguments.get("JOB_NAME", app.settings.control.job_name), arguments)
    yield
    job.commit()


if __name__ == "__main__":
    main()
