"""`compactor table`: the table of the output beside the ledger."""

import click

from compactor.cli.invocation import Invocation, body, json_option, stream_option
from compactor.cli.ui.failures import ExitCode, say, say_next
from compactor.cli.ui.lists import show_lines, show_list
from compactor.cli.ui.output import print_json, shallow
from compactor.cli.ui.terminal import echo
from compactor.cli.ui.waiting import waiting
from compactor.core.errors import TableHeldBack
from compactor.core.text.formatting import count
from compactor.ops.table.table_report import TableReport
from compactor.telemetry.logs import run_in_log
from compactor.wiring.job.app import App


@click.command("table")
@click.argument("action", required=False, type=click.Choice(("rebuild",)))
@json_option
@stream_option
@body
def table(invocation: Invocation, *, action: str | None, as_json: bool) -> ExitCode:
    """Compare the table of the output with the ledger; rebuild a lost one.

    A file of a manifest that is done has to be in the table once, with its rows, and nothing else may be there.
    Manifests that the catalog refuses for ever are held back from it; they are named with the reason.

    `rebuild` makes the table if there is none, applies all batches on record that it lacks, in their order, and adds
    manifests that are done and in no batch, such as those from before output.table was set. What is held back is tried
    once more. It changes no file, and it may be repeated. To make a damaged table again, drop it in its catalog first.

    Exit codes: 3 if the table has other files than the ledger, or manifests are held back from it.
    """
    app = App(invocation.settings())
    with run_in_log(app.run_id), waiting("reading the ledger") as show:
        keeper = app.table_keeper(lambda number: show(f"applied batch {number:,}"))
        report = keeper.rebuild() if action == "rebuild" else keeper.compare()
    if as_json:
        print_json({**shallow(report), "needs_operator": report.needs_operator})
    else:
        _show(report, is_rebuilt=action == "rebuild")
    if report.differs:
        say(f"table {report.table}: it differs from the ledger")
        say_next("`compactor table rebuild` adds what is missing; drop a table with other faults in its catalog first")
    if report.held:
        say(f"table {report.table}: its catalog refuses {count(len(report.held), 'manifest')}")
        say_next(TableHeldBack.next_move)
    return ExitCode.NEEDS_OPERATOR if report.needs_operator else ExitCode.DONE


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
