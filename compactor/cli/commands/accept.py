"""`compactor accept`: puts on record that quarantined ranges of topics and streams are gone for good."""

from dataclasses import replace

import click

from compactor.adapters.local.machine import person
from compactor.cli.invocation import Invocation, body, json_option, stream_option
from compactor.cli.parameters import date_option
from compactor.cli.ui.failures import ExitCode, not_confirmed
from compactor.cli.ui.output import print_result, show_lines
from compactor.cli.ui.terminal import echo
from compactor.core.logs.names import LogGap
from compactor.core.text.formatting import count
from compactor.ops.redrive.giving_up import InputsGivenUp, find_lost, given_up
from compactor.wiring.app import App


@click.command("accept")
@click.argument("manifest_ids", nargs=-1, metavar="[MANIFEST]...")
@click.option("--why", required=True, metavar="TEXT", help="Say why the records are not expected any more.")
@date_option
@click.option("--dry-run", is_flag=True, help="Write nothing; show what would be accepted.")
@click.option("--yes", is_flag=True, help="Do not prompt.")
@json_option(InputsGivenUp)
@stream_option
@body
def accept(
    invocation: Invocation,
    *,
    manifest_ids: tuple[str, ...],
    why: str,
    day: str | None,
    dry_run: bool,
    yes: bool,
    as_json: bool,
) -> ExitCode:
    """Accept that quarantined ranges of topics and streams are gone.

    Takes what was gone before it could be landed: of the manifests that are named, else of all. Who accepted it and why
    is on record. From then on verify and status count it as settled, and redrive leaves it alone.

    Exit codes: 0 done; 1 cancelled at the prompt; 3 some manifests were refused.
    """
    state = App(invocation.settings()).state
    found = replace(find_lost(state, manifest_ids, date=day), why=why, dry_run=dry_run)
    if found.inputs and not (dry_run or yes):
        what = _sum(found)
        refusal = not_confirmed("accept", what, question=f"Accept that {what} are gone?", done="accepted")
        if refusal is not None:
            return refusal
    if not dry_run:
        found = replace(found, inputs=given_up(state, found.inputs, "accepted", why, by=person()))
    print_result(found, _show, as_json=as_json)
    return ExitCode.NEEDS_OPERATOR if found.refused else ExitCode.DONE


def _sum(found: InputsGivenUp) -> str:
    # The sequence numbers of a stream tell no count.
    offsets = sum(LogGap.parse(each.uri).offsets for each in found.inputs)
    ranges = count(len(found.inputs), "range")
    return f"{count(offsets, 'offset')} of {ranges}" if offsets or not found.inputs else ranges


def _show(found: InputsGivenUp) -> None:
    echo(f"{'Would accept' if found.dry_run else 'Accepted'} the loss of {_sum(found)}")
    show_lines([f"{each.manifest_id}  {each.uri}: {each.detail}" for each in found.inputs])
    show_lines([f"{each.manifest_id}  {each.uri}: {each.why}" for each in found.refused], title="Refused")
