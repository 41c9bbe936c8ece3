"""`compactor table check`: compares the output table with the ledger."""

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
    return show_table(report, is_repaired=False, as_json=as_json)
