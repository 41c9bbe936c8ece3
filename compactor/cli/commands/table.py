"""`compactor table`: the table of the output beside the ledger."""

from typing import TYPE_CHECKING

import click

from compactor.cli.invocation import Invocation, body, json_option, stream_option
from compactor.cli.ui.failures import ExitCode, say, say_next
from compactor.cli.ui.output import print_fields, print_json, show_lines, show_list
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

if TYPE_CHECKING:
    from compactor.ops.table.maintainer import Maintainer

_REBUILD, _MAINTAIN, _MERGE = "rebuild", "maintain", "merge"
_NOT_LISTED = "none: this catalog does not let its files be listed, so it has to remove them itself"


@click.command("table")
@click.argument("action", required=False, type=click.Choice((_REBUILD, _MAINTAIN, _MERGE)))
@click.option("--dry-run", is_flag=True, help="maintain, merge: Change nothing; show what would be done.")
@click.option("--date", "dates", multiple=True, metavar="DATE", help="merge: Only files of this date; may be repeated.")
@click.option(
    "--undo",
    multiple=True,
    metavar="FILE",
    help="merge: Have the files that were merged to FILE take its place again; may be repeated.",
)
@click.option(
    "--keep-days",
    type=click.IntRange(min=0),
    metavar="N",
    help="maintain: Keep a snapshot for N days after a later one took its place; default: table.keep_snapshot_days.",
)
@click.option(
    "--keep-snapshots",
    type=click.IntRange(min=1),
    metavar="N",
    help="maintain: Keep at least the latest N snapshots; default: 100.",
)
@json_option(TableReport, UpkeepReport, MergeReport)
@stream_option
@body
def table(
    invocation: Invocation,
    *,
    action: str | None,
    dry_run: bool,
    keep_days: int | None,
    keep_snapshots: int | None,
    dates: tuple[str, ...],
    undo: tuple[str, ...],
    as_json: bool,
) -> ExitCode:
    """Compare the table of the output with the ledger; rebuild a lost one; keep it fast to read.

    A file of a manifest that is done has to be in the table once, with its rows, and nothing else may be there.
    Manifests that the catalog refuses for ever are held back from it; they are named with the reason.

    `rebuild` makes the table if there is none, applies all batches on record that it lacks, in their order, and adds
    manifests that are done and in no batch, such as those from before table.name was set. What is held back is tried
    once more. It changes no file, and it may be repeated. To make a damaged table again, stop the jobs, and drop it in
    its catalog first.

    `maintain` expires snapshots, merges manifests, and removes files of metadata that nothing needs. Run it once a day.
    It is safe beside jobs. It removes no file with rows, but with table.merged_originals = "remove" those that were
    merged, once no snapshot has them.

    `merge` replaces small files of one partition by files of output.target_file_bytes. The files of manifests stay
    where they are; merged files are in _table/merged/ below the output. It is safe beside jobs, rebuilds and itself.

    Exit codes: 3 if the table has other files than the ledger, or manifests are held back from it, or stuck.
    """
    if action != _MAINTAIN and (keep_days is not None or keep_snapshots is not None):
        raise click.UsageError("--keep-days and --keep-snapshots go with maintain")
    if action not in {_MAINTAIN, _MERGE} and dry_run:
        raise click.UsageError("--dry-run goes with maintain or merge")
    if (dates or undo) and action != _MERGE:
        raise click.UsageError("--date and --undo go with merge")
    if undo and (dates or dry_run):
        raise click.UsageError("--undo goes with neither --date nor --dry-run")
    app = App(invocation.settings())
    if action == _MERGE:
        return _merged(app, dates=dates, undo=undo, dry_run=dry_run, as_json=as_json)
    if action == _MAINTAIN:
        return _maintained(app, table_sink.maintainer(app, keep_days, keep_snapshots), dry_run=dry_run, as_json=as_json)
    what = "rebuilding the table" if action == _REBUILD else "comparing the table"
    with run_in_log(app.run_id), working(what, app.state.meter):
        keeper = table_sink.table_keeper(app)
        report = keeper.rebuild() if action == _REBUILD else keeper.compare()
    if as_json:
        print_json(report)
    else:
        _show(report, is_rebuilt=action == _REBUILD)
    _say_faults(report)
    return ExitCode.NEEDS_OPERATOR if report.needs_operator else ExitCode.DONE


def _say_faults(report: TableReport) -> None:
    if report.differs:
        say(f"table {report.table}: it differs from the ledger")
        say_next("`compactor table rebuild` adds what is missing; drop a table with other faults in its catalog first")
    if report.stuck:
        say(f"table {report.table}: {count(len(report.stuck), 'manifest')} could not be added")
        say_next(StuckError.next_move)
    if report.held:
        say(f"table {report.table}: its catalog refuses {count(len(report.held), 'manifest')}")
        say_next(TableHeldBack.next_move)


def _maintained(app: App, maintainer: "Maintainer", *, dry_run: bool, as_json: bool) -> ExitCode:
    with run_in_log(app.run_id), working("reading the table", app.state.meter):
        report = maintainer.maintain(dry_run=dry_run)
    if as_json:
        print_json(report)
    elif not report.exists:
        echo(f"{report.table}: there is no such table")
    else:
        expired, left = count(report.expired_snapshots, "snapshot"), f"{report.snapshots:,}"
        removed = f"{count(report.removed_files, 'file')}, {size(report.removed_bytes)}"
        merged = count(report.merged_manifests, "manifest") if report.merged_manifests else "none"
        names = ("would expire", "would merge", "would remove") if report.dry_run else ("expired", "merged", "removed")
        shown = (f"{expired}; {left} left", merged, removed if report.lists_files else _NOT_LISTED)
        fields = list(zip(names, shown, strict=True))
        if maintainer.committer is not None:
            originals = f"{count(report.removed_originals, 'file')}, {size(report.removed_original_bytes)}"
            fields.append((f"{names[2]} originals", originals))
        print_fields(fields)
        if report.keeps_all:
            echo("Its property gc.enabled is false: nothing expires and nothing is removed")
    return ExitCode.DONE


def _merged(app: App, *, dates: tuple[str, ...], undo: tuple[str, ...], dry_run: bool, as_json: bool) -> ExitCode:
    if wrong := [each for each in dates if not is_date(each)]:
        raise click.UsageError(f"--date: {wrong[0]!r} -> expected YYYY-MM-DD")
    with run_in_log(app.run_id), working("merging", app.state.meter):
        merger = table_sink.merger(app)
        report = merger.undo(undo) if undo else merger.merge(dates=dates or None, dry_run=dry_run)
    if as_json:
        print_json(report)
    elif not report.exists:
        echo(f"{report.table}: there is no such table")
    else:
        _show_merged(report)
    if report.not_merged:
        say(f"table {report.table}: {count(len(report.not_merged), 'group')} of files could not be merged")
        say_next("`compactor verify` says whether they are damaged; all others are merged")
    return ExitCode.NEEDS_OPERATOR if report.not_merged else ExitCode.DONE


def _show_merged(report: MergeReport) -> None:
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


def _show(report: TableReport, *, is_rebuilt: bool) -> None:
    if is_rebuilt:
        adopted = f"; added {count(report.adopted, 'manifest')} that no batch had" if report.adopted else ""
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
