"""`compactor retire`: removes what closed dates hold, and puts on record that it expired."""

from collections.abc import Sequence

import click

from compactor.adapters.local.machine import person
from compactor.cli.invocation import Invocation, body, json_option, stream_option
from compactor.cli.parameters import calendar_day, destination_argument
from compactor.cli.ui.failures import ExitCode, not_confirmed
from compactor.cli.ui.output import print_result, show_lines
from compactor.cli.ui.progress import working
from compactor.cli.ui.terminal import echo
from compactor.core.text.formatting import count, size
from compactor.ops.retire.retiring import RetiredDate, RetireReport, RetireScan, find_retirable
from compactor.ops.retire.retiring import retire as retired
from compactor.telemetry.logs import run_in_log
from compactor.wiring import operating
from compactor.wiring.app import App


@click.command("retire")
@destination_argument
@click.option(
    "--before", required=True, callback=calendar_day, metavar="DATE", help="Retire dates before DATE, yyyy-mm-dd."
)
@click.option(
    "--with-unsettled",
    is_flag=True,
    help="Also retire dates with dead letters and quarantined files that nothing settled; these stay on record.",
)
@click.option("--dry-run", is_flag=True, help="Remove nothing; show what would be removed.")
@click.option("--yes", is_flag=True, help="Do not prompt.")
@json_option(RetireReport)
@stream_option
@body
def retire(
    invocation: Invocation, *, before: str, with_unsettled: bool, dry_run: bool, yes: bool, as_json: bool
) -> ExitCode:
    """Remove the rows, the rejects and the archive of closed dates.

    What goes is put on record first. So `verify` says that it expired, under this rule, and does not call it missing.
    The records and the summaries of the dates stay: totals stay as they are, and no file is taken a second time. A
    manifest that comes later to such a date is compacted as ever, and goes with the next call once it is in a summary.

    Refuses a date that is not closed, and one with unfinished work.

    Exit codes: 0 done; 1 cancelled at the prompt; 3 some dates were refused.
    """
    app = App(invocation.settings())
    expirer = operating.retiring_expirer(app, person())
    with working("searching", app.state.meter):
        scan = find_retirable(app.state, before, with_unsettled=with_unsettled)
    if scan.retirable and not (dry_run or yes) and (refusal := _asked(scan)) is not None:
        return refusal
    with run_in_log(app.run_id), working("retiring", app.state.meter):
        report = retired(expirer, scan, dry_run=dry_run)
    print_result(report, _show, as_json=as_json)
    return ExitCode.NEEDS_OPERATOR if report.refused else ExitCode.DONE


def _asked(scan: RetireScan) -> ExitCode | None:
    what = _sum([each.sizes for each in scan.retirable])
    return not_confirmed("retire", f"{what} before {scan.before}", question=f"Remove {what} for good?", done="removed")


def _sum(dates: Sequence[RetiredDate]) -> str:
    files = sum(each.output_files + each.rejects_files + each.archived_manifests for each in dates)
    rows, length = sum(each.rows for each in dates), sum(each.size_bytes for each in dates)
    return f"{count(rows, 'row')} in {count(files, 'file')} ({size(length)}) of {count(len(dates), 'date')}"


def _show(report: RetireReport) -> None:
    before = f"; {report.retired_before:,} retired before" if report.retired_before else ""
    echo(f"{'Would retire' if report.dry_run else 'Retired'} {_sum(report.retired)}{before}")
    show_lines([_shown(each) for each in report.retired])
    if report.finished:
        echo(f"Finished {count(report.finished, 'deletion')} of an earlier call")
    show_lines([f"{each.date}: {each.why}" for each in report.refused], title="Refused")


def _shown(each: RetiredDate) -> str:
    files = f"{count(each.output_files, 'output file')}, {count(each.rejects_files, 'rejects file')}"
    later = f"; {count(each.in_work, 'manifest')} in work, left to the next call" if each.in_work else ""
    archived = count(each.archived_manifests, "archived manifest")
    return f"{each.date}: {count(each.rows, 'row')}, {files}, {archived}, {size(each.size_bytes)}{later}"
