"""`compactor run`: the streaming job."""

import os
import sys
import time
from collections.abc import Callable
from contextlib import AbstractContextManager, ExitStack, nullcontext

import click

from compactor.cli.failures import ExitCode, say, say_next
from compactor.cli.invocation import Invocation, body
from compactor.cli.ui.output import print_fields
from compactor.cli.ui.progress import LiveLine, log_result
from compactor.cli.ui.signals import StopSignals
from compactor.core.errors import SettingsError, StuckError, TryAgainError
from compactor.core.formatting import count, duration, rate, size
from compactor.job.run_report import RunReport
from compactor.ops.doctor.java import java_fault
from compactor.settings.spark_conf import is_submitted
from compactor.wiring.app import App


@click.command("run")
@click.option("--once", is_flag=True, help="Process all that is there, and end.")
@body
def run(invocation: Invocation, *, once: bool) -> ExitCode:
    """Compact manifests as they come.

    SIGTERM and Ctrl-C end it after the batch in flight; a second one ends it at once, and the next run goes on.


    Exit codes: 3 if manifests or files were set aside.
    """
    settings = invocation.settings()
    if not sys.stderr.isatty() or invocation.log_format != "auto":
        return run_job(App(settings, on_result=log_result), once=once)
    # The line says what the log's everyday events would say.
    invocation.start_log(level="warning")
    say("starting Spark ...")
    line = LiveLine()
    return run_job(
        App(settings, on_crash_point=line.on_crash_point, on_result=line.on_result),
        once=once,
        session_context=lambda _: line,
    )


def run_job(
    app: App, *, once: bool, session_context: Callable[[App], AbstractContextManager[object]] = nullcontext
) -> ExitCode:
    """Run the job from Spark's start to its end, and say what it did.

    Args:
        app: Its parts.
        once: Process all that is there, and end.
        session_context: What is to hold from when Spark is up until it goes.

    Raises:
        SettingsError: Spark cannot start, or the schema file is wrong.
        CompactorError: The job failed.
    """
    check_java()
    started = time.monotonic()
    report = _run(app, once=once, session_context=session_context)
    _show(report, time.monotonic() - started)
    return _exit_code(report)


def check_java() -> None:
    """Make sure that Spark can start.

    Raises:
        SettingsError: There is no Java, or one that Spark does not run on.
    """
    # A driver that spark-submit or Glue has started runs in a JVM already.
    fault = None if is_submitted(os.environ) else java_fault(os.environ)
    if fault:
        raise SettingsError([fault])


def _run(app: App, *, once: bool, session_context: Callable[[App], AbstractContextManager[object]]) -> RunReport:
    from compactor.adapters.spark.session import close_session  # noqa: PLC0415 - pyspark is slow to load

    with ExitStack() as stack:
        signals = stack.enter_context(StopSignals())
        stack.callback(close_session)
        service = app.service()
        stack.enter_context(session_context(app))  # from now on: as Spark starts, the JVM writes to the terminal itself
        signals.attach(service.stop)
        return service.run(once=once)


def _show(report: RunReport, seconds: float) -> None:
    print_fields(
        [
            ("manifests", f"{report.committed:,} committed, {report.dead_lettered:,} dead letters"),
            ("in", size(report.input_bytes) + _aside(report.quarantined_files)),
            ("rows", f"{report.records:,}"),
            ("rejects", f"{report.rejected_lines:,}"),
            ("out", f"{count(report.output_files, 'file')}, {size(report.output_bytes)}"),
            ("took", f"{duration(seconds)} with Spark's start, {rate(report.input_bytes, seconds)}"),
        ]
    )
    for manifest_id, error in report.failures.items():
        say(f"manifest {manifest_id} is not done: {error}")
    for manifest_id, fault in report.stuck.items():
        say(f"manifest {manifest_id} waits for somebody to put it right: {fault}")
    for left, kind in ((report.failures, TryAgainError), (report.stuck, StuckError)):
        if left:
            say_next(kind.next_move)
    if report.dead_lettered or report.quarantined_files:
        say("something was set aside: `compactor verify` counts it, `compactor trace URI` says why")


def _aside(files: int) -> str:
    return f", {count(files, 'file')} set aside" if files else ""


def _exit_code(report: RunReport) -> ExitCode:
    if report.failures:
        return ExitCode.FAILED
    needs_operator = report.dead_lettered or report.quarantined_files or report.stuck
    return ExitCode.NEEDS_OPERATOR if needs_operator else ExitCode.DONE
