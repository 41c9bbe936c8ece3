"""`compactor table repair`: recreates a lost table, and adds missing manifests."""

import click

from compactor.cli.invocation import Invocation, reporting
from compactor.cli.parameters import destination_argument
from compactor.cli.table_report import show_table
from compactor.cli.ui.failures import ExitCode
from compactor.cli.ui.progress import working
from compactor.ops.table.keeper import TableReport
from compactor.telemetry.logs import run_in_log
from compactor.wiring import table_sink
from compactor.wiring.app import App


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
    return show_table(report, is_repaired=True, as_json=as_json)
