"""`compactor data expire`: removes the data of closed dates, and records that it expired."""

from collections.abc import Sequence

import click

from compactor.adapters.local.machine import person
from compactor.cli.invocation import Invocation, reporting
from compactor.cli.parameters import calendar_day, destination_argument
from compactor.cli.ui.failures import ExitCode, confirm
from compactor.cli.ui.output import print_result, show_lines
from compactor.cli.ui.progress import working
from compactor.cli.ui.terminal import echo
from compactor.core.text.formatting import count, size
from compactor.ops.expire import ExpiredDate, ExpireReport, expire_dates, find_expirable
from compactor.telemetry.logs import run_in_log
from compactor.wiring import operating
from compactor.wiring.app import App


@click.command("data expire")
@destination_argument
@click.option(
    "--before", required=True, callback=calendar_day, metavar="DATE", help="Expire dates before DATE, yyyy-mm-dd."
)
@click.option(
    "--with-unsettled",
    is_flag=True,
    help="Also expire dates with unsettled dead letters and quarantined files; their records stay.",
)
@click.option("--dry-run", is_flag=True, help="Remove nothing; show what would be removed.")
@click.option("--yes", is_flag=True, help="Do not prompt.")
@reporting(ExpireReport)
def expire(
    invocation: Invocation, *, before: str, with_unsettled: bool, dry_run: bool, yes: bool, as_json: bool
) -> ExitCode:
    """Remove the rows, rejects and archive of closed dates.

    Each removal is recorded first, so `verify` reports the data as expired under this rule, not as missing. The records
    and summaries of the dates stay: totals do not change, and no file is compacted twice. A manifest that arrives later
    for such a date is compacted as usual; the next call removes it once it is in a summary.

    Refuses dates that are not closed or have unfinished manifests.

    Exit codes: 0 done; 1 cancelled at the prompt; 3 some dates were refused.
    """
    app = App(invocation.settings())
    expirer = operating.date_expirer(app, person())
    with working("searching", app.state.meter):
        report = find_expirable(app.state, before, with_unsettled=with_unsettled)
    if report.expired and not (dry_run or yes):
        what = _sum(report.expired)
        confirm("data expire", f"{what} before {before}", question=f"Remove {what} for good?", done="removed")
    if not dry_run:
        with run_in_log(app.run_id), working("removing", app.state.meter):
            report = expire_dates(expirer, report)
    print_result(report, _show, as_json=as_json)
    return ExitCode.NEEDS_OPERATOR if report.refused else ExitCode.DONE


def _sum(dates: Sequence[ExpiredDate]) -> str:
    files = sum(each.output_files + each.rejects_files + each.archived_manifests for each in dates)
    rows, length = sum(each.rows for each in dates), sum(each.size_bytes for each in dates)
    return f"{count(rows, 'row')} in {count(files, 'file')} ({size(length)}) of {count(len(dates), 'date')}"


def _show(report: ExpireReport) -> None:
    before = f"; {report.expired_before:,} expired before" if report.expired_before else ""
    echo(f"{'Would remove' if report.dry_run else 'Removed'} {_sum(report.expired)}{before}")
    show_lines([_shown(each) for each in report.expired])
    if report.finished:
        echo(f"Finished {count(report.finished, 'deletion')} of an earlier call")
    show_lines([f"{each.date}: {each.why}" for each in report.refused], title="Refused")


def _shown(each: ExpiredDate) -> str:
    files = f"{count(each.output_files, 'output file')}, {count(each.rejects_files, 'rejects file')}"
    later = f"; {count(each.in_work, 'manifest')} in progress, left to the next call" if each.in_work else ""
    archived = count(each.archived_manifests, "archived manifest")
    return f"{each.date}: {count(each.rows, 'row')}, {files}, {archived}, {size(each.size_bytes)}{later}"
