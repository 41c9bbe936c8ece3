"""`compactor table`: the table of the output beside the ledger."""

from typing import TYPE_CHECKING

import click

from compactor.cli.invocation import Invocation, body, json_option, stream_option
from compactor.cli.ui.failures import ExitCode, say, say_next
from compactor.cli.ui.lists import show_lines, show_list
from compactor.cli.ui.output import print_fields, print_json, shallow
from compactor.cli.ui.terminal import echo
from compactor.cli.ui.waiting import waiting
from compactor.core.errors import TableHeldBack
from compactor.core.text.formatting import count, size
from compactor.ops.table.table_report import TableReport
from compactor.telemetry.logs import run_in_log
from compactor.wiring.job.app import App

if TYPE_CHECKING:
    from compactor.ops.table.maintainer import Maintainer

_REBUILD, _MAINTAIN = "rebuild", "maintain"
_NOT_LISTED = "none: this catalog does not let its files be listed, so it has to remove them itself"


@click.command("table")
@click.argument("action", required=False, type=click.Choice((_REBUILD, _MAINTAIN)))
@click.option("--dry-run", is_flag=True, help="maintain: Change nothing; show what would be done.")
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
    help="maintain: Keep at least the latest N snapshots; default: table.keep_snapshots.",
)
@json_option
@stream_option
@body
def table(
    invocation: Invocation,
    *,
    action: str | None,
    dry_run: bool,
    keep_days: int | None,
    keep_snapshots: int | None,
    as_json: bool,
) -> ExitCode:
    """Compare the table of the output with the ledger; rebuild a lost one; keep its metadata small.

    A file of a manifest that is done has to be in the table once, with its rows, and nothing else may be there.
    Manifests that the catalog refuses for ever are held back from it; they are named with the reason.

    `rebuild` makes the table if there is none, applies all batches on record that it lacks, in their order, and adds
    manifests that are done and in no batch, such as those from before output.table was set. What is held back is tried
    once more. It changes no file, and it may be repeated. To make a damaged table again, stop the jobs, and drop it in
    its catalog first.

    `maintain` expires snapshots, merges manifests, and removes files of metadata that nothing needs. Run it once a day.
    It removes no file with rows, and is safe beside jobs.

    Exit codes: 3 if the table has other files than the ledger, or manifests are held back from it.
    """
    if action != _MAINTAIN and (dry_run or keep_days is not None or keep_snapshots is not None):
        raise click.UsageError("--dry-run, --keep-days and --keep-snapshots go with maintain")
    app = App(invocation.settings())
    if action == _MAINTAIN:
        return _maintained(app, app.maintainer(keep_days, keep_snapshots), dry_run=dry_run, as_json=as_json)
    with run_in_log(app.run_id), waiting("reading the ledger") as show:
        keeper = app.table_keeper(lambda number: show(f"applied batch {number:,}"))
        report = keeper.rebuild() if action == _REBUILD else keeper.compare()
    if as_json:
        print_json({**shallow(report), "needs_operator": report.needs_operator})
    else:
        _show(report, is_rebuilt=action == _REBUILD)
    if report.differs:
        say(f"table {report.table}: it differs from the ledger")
        say_next("`compactor table rebuild` adds what is missing; drop a table with other faults in its catalog first")
    if report.held:
        say(f"table {report.table}: its catalog refuses {count(len(report.held), 'manifest')}")
        say_next(TableHeldBack.next_move)
    return ExitCode.NEEDS_OPERATOR if report.needs_operator else ExitCode.DONE


def _maintained(app: App, maintainer: "Maintainer", *, dry_run: bool, as_json: bool) -> ExitCode:
    with run_in_log(app.run_id), waiting("reading the table"):
        report = maintainer.maintain(dry_run=dry_run)
    if as_json:
        print_json({**shallow(report), "dry_run": dry_run})
    elif not report.exists:
        echo(f"{report.table}: there is no such table")
    else:
        expired, left = count(report.expired_snapshots, "snapshot"), f"{report.snapshots:,}"
        removed = f"{count(report.removed_files, 'file')}, {size(report.removed_bytes)}"
        merged = count(report.merged_manifests, "manifest") if report.merged_manifests else "none"
        names = ("would expire", "would merge", "would remove") if dry_run else ("expired", "merged", "removed")
        shown = (f"{expired}; {left} left", merged, removed if report.lists_files else _NOT_LISTED)
        print_fields(list(zip(names, shown, strict=True)))
        if report.keeps_all:
            echo("Its property gc.enabled is false: nothing expires and nothing is removed")
    return ExitCode.DONE


def _show(report: TableReport, *, is_rebuilt: bool) -> None:
    if is_rebuilt:
        adopted = f"; added {count(report.adopted, 'manifest')} that no batch had" if report.adopted else ""
        echo(f"Applied {count(report.applied, 'batch', 'batches')}{adopted}")
    if report.exists:
        echo(f"{report.table}: {count(report.files, 'file')} with {count(report.rows, 'row')}")
        batch = f"batch {report.last_batch:,} of {report.recorded_batch:,} on record"
        echo(f"It has {batch}; snapshot {report.snapshot_id or 'none'}")
    else:
        echo(f"{report.table}: there is no such table; {count(report.recorded_batch, 'batch', 'batches')} on record")
    for name in ("missing", "surplus", "doubled", "differing"):
        uris = getattr(report, name)
        if uris:
            echo(f"{name.capitalize()}: {len(uris):,}")
            show_lines(uris)
    held = [(f"{each.manifest_id} of {each.date}, generation {each.generation}", each.reason) for each in report.held]
    show_list(held, title=f"Held back: {len(held):,}")
