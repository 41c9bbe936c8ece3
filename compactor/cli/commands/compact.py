"""`compactor compact`: turns one folder into another, without a settings file."""

import os
import sys
import time
from contextlib import ExitStack
from typing import Any

import click

from compactor.adapters.local.skipped_links import skipped_links
from compactor.adapters.local.threads import usable_threads
from compactor.cli.commands.run import check_java
from compactor.cli.commands.verify import counter
from compactor.cli.failures import ExitCode, say
from compactor.cli.invocation import Invocation, body, json_option
from compactor.cli.ui.compact_report import Closing, show
from compactor.cli.ui.console import SafeConsole
from compactor.cli.ui.output import print_json
from compactor.cli.ui.progress import CompactProgress
from compactor.cli.ui.signals import StopSignals
from compactor.core.errors import SettingsError
from compactor.core.formatting import count, duration
from compactor.job.run_report import RunReport
from compactor.job.service import Service
from compactor.ledger.backlog import Backlog, read_backlog
from compactor.manifests.patient_planning import SETTLE_SECONDS, SETTLING, PatientPlanner
from compactor.ops.verify.report import VerifyReport
from compactor.settings.compact_paths import Options, parse_compact_paths
from compactor.wiring.app import App
from compactor.wiring.compact_folder import (
    FolderSettings,
    check_folders,
    check_rows_are_known,
    folder_settings,
)
from compactor.wiring.compact_schema import (
    check_inferable,
    checked_schema,
    inferred_schema,
    infers_types,
    keep_schema,
)


@click.command("compact")
@click.argument("source", metavar="SRC")
@click.argument("destination", metavar="DST")
@click.option("--deep", is_flag=True, help="Compare every value, not only counts; reads all input again.")
@click.option("--dry-run", is_flag=True, help="Show what would be compacted; write nothing.")
@click.option(
    "--engine", type=click.Choice(("auto", "native", "spark")), help="Use this engine. auto: native if it is installed."
)
@click.option("--schema", metavar="FILE", help="Read column names and types from FILE (TOML), and keep a copy.")
@click.option("--types", type=click.Choice(("infer",)), help="Choose the types from the input; see `schema suggest`.")
@click.option(
    "--names",
    type=click.Choice(("safe", "exact")),
    help="Name columns for Athena and Glue (safe), or as the keys (exact).",
)
@click.option("--hive-keys", is_flag=True, default=None, help="Make columns of folders such as country=DE.")
@click.option("--state", metavar="PLACE", help="Keep state in PLACE; default: DST.compactor.")
@click.option("--claims", metavar="TABLE", help="Claim files in this DynamoDB table; optional.")
@click.option("--region", help="Use this AWS region.")
@click.option("--endpoint-url", metavar="URL", help="Use this server in place of AWS.")
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
    **options: Any,
) -> ExitCode:
    """Turn the NDJSON below SRC into Parquet below DST: plan, compact, verify.

    SRC and DST are folders or s3://bucket/prefix; no settings file is needed. A second call takes only new files, and
    continues where the first was interrupted. SIGTERM and Ctrl-C stop it after the work in flight.

    Exit codes: 2 also if SRC holds no data; 3 if input was quarantined or counts do not add up; 130 if interrupted.
    """
    if invocation.config is not None:
        raise click.UsageError("compact takes no settings file; with one, use plan, run --once and verify")
    if options["schema"] and options["types"]:
        raise click.UsageError("give --schema or --types, not both")
    folder = folder_settings(parse_compact_paths(source, destination, state), Options(**options), os.environ)
    on_terminal = sys.stderr.isatty() and invocation.log_format == "auto"
    if on_terminal:
        invocation.start_log(level="warning")
    started = time.monotonic()
    closing = _compacted(folder, CompactProgress(on_terminal=on_terminal), deep=deep, dry_run=dry_run)
    closing.seconds = time.monotonic() - started
    if as_json:
        print_json(closing.document())
    else:
        show(closing)
    return closing.exit_code


def _compacted(folder: FolderSettings, progress: CompactProgress, *, deep: bool, dry_run: bool) -> Closing:
    app = _app(folder, progress)
    paths = folder.paths
    check_folders(paths)
    schema = checked_schema(folder, app)
    if infers_types(folder):
        check_inferable(folder, app)
    planner = PatientPlanner(app.planner, app.store, app.clock, time.sleep, on_wait=_tell_of_wait)
    survey = planner.scan(paths.source)
    left_out = skipped_links(paths.source, app.settings.input.allowed_prefixes)
    if not survey.has_data and folder.kept is None:
        links = f" ({count(sum(left_out.values()), 'symbolic link')} not followed)" if left_out else ""
        raise SettingsError(
            [f"SRC: {paths.source} holds no files with data{links} -> expected NDJSON files, compressed or not"]
        )
    if folder.kept is None:
        check_rows_are_known(paths, app.layout, app.store)
    if not dry_run:
        _keep(folder, app, schema)
    plan = planner.plan(paths.source, survey, dry_run=dry_run)
    plan.skipped |= left_out
    closing = Closing(paths, app.layout, plan, dry_run=dry_run, is_deep=deep)
    closing.schema_file = folder.settings.schema.file or None
    if dry_run:
        return closing
    closing.left = backlog = _backlog(app)
    closing.resumed = max(0, max(backlog.manifests, backlog.begun_manifests) - len(plan.manifests))
    if not backlog.is_empty:
        closing.run, closing.is_interrupted = _run(app, backlog, progress)
        closing.left = _backlog(app)
    if not closing.is_unfinished:
        closing.verification = _verified(app, deep=deep)
    return closing


def _keep(folder: FolderSettings, app: App, schema: bytes | None) -> None:
    """Keep the schema file and the settings beside the state."""
    if infers_types(folder):
        with SafeConsole(stderr=True).status("reading") as status:
            schema = inferred_schema(folder, app, lambda files: status.update(f"read {count(files, 'file')} for types"))
    if schema is not None:
        keep_schema(folder, app, schema)
    folder.keep(app.store, app.runs)


def _app(folder: FolderSettings, progress: CompactProgress) -> App:
    """Make the components, and check that the engine can run."""
    app = App(folder.settings)
    is_native = app.engine_name == "native"
    settings = folder.with_threads(usable_threads()) if is_native else folder.settings
    if not is_native:
        check_java()
    store = progress.store(app.store_spec, folder.paths.source)
    # A call for another source of the same DST may run at the same time; neither may refuse the manifests of the other.
    return App(settings, store=store, on_result=progress.on_result, leave_others=True)


def _tell_of_wait(what: str, seconds: float) -> None:
    if what == SETTLING:
        say(f"files changed less than {SETTLE_SECONDS:g} s ago; waiting for them to settle")
    else:
        say(f"waiting {duration(seconds)} for {what}")


def _backlog(app: App) -> Backlog:
    return read_backlog(app.state, allowed_prefixes=app.settings.input.allowed_prefixes)


def _run(app: App, backlog: Backlog, progress: CompactProgress) -> tuple[RunReport, bool]:
    """Process the backlog; returns the report, and whether a signal stopped the work."""
    with ExitStack() as stack:
        signals = stack.enter_context(StopSignals())
        service = _service(app, stack)
        stack.enter_context(progress.shown(backlog.input_bytes or 0))
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
    with SafeConsole(stderr=True).status("verifying") as status:
        return app.verifier(deep=deep, on_manifest=counter(status.update)).verify_all()
