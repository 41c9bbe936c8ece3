"""`compactor table maintain`: expires snapshots, and removes unneeded metadata."""

import click

from compactor.cli.invocation import Invocation, reporting
from compactor.cli.parameters import destination_argument
from compactor.cli.ui.output import print_fields, print_result
from compactor.cli.ui.progress import working
from compactor.cli.ui.terminal import echo
from compactor.core.text.formatting import count, size
from compactor.ops.table.maintainer import UpkeepReport
from compactor.telemetry.logs import run_in_log
from compactor.wiring import table_sink
from compactor.wiring.app import App

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
    print_result(report, lambda found: _show(found, has_originals=has_originals), as_json=as_json)


def _show(report: UpkeepReport, *, has_originals: bool) -> None:
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
