"""`compactor data erase`: erases the lines that contain given values of a key."""

import click

from compactor.adapters.local.machine import person
from compactor.cli.invocation import Invocation, reporting
from compactor.cli.parameters import destination_argument
from compactor.cli.ui.failures import ExitCode, confirm, say, say_next
from compactor.cli.ui.output import print_json, show_counted, show_list
from compactor.cli.ui.progress import working
from compactor.cli.ui.terminal import echo
from compactor.cli.ui.words import discrepancy_entries
from compactor.core.documents.changes import Inputs
from compactor.core.errors import TryAgainError
from compactor.core.layout import is_s3
from compactor.core.text.formatting import count, did_you_mean
from compactor.core.text.safe_text import quoted
from compactor.ops.erase.eraser import EraseReport
from compactor.ops.erase.scan import EraseScan
from compactor.ops.erase.wanted import path_of
from compactor.ops.rebuild.damaged import NotChanged
from compactor.telemetry.logs import run_in_log
from compactor.wiring.app import App
from compactor.wiring.rebuilding import eraser

MAX_VALUES = 1_000_000
"""This many values fit into memory with room to spare."""


def _values(place: str) -> frozenset[str]:
    """The values in a file, or on stdin for `-`. Messages never quote a value."""
    try:
        with click.open_file(place, "rb") as file:
            lines = file.read().decode("utf-8-sig").split("\n")
    except OSError as exc:
        raise click.BadParameter(f"--value-file {place}: {exc.strerror}") from exc
    except UnicodeDecodeError as exc:
        raise click.BadParameter(f"--value-file {place}: expected UTF-8 text, one value per line") from exc
    values = frozenset(filter(None, (line.removesuffix("\r") for line in lines)))
    if not 0 < len(values) <= MAX_VALUES:
        expected = f"expected 1 to {MAX_VALUES:,}, one per line"
        raise click.BadParameter(f"--value-file {place}: {len(values):,} values -> {expected}")
    return values


def _key(_context: click.Context, _option: click.Parameter, value: str) -> str:
    if not value:
        raise click.BadParameter("expected a key, or a JSON Pointer such as /user/id")
    return value


@click.command("data erase")
@destination_argument
@click.option(
    "--key", required=True, callback=_key, help="JSON key; for a nested key, its JSON Pointer, such as /user/id."
)
@click.option(
    "--value-file",
    required=True,
    metavar="FILE",
    help="Read the values from FILE, one per line in UTF-8; - for stdin.",
)
@click.option(
    "--inputs",
    type=click.Choice(["keep", "delete"]),
    default="keep",
    show_default=True,
    help="Delete input files that contain a value, or only list them.",
)
@click.option("--by", metavar="NAME", help="Record who asked; default: the user and the machine.")
@click.option("--dry-run", is_flag=True, help="Erase nothing; show what would be erased.")
@click.option("--yes", is_flag=True, help="Do not prompt.")
@reporting(EraseReport)
def erase(
    invocation: Invocation,
    *,
    key: str,
    value_file: str,
    inputs: Inputs,
    by: str | None,
    dry_run: bool,
    yes: bool,
    as_json: bool,
) -> ExitCode:
    """Erase the lines that contain given values of a key, on request.

    Removes these lines from the rows and rejects of all dates and from the table, and deletes files of redriven lines
    that contain one. Values match in any notation: escaped, compressed, as a number, in an array, in rescued data. A
    line that is not a JSON object is erased if it contains a value as a word. Input files stay unless you give --inputs
    delete: then the complete file is deleted, once its other lines are rows. The command records who asked, when, and
    what was erased, but not the values.

    If the call is interrupted, repeat it. From then on, `verify` counts the lines as erased, and `rebuild` refuses
    their manifests.

    Exit codes: 0 nothing is left; 1 an error, or cancelled at the prompt; 3 some data is left, and listed.
    """
    app = App(invocation.settings())
    work = eraser(app, key=key, values=_values(value_file), inputs=inputs, by=by or person())
    with working("searching", app.state.meter):
        scan = work.scanner.scan()
    if not (dry_run or yes):
        _confirm(scan, inputs)
    with run_in_log(app.run_id), working("searching input" if dry_run else "erasing", app.state.meter):
        report = work.erase(scan, dry_run=dry_run)
    if as_json:
        print_json(report)
    else:
        _show(report)
        _warn(app, key, report)
    if report.failed:
        return ExitCode.FAILED
    return ExitCode.NEEDS_OPERATOR if report.left or report.discrepancies else ExitCode.DONE


def _confirm(scan: EraseScan, inputs: Inputs) -> None:
    rows, lines = sum(each.rows for each in scan.held), sum(each.rejected_lines for each in scan.held)
    what = f"{count(rows, 'row')} and {count(lines, 'rejected line')} of {count(len(scan.held), 'manifest')}"
    also = ", and delete input files that contain a value," if inputs == "delete" else ""
    confirm("data erase", what, question=f"Erase {what}{also} for good?", done="erased")


_DONE = ("Erased", "Deleted", "Kept")


def _show(report: EraseReport) -> None:
    rows, lines = (
        sum(each.rows for each in report.erased),
        sum(each.rejected_lines for each in report.erased),
    )
    would, deleted, keep = ("Would erase", "Would delete", "Would keep") if report.dry_run else _DONE
    found = count(len(report.erased), "manifest")
    echo(f"{would} {count(rows, 'row')} and {count(lines, 'rejected line')} of {found}; {report.searched:,} searched")
    show_list(
        [
            (f"{each.manifest_id}: {count(each.rows, 'row')}, {count(each.rejected_lines, 'rejected line')}",)
            for each in report.erased
        ]
    )
    gone, held = ([each for each in report.inputs if each.deleted is is_gone] for is_gone in (True, False))
    if gone:
        echo(f"{deleted} {count(len(gone), 'input file')}")
        show_list([(each.uri,) for each in gone])
    if held:
        echo(f"{keep} {count(len(held), 'input file')}, with a value in each")
        show_list([(each.uri, each.why) for each in held])
    show_counted("Not searched or erased", [_line(each) for each in report.refused])
    show_counted("Failed", [_line(each) for each in report.failed])
    show_counted("Discrepancies", discrepancy_entries(report.discrepancies))
    if report.erasure:
        echo(f"On record as {report.erasure}")
    if report.failed:
        say_next(TryAgainError.next_move)


def _line(each: NotChanged) -> tuple[str, ...]:
    return (each.manifest_id, each.why) if each.manifest_id else (each.why,)


def _warn(app: App, key: str, report: EraseReport) -> None:
    """Warn about a key that no row has, and about copies that this command cannot erase."""
    name, columns = path_of(key)[0], app.registry.latest().keys
    if name not in columns and not any(each.rows for each in report.erased):
        say(f"no column has the key {quoted(name)}{did_you_mean(name, columns)}")
    if is_s3(app.layout.state) or is_s3(app.layout.output):
        say("buckets with versioning keep erased data in earlier versions until a lifecycle rule deletes them")
