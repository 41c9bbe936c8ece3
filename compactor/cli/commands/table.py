"""`compactor table`: checks, repairs, merges and maintains the output table."""

from functools import partial

import click

from compactor.cli.invocation import Invocation, reporting
from compactor.cli.parameters import destination_argument
from compactor.cli.ui.failures import ExitCode, say, say_next
from compactor.cli.ui.output import print_fields, print_result, show_lines, show_list
from compactor.cli.ui.progress import working
from compactor.cli.ui.terminal import echo
from compactor.core.documents.table_records import HeldManifest
from compactor.core.errors import StuckError, TableHeldBack
from compactor.core.layout import is_date
from compactor.core.text.formatting import count, size
from compactor.ops.table.keeper import StuckManifest, TableReport
from compactor.ops.table.maintainer import UpkeepReport
from compactor.ops.table.merger import MergeReport
from compactor.telemetry.logs import run_in_log
from compactor.wiring import table_sink
from compactor.wiring.app import App


@click.command("table check")
@destination_argument
@reporting(TableReport)
def check(invocation: Invocation, *, as_json: bool) -> ExitCode:
    """Compare the output table with the ledger.

    The table must list each file of a finished manifest once, with its rows, and nothing else. Manifests that the
    catalog permanently refuses are held back; they are listed with the reason.

    Exit codes: 3 if the table differs from the ledger, or manifests are held back or stuck.
    """
    app = App(invocation.settings())
    with run_in_log(app.run_id), working("comparing the table", app.state.meter):
        report = table_sink.table_keeper(app).compare()
    return _shown(report, is_repaired=False, as_json=as_json)


@click.command("table repair")
@destination_argument
@reporting(TableReport)
def repair(invocation: Invocation, *, as_json: bool) -> ExitCode:
    """Recreate a lost table, and add missing manifests.

    Creates the table if there is none, applies all missing recorded batches in order, and adds finished manifests that
    are in no batch, such as those from before table.name was set. Retries manifests that are held back. Changes no
    file; you may repeat it. To recreate a damaged table, stop the jobs, and drop it in its catalog first.

    Exit codes: 3 if the table still differs from the ledger, or manifests are held back or stuck.
    """
    app = App(invocation.settings())
    with run_in_log(app.run_id), working("repairing the table", app.state.meter):
        report = table_sink.table_keeper(app).repair()
    return _shown(report, is_repaired=True, as_json=as_json)


def _shown(report: TableReport, *, is_repaired: bool, as_json: bool) -> ExitCode:
    """Print a report with its faults; returns the exit code."""
    print_result(report, partial(_show_table, is_repaired=is_repaired), as_json=as_json)
    _say_faults(report)
    return ExitCode.NEEDS_OPERATOR if report.needs_operator else ExitCode.DONE


def _say_faults(report: TableReport) -> None:
    if report.differs:
        say(f"table {report.table}: it differs from the ledger")
        say_next("`compactor table repair` adds missing files; drop a table with other faults in its catalog first")
    if report.stuck:
        say(f"table {report.table}: {count(len(report.stuck), 'manifest')} could not be added")
        say_next(StuckError.next_move)
    if report.held:
        say(f"table {report.table}: its catalog refuses {count(len(report.held), 'manifest')}")
        say_next(TableHeldBack.next_move)


def _show_table(report: TableReport, *, is_repaired: bool) -> None:
    if is_repaired:
        adopted = f"; added {count(report.adopted, 'manifest')} missing from all batches" if report.adopted else ""
        echo(f"Applied {count(report.applied, 'batch', 'batches')}{adopted}")
    if report.exists:
        merged = f", {report.merged:,} of them merged" if report.merged else ""
        echo(f"{report.table}: {count(report.files, 'file')} with {count(report.rows, 'row')}{merged}")
        batch = f"batch {report.last_batch:,} of {report.recorded_batch:,} on record"
        echo(f"It has {batch}; snapshot {report.snapshot_id or 'none'}")
    else:
        echo(f"{report.table}: there is no such table; {count(report.recorded_batch, 'batch', 'batches')} on record")
    for name in ("missing", "surplus", "doubled", "differing"):
        show_lines(getattr(report, name), title=name.capitalize())
    held = [(_named(each), each.reason) for each in report.held]
    show_list(held, title=f"Held back: {len(held):,}")
    stuck = [(_named(each), each.why) for each in report.stuck]
    show_list(stuck, title=f"Stuck: {len(stuck):,}")


def _named(manifest: HeldManifest | StuckManifest) -> str:
    return f"{manifest.manifest_id} of {manifest.date}, generation {manifest.generation}"


_NOT_LISTED = "none: the files of this catalog cannot be listed, so the catalog must remove them"


@click.command("table maintain")
@destination_argument
@click.option("--dry-run", is_flag=True, help="Change nothing; show what would be done.")
@click.option(
    "--keep-days",
    type=click.IntRange(min=0),
    metavar="N",
    help="Keep a snapshot for N days after the next one; default: table.keep_snapshot_days.",
)
@click.option(
    "--keep-snapshots",
    type=click.IntRange(min=1),
    metavar="N",
    help="Keep at least the latest N snapshots; default: 100.",
)
@reporting(UpkeepReport)
def maintain(
    invocation: Invocation, *, dry_run: bool, keep_days: int | None, keep_snapshots: int | None, as_json: bool
) -> None:
    """Expire snapshots, and remove unneeded metadata.

    Expires snapshots, merges the table's manifests, and removes unneeded metadata files. Run it once a day. It is safe
    alongside running jobs. It removes no file with rows, with one exception: if table.merged_originals = "remove", it
    removes merged files that no snapshot references.
    """
    app = App(invocation.settings())
    maintainer = table_sink.maintainer(app, keep_days, keep_snapshots)
    with run_in_log(app.run_id), working("reading the table", app.state.meter):
        report = maintainer.maintain(dry_run=dry_run)
    has_originals = maintainer.committer is not None
    print_result(report, lambda found: _show_upkeep(found, has_originals=has_originals), as_json=as_json)


def _show_upkeep(report: UpkeepReport, *, has_originals: bool) -> None:
    if not report.exists:
        echo(f"{report.table}: there is no such table")
        return
    expired, left = count(report.expired_snapshots, "snapshot"), f"{report.snapshots:,}"
    removed = f"{count(report.removed_files, 'file')}, {size(report.removed_bytes)}"
    merged = count(report.merged_manifests, "manifest") if report.merged_manifests else "none"
    names = ("would expire", "would merge", "would remove") if report.dry_run else ("expired", "merged", "removed")
    shown = (f"{expired}; {left} left", merged, removed if report.lists_files else _NOT_LISTED)
    fields = list(zip(names, shown, strict=True))
    if has_originals:
        originals = f"{count(report.removed_originals, 'file')}, {size(report.removed_original_bytes)}"
        fields.append((f"{names[2]} originals", originals))
    print_fields(fields)
    if report.keeps_all:
        echo("Its property gc.enabled is false: nothing expires and nothing is removed")


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
    print_result(report, _show_merge, as_json=as_json)
    if report.not_merged:
        say(f"table {report.table}: {count(len(report.not_merged), 'group')} of files could not be merged")
        say_next("`compactor verify` shows whether they are damaged; all others are merged")
    return ExitCode.NEEDS_OPERATOR if report.not_merged else ExitCode.DONE


def _show_merge(report: MergeReport) -> None:
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
