"""`compactor dismiss`: puts on record that quarantined files are not expected any more."""

from dataclasses import replace

import click

from compactor.adapters.local.machine import person
from compactor.api.trace import absolute_uri, find_trace
from compactor.cli.invocation import Invocation, body, json_option, stream_option
from compactor.cli.parameters import taken_destination
from compactor.cli.ui.failures import ExitCode
from compactor.cli.ui.output import print_result, show_lines
from compactor.cli.ui.terminal import echo
from compactor.core.logs.names import is_log
from compactor.core.text.formatting import count
from compactor.ops.redrive.giving_up import InputsGivenUp, find_files, given_up
from compactor.ops.trace.tracer import SEARCHED_DAYS
from compactor.settings.settings import Settings
from compactor.wiring.app import App


@click.command("dismiss")
@click.argument("words", metavar="[DST] FILE...", nargs=-1, required=True)
@click.option("--why", required=True, metavar="TEXT", help="Say why the file is not expected any more.")
@click.option("--dry-run", is_flag=True, help="Write nothing; show what would be dismissed.")
@json_option(InputsGivenUp)
@stream_option
@body
def dismiss(invocation: Invocation, *, words: tuple[str, ...], why: str, dry_run: bool, as_json: bool) -> ExitCode:
    """Give up quarantined files: nothing asks for a person because of them any more.

    Takes the quarantined versions of each FILE, and puts on record who gave them up, when and why; status, verify,
    report and trace show it. Rows of other versions stay, and a new version of the file is taken as ever.

    Exit codes: 0 done; 3 a file was refused: it is not quarantined.
    """
    invocation, words = taken_destination(invocation, words)
    if not words:
        raise click.UsageError("expected DST and FILE, as in: compactor dismiss rows logs/notes.csv --why TEXT")
    settings = invocation.settings()
    state = App(settings).state
    found = find_files(state, [absolute_uri(each) for each in words])
    refused = tuple(replace(each, why=_why_not(settings, each.uri)) for each in found.refused)
    found = replace(found, refused=refused, why=why, dry_run=dry_run)
    if not dry_run:
        found = replace(found, inputs=given_up(state, found.inputs, "dismissed", why, by=person()))
    print_result(found, _show, as_json=as_json)
    return ExitCode.NEEDS_OPERATOR if found.refused else ExitCode.DONE


def _show(found: InputsGivenUp) -> None:
    echo(f"{'Would dismiss' if found.dry_run else 'Dismissed'} {count(len(found.inputs), 'quarantined file')}")
    show_lines([f"{each.uri}: {each.status} in manifest {each.manifest_id}" for each in found.inputs])
    show_lines([f"{each.uri}: {each.why}" for each in found.refused], title="Refused")


def _why_not(settings: Settings, uri: str) -> str:
    """Why a file cannot be dismissed, and what would be taken."""
    if is_log(uri):
        return "it is of a topic or stream; expected `compactor accept`"
    traced = find_trace(settings, uri, SEARCHED_DAYS)
    found = traced.quarantined[-1].fate if traced.quarantined else traced.meaning
    listed = settings.suggestions.marked().call("verify")
    return f"it is not quarantined: {found}; expected one of the quarantined files, which {listed} lists"
