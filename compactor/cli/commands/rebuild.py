"""`compactor rebuild`: regenerates lost or damaged output from the same input."""

from contextlib import ExitStack

import click

from compactor.cli.invocation import Invocation, reporting
from compactor.cli.parameters import date_option, destination_argument, manifest_option
from compactor.cli.ui.failures import ExitCode, say, say_next
from compactor.cli.ui.output import print_result, show_counted, show_list
from compactor.cli.ui.progress import working
from compactor.cli.ui.terminal import echo
from compactor.cli.ui.words import discrepancy_entries
from compactor.core.errors import TryAgainError
from compactor.core.text.formatting import count
from compactor.ops.rebuild.damaged import RebuildScan
from compactor.ops.rebuild.rebuilder import RebuildReport
from compactor.telemetry.logs import run_in_log
from compactor.wiring import operating, rebuilding
from compactor.wiring.app import App
from compactor.wiring.engine_choice import engine_choice, installed_engine
from compactor.wiring.spark import check_java


@click.command("rebuild")
@destination_argument
@manifest_option(multiple=True, about="Check only this manifest; repeatable.")
@date_option
@click.option("--force", is_flag=True, help="With --manifest: rebuild it even if its files are correct.")
@click.option("--dry-run", is_flag=True, help="Write nothing; show what would be rebuilt.")
@reporting(RebuildReport)
def rebuild(
    invocation: Invocation,
    *,
    manifest_ids: tuple[str, ...],
    day: str | None,
    force: bool,
    dry_run: bool,
    as_json: bool,
) -> ExitCode:
    """Regenerate lost or damaged output from the same input.

    Checks the files of all committed manifests, of one date, or of the given manifests. Regenerates missing and damaged
    output and rejects, and staged files that were deleted before publication. The rows come from exactly the input
    versions that were compacted; if one no longer exists, the manifest is refused. No row appears twice, even while a
    job runs. Quarantined files stay as they are.

    Exit codes: 1 if a rebuild failed; 3 if a manifest was refused, or counts do not add up afterwards.
    """
    if manifest_ids and day is not None:
        raise click.UsageError("give --manifest or --date, not both")
    if force and not manifest_ids:
        raise click.UsageError("--force needs --manifest")
    app = App(invocation.settings())
    with working("checking files", app.state.meter):
        scan = operating.rebuild_scanner(app).scan(manifest_ids, date=day, force=force)
    report = _rebuilt(app, scan, dry_run=dry_run)
    print_result(report, _show, as_json=as_json)
    if report.failed:
        return ExitCode.FAILED
    return ExitCode.NEEDS_OPERATOR if report.refused or report.discrepancies else ExitCode.DONE


def _rebuilt(app: App, scan: RebuildScan, *, dry_run: bool) -> RebuildReport:
    with ExitStack() as stack:
        if scan.damaged and not dry_run and installed_engine(app.settings) != "native":
            from compactor.adapters.spark.session import close_session  # noqa: PLC0415 - pyspark is slow to load

            check_java()
            say(f"engine {engine_choice(app.settings.convert)}; starting Spark ...")
            stack.callback(close_session)
        stack.enter_context(run_in_log(app.run_id))
        stack.enter_context(working("rebuilding", app.state.meter))
        return rebuilding.rebuilder(app).rebuild(scan, dry_run=dry_run)


def _show(report: RebuildReport) -> None:
    rows = sum(each.rows for each in report.rebuilt)
    would = "Would rebuild" if report.dry_run else "Rebuilt"
    intact = f"; {report.intact:,} intact" if report.intact else ""
    expired = f"; {report.expired:,} expired or given up" if report.expired else ""
    echo(f"{would} {count(len(report.rebuilt), 'manifest')} with {count(rows, 'row')}{intact}{expired}")
    show_list([(each.manifest_id, each.why) for each in report.rebuilt])
    show_counted("Refused", [(each.manifest_id, each.why) for each in report.refused])
    show_counted("Failed", [(each.manifest_id, each.why) for each in report.failed])
    show_counted("Discrepancies", discrepancy_entries(report.discrepancies))
    if report.failed:
        say_next(TryAgainError.next_move)
