"""`compactor job run`: runs the streaming job."""

import os
import sys
import time
from collections.abc import Callable
from contextlib import AbstractContextManager, ExitStack, nullcontext
from pathlib import Path

import click

from compactor.adapters.local.native.threads import usable_threads
from compactor.cli.invocation import Invocation, body, stream_option
from compactor.cli.parameters import destination_argument
from compactor.cli.ui.failures import ExitCode, say, say_next
from compactor.cli.ui.output import print_fields
from compactor.cli.ui.progress import LiveLine
from compactor.cli.ui.signals import StopSignals
from compactor.cli.ui.supervisor import Supervisor, peak_bytes
from compactor.core.errors import StuckError, TryAgainError
from compactor.core.text.formatting import count, duration, rate, size
from compactor.core.text.safe_text import Suggestions
from compactor.job.report import RunReport
from compactor.job.results import log_result
from compactor.telemetry.logs import log_event
from compactor.wiring import streaming
from compactor.wiring.app import App
from compactor.wiring.engine_choice import engine_choice, installed_engine, needs_spark, source_choice
from compactor.wiring.spark import check_java


@click.command("job run")
@destination_argument
@click.option("--once", is_flag=True, help="Compact the waiting manifests, then exit.")
@click.option("--shard", metavar="K/N", help="Run as shard K of N parallel jobs that share the manifests, such as 2/4.")
@click.option(
    "--health-file",
    type=click.Path(dir_okay=False, path_type=Path),
    help="Touch this file every 10 s while the job takes its turns, for the health check of a container.",
)
@stream_option
@body
def run(invocation: Invocation, *, once: bool, shard: str | None, health_file: Path | None) -> ExitCode:
    """Compact manifests as they arrive.

    SIGTERM or Ctrl-C stops the job after the manifests in flight; a second one stops it at once. The next run resumes
    there.

    With --shard, several jobs share the manifests; each takes over from jobs that died. With several streams, the job
    serves all that share it, or only --stream. Under systemd, it reports that it is ready, and that it is alive.

    Exit codes: 0 also if stopped while manifests await a retry (with --once: 1); 3 if manifests became dead letters or
    files were quarantined.
    """
    settings = invocation.deployment()
    if shard is not None:
        settings = settings.of_shard(shard)
    supervisor = Supervisor(health_file, os.environ.get("NOTIFY_SOCKET", ""))
    supervisor.begin()
    if not sys.stderr.isatty() or invocation.log_format != "auto":
        invocation.start_log(of_job=True)
        app = App(settings, on_result=log_result, on_turn=supervisor.on_turn)
        return run_job(app, once=once, is_logged=invocation.log_format == "json")
    line = LiveLine()  # shows the content of info events
    app = App(settings, on_crash_point=line.on_crash_point, on_result=line.on_result, on_turn=supervisor.on_turn)
    say(f"engine {engine_choice(app.settings.convert)}; manifests from {source_choice(app.settings)}")
    if needs_spark(app.settings):
        say("starting Spark ...")
    if not once:
        say(f"watching {_watched(app)}; Ctrl-C stops after the manifests in flight")
    return run_job(app, once=once, session_context=lambda _: line.display)


def _watched(app: App) -> str:
    return f"{app.layout.manifests_folder} every {duration(app.settings.stream.trigger_interval_seconds)}"


def run_job(
    app: App,
    *,
    once: bool,
    session_context: Callable[[App], AbstractContextManager[object]] = nullcontext,
    is_logged: bool = False,
) -> ExitCode:
    """Start Spark, run the job until it ends, and print its results.

    Args:
        app: The settings and their ports.
        once: Whether to end when nothing waits.
        session_context: Entered once Spark is up, and left before it closes.
        is_logged: Whether the results, and that it was asked to stop, are log events instead of text.

    Raises:
        SettingsError: Spark cannot start, or the schema file has faults.
        CompactorError: The job failed.
    """
    on_spark = needs_spark(app.settings)
    if on_spark:
        check_java()
    started = time.monotonic()
    # Before Spark starts: the log gives the reasons for the engine and the source.
    log_event(
        "run.engine_chosen",
        engine=installed_engine(app.settings),
        why=engine_choice(app.settings.convert).reason,
        source=source_choice(app.settings).name,
        watched="" if once else app.layout.manifests_folder,
    )
    report = _run(app, once=once, on_spark=on_spark, session_context=session_context, is_logged=is_logged)
    seconds = time.monotonic() - started
    if is_logged:
        _log(report, seconds)
    else:
        _show(report, seconds, app.settings.suggestions.marked(), with_spark=on_spark)
    return _exit_code(report, once=once)


def _run(
    app: App,
    *,
    once: bool,
    on_spark: bool,
    session_context: Callable[[App], AbstractContextManager[object]],
    is_logged: bool,
) -> RunReport:
    def stop() -> None:
        if is_logged:
            log_event("run.asked_to_stop")
        service.stop()

    with ExitStack() as stack:
        signals = stack.enter_context(StopSignals(says=not is_logged))
        if on_spark:
            from compactor.adapters.spark.session import close_session  # noqa: PLC0415 - pyspark is slow to load

            stack.callback(close_session)
            service = streaming.spark_job(app)
        else:
            service = streaming.threaded_job(app, usable_threads())
        stack.enter_context(session_context(app))  # only now: while Spark starts, the JVM writes to the terminal
        signals.attach(stop)
        return service.run(once=once)


def _log(report: RunReport, seconds: float) -> None:
    log_event(
        "run.ended",
        manifests=report.committed,
        dead_letters=report.dead_lettered,
        quarantined_files=report.quarantined_files,
        waiting=len(report.failures) + len(report.stuck),
        rows=report.records,
        rejected_lines=report.rejected_lines,
        seconds=round(seconds, 3),
        peak_memory_bytes=peak_bytes(),
    )


def _show(report: RunReport, seconds: float, suggest: Suggestions, *, with_spark: bool) -> None:
    files = report.quarantined_files
    start = " including Spark's start" if with_spark else ""
    quarantined = f", {count(files, 'file')} quarantined" if files else ""
    print_fields(
        [
            ("manifests", f"{report.committed:,} committed, {count(report.dead_lettered, 'dead letter')}"),
            ("in", size(report.input_bytes) + quarantined),
            ("rows", f"{report.records:,}"),
            ("rejects", f"{report.rejected_lines:,}"),
            ("out", f"{count(report.output_files, 'file')}, {size(report.output_bytes)}"),
            ("took", f"{duration(seconds)}{start}, {rate(report.input_bytes, seconds)}"),
        ]
    )
    for manifest_id, error in report.failures.items():
        say(f"manifest {manifest_id} is not done: {error}")
    for manifest_id, fault in report.stuck.items():
        say(f"manifest {manifest_id} waits for an operator: {fault}")
    for left, kind in ((report.failures, TryAgainError), (report.stuck, StuckError)):
        if left:
            say_next(kind.next_move)
    if report.dead_lettered or files:
        say(f"not all input became rows: {suggest.call('verify')} shows what, why, and what to do")


def _exit_code(report: RunReport, *, once: bool) -> ExitCode:
    if report.failures and once:  # an endless run was stopped: manifests awaiting retry are not failures
        return ExitCode.FAILED
    needs_operator = report.dead_lettered or report.quarantined_files or report.stuck
    return ExitCode.NEEDS_OPERATOR if needs_operator else ExitCode.DONE
