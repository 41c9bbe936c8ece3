"""Shows the differences between the output table and the ledger."""

from compactor.cli.ui.failures import ExitCode, say, say_next
from compactor.cli.ui.output import print_json, show_lines, show_list
from compactor.cli.ui.terminal import echo
from compactor.core.documents.table_records import HeldManifest
from compactor.core.errors import StuckError, TableHeldBack
from compactor.core.text.formatting import count
from compactor.ops.table.keeper import StuckManifest, TableReport


def show_table(report: TableReport, *, is_repaired: bool, as_json: bool) -> ExitCode:
    """Print a report with its faults; returns the exit code."""
    if as_json:
        print_json(report)
    else:
        _show(report, is_repaired=is_repaired)
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


def _show(report: TableReport, *, is_repaired: bool) -> None:
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
