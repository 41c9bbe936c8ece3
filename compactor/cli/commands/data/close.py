"""`compactor data close`: summarises finished dates, so that their records need not be read again."""

import click

from compactor.cli.invocation import Invocation, reporting
from compactor.cli.parameters import destination_argument
from compactor.cli.ui.failures import ExitCode
from compactor.cli.ui.output import print_result, show_lines
from compactor.cli.ui.progress import working
from compactor.cli.ui.terminal import echo
from compactor.core.text.formatting import count
from compactor.ops.closing.closer import ClosingReport, Summarised
from compactor.telemetry.logs import run_in_log
from compactor.wiring import operating
from compactor.wiring.app import App


@click.command("data close")
@destination_argument
@reporting(ClosingReport)
def close(invocation: Invocation, *, as_json: bool) -> ExitCode:
    """Verify quiet dates, and write a summary of each.

    A date is closed once it has had no new record for retention.close_after_days, no manifest is in progress, and all
    are verified. From then on, `verify` reads its summary instead of its records. Later and rebuilt manifests go into
    an additional summary. Summaries never change.

    The first call reads the whole ledger.

    Exit codes: 3 if counts do not add up; that date stays open.
    """
    app = App(invocation.settings())
    with run_in_log(app.run_id), working("closing dates", app.state.meter):
        report = operating.closer(app).close()
    print_result(report, _show, as_json=as_json)
    return ExitCode.NEEDS_OPERATOR if report.needs_operator else ExitCode.DONE


def _show(report: ClosingReport) -> None:
    closed = [each for each in report.summarised if each.number == 1]
    additions = [each for each in report.summarised if each.number > 1]
    echo(f"Closed {count(len(closed), 'date')}" + (f"; {count(len(additions), 'addition')}" if additions else ""))
    show_lines([_shown(each) for each in report.summarised])
    show_lines([f"{each.date}: {each.why}" for each in report.left_open], title="Left open")
    found = [f"{each.where}: expected {each.expected}, found {each.found}" for each in report.discrepancies]
    show_lines(found, title="Discrepancies")


def _shown(each: Summarised) -> str:
    addition = f", addition {each.number - 1}" if each.number > 1 else ""
    return f"{each.date}{addition}: {count(each.manifests, 'manifest')}, {count(each.files, 'file')}"
