"""`compactor table merge`: merges small files in each partition into files of the target size."""

import click

from compactor.cli.invocation import Invocation, reporting
from compactor.cli.parameters import destination_argument
from compactor.cli.ui.failures import ExitCode, say, say_next
from compactor.cli.ui.output import print_fields, print_result, show_list
from compactor.cli.ui.progress import working
from compactor.cli.ui.terminal import echo
from compactor.core.layout import is_date
from compactor.core.text.formatting import count, size
from compactor.ops.table.merger import MergeReport
from compactor.telemetry.logs import run_in_log
from compactor.wiring import table_sink
from compactor.wiring.app import App


@click.command("table merge")
@destination_argument
@click.option("--dry-run", is_flag=True, help="Change nothing; show what would be done.")
@click.option("--date", "dates", multiple=True, metavar="DATE", help="Merge only files of this date; repeatable.")
@click.option(
    "--undo",
    multiple=True,
    metavar="FILE",
    help="Replace this merged file by its original files; repeatable.",
)
@reporting(MergeReport)
def merge(
    invocation: Invocation, *, dates: tuple[str, ...], undo: tuple[str, ...], dry_run: bool, as_json: bool
) -> ExitCode:
    """Merge small files in each partition into files of the target size.

    The target is output.target_file_bytes. The files of manifests stay in place; merged files are in _table/merged/ in
    the output. It is safe alongside running jobs, `table repair` and itself.

    Exit codes: 3 if some files could not be merged.
    """
    if undo and (dates or dry_run):
        raise click.UsageError("--undo excludes --date and --dry-run")
    if wrong := [each for each in dates if not is_date(each)]:
        raise click.UsageError(f"--date: {wrong[0]!r} -> expected YYYY-MM-DD")
    app = App(invocation.settings())
    with run_in_log(app.run_id), working("merging", app.state.meter):
        merger = table_sink.merger(app)
        report = merger.undo(undo) if undo else merger.merge(dates=dates or None, dry_run=dry_run)
    print_result(report, _show, as_json=as_json)
    if report.not_merged:
        say(f"table {report.table}: {count(len(report.not_merged), 'group')} of files could not be merged")
        say_next("`compactor verify` shows whether they are damaged; all others are merged")
    return ExitCode.NEEDS_OPERATOR if report.not_merged else ExitCode.DONE


def _show(report: MergeReport) -> None:
    if not report.exists:
        echo(f"{report.table}: there is no such table")
        return
    merged = f"{count(report.merged_files, 'file')}, {size(report.merged_bytes)}"
    made = f"{count(report.made_files, 'file')}, {size(report.made_bytes)}"
    removed = f"{count(report.removed_files, 'merged file')}, {size(report.removed_bytes)}"
    rates = " -> ".join(f"{100 * each.hit_rate:.1f} %" for each in (report.before, report.after))
    rows = [("would merge" if report.dry_run else "merged", merged), ("would make" if report.dry_run else "made", made)]
    if not report.dry_run:
        rows += [("taken apart", count(report.taken_apart, "file"))] if report.taken_apart else []
        rows += [("removed", removed), ("hit rate by bytes", rates)]
    print_fields(rows)
    left = [(each.where, each.why) for each in report.not_merged]
    show_list(left, title=f"Not merged: {len(left):,}")
