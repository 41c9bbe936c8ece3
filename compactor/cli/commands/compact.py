"""`compactor compact`: one folder into another, without a settings file."""

import os
import sys
import time
from contextlib import ExitStack

import click
from rich.console import Console

from compactor.adapters.local.threads import usable_threads
from compactor.cli.commands.run import check_java
from compactor.cli.commands.verify import counter
from compactor.cli.failures import ExitCode, say
from compactor.cli.invocation import Invocation, body, json_option
from compactor.cli.ui.byte_bar import Watch
from compactor.cli.ui.compact_report import Closing, show
from compactor.cli.ui.output import print_json
from compactor.cli.ui.signals import StopSignals
from compactor.core.errors import SettingsError
from compactor.core.formatting import duration
from compactor.job.service import RunReport, Service
from compactor.ledger.backlog import Backlog, read_backlog
from compactor.manifests.patient_planning import PatientPlanner
from compactor.ops.verify.report import VerifyReport
from compactor.settings.compact_paths import Options, parse_compact_paths
from compactor.wiring.app import App
from compactor.wiring.compact_checks import check_folders, check_rows_are_known, linked_folders
from compactor.wiring.compact_settings import FolderSettings, folder_settings


@click.command("compact")
@click.argument("source", metavar="SRC")
@click.argument("destination", metavar="DST")
@click.option("--deep", is_flag=True, help="Verify every value, not only the counts: reads all input again.")
@click.option("--dry-run", is_flag=True, help="Say what would be compacted, and write nothing.")
@click.option("--engine", type=click.Choice(("auto", "native", "spark")), help="auto: native where it is installed.")
@click.option("--schema", metavar="FILE", help="Schema file (TOML): columns with their types.")
@click.option("--names", type=click.Choice(("safe", "exact")), help="Of columns: for Athena and Glue, or as the keys.")
@click.option("--state", metavar="PLACE", help="Where the compactor keeps its own; else beside DST, as DST.compactor.")
@click.option("--claims", metavar="TABLE", help="A DynamoDB table of claims; S3 needs none.")
@click.option("--region", help="Of AWS.")
@click.option("--endpoint-url", metavar="URL", help="A server other than AWS.")
@json_option
@body
def compact(
    invocation: Invocation,
    *,
    source: str,
    destination: str,
    deep: bool,
    dry_run: bool,
    state: str | None,
    as_json: bool,
    **options: str | None,
) -> ExitCode:
    """Turn the NDJSON below SRC into Parquet below DST: plan, compact, verify.

    SRC and DST are folders or s3://bucket/prefix; no settings file is needed. The same call again takes only what is
    new, and goes on where one was interrupted. SIGTERM and Ctrl-C end it after what is in flight.

    Exit codes: 2 also if there is nothing to take; 3 if something was set aside or does not add up; 130 if it was
    interrupted.
    """
    if invocation.config is not None:
        raise click.UsageError("compact takes no settings; with settings, use plan, run --once and verify")
    folder = folder_settings(parse_compact_paths(source, destination, state), Options(**options), os.environ)
    on_terminal = sys.stderr.isatty() and invocation.log_format == "auto"
    if on_terminal:
        invocation.start_log(level="warning")
    started = time.monotonic()
    closing = _compacted(folder, Watch(on_terminal=on_terminal), deep=deep, dry_run=dry_run)
    closing.seconds = time.monotonic() - started
    if as_json:
        print_json(closing.document())
    else:
        show(closing)
    return closing.exit_code


def _compacted(folder: FolderSettings, watch: Watch, *, deep: bool, dry_run: bool) -> Closing:
    app = _app(folder, watch)
    paths = folder.paths
    check_folders(paths)
    planner = PatientPlanner(app.planner, app.store, app.clock, time.sleep, on_wait=_tell_of_wait)
    survey = planner.scan(paths.source)
    if not survey.has_data and folder.kept is None:
        raise SettingsError(
            [f"SRC: {paths.source}: holds no files with data -> expected NDJSON files, compressed or not"]
        )
    if folder.kept is None:
        check_rows_are_known(paths, app.layout, app.store)
    if not dry_run:
        folder.keep(app.store, app.runs)
    plan = planner.plan(paths.source, survey, dry_run=dry_run)
    if linked := linked_folders(paths.source):
        plan.skipped["linked_folder"] = linked
    closing = Closing(paths, app.layout, plan, dry_run=dry_run, is_deep=deep)
    if dry_run:
        return closing
    closing.left = backlog = _backlog(app)
    closing.resumed = max(0, max(backlog.manifests, backlog.begun_manifests) - len(plan.manifests))
    if not backlog.is_empty:
        closing.run, closing.is_interrupted = _run(app, backlog, watch)
        closing.left = _backlog(app)
    if not closing.is_unfinished:
        closing.verification = _verified(app, deep=deep)
    return closing


def _app(folder: FolderSettings, watch: Watch) -> App:
    """The parts, checked for being able to do the work."""
    app = App(folder.settings)
    is_native = app.engine_name == "native"
    settings = folder.with_threads(usable_threads()) if is_native else folder.settings
    if not is_native:
        check_java()
    store = watch.store(app.store_spec, folder.paths.source)
    # A call for another source of the same DST may have begun before this one told of its own, or the other way round.
    return App(settings, store=store, on_result=watch.on_result, leave_others=True)


def _tell_of_wait(what: str, seconds: float) -> None:
    say(f"waiting {duration(seconds)} for {what}")


def _backlog(app: App) -> Backlog:
    return read_backlog(app.store, app.layout, app.ledger, allowed_prefixes=app.settings.input.allowed_prefixes)


def _run(app: App, backlog: Backlog, watch: Watch) -> tuple[RunReport, bool]:
    """Work off all that waits; and whether a signal put an end to it."""
    with ExitStack() as stack:
        signals = stack.enter_context(StopSignals())
        service = _service(app, stack)
        stack.enter_context(watch.bar(backlog.input_bytes or 0))
        signals.attach(service.stop)
        return service.run(once=True), signals.requested


def _service(app: App, stack: ExitStack) -> Service:
    if app.engine_name == "native":
        return app.threaded_service(app.settings.stream.manifests_in_flight)
    from compactor.adapters.spark.session import close_session  # noqa: PLC0415 - pyspark is slow to load

    say("starting Spark ...")
    stack.callback(close_session)
    return app.service()


def _verified(app: App, *, deep: bool) -> VerifyReport:
    with Console(stderr=True).status("verifying") as progress:
        deep_check = app.deep_check if deep else None
        return app.verifier.verify_all(deep_check=deep_check, on_manifest=counter(progress.update))
