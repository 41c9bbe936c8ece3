"""`compactor dismiss`: gives up quarantined input, dead letters and lost output, which then need no attention."""

from dataclasses import replace

import click

from compactor.adapters.local.machine import person
from compactor.api.trace import absolute_uri, find_trace
from compactor.cli.invocation import Invocation, reporting
from compactor.cli.parameters import date_option, destination_option, manifest_option, refuse_destination
from compactor.cli.ui.failures import ExitCode, confirm
from compactor.cli.ui.output import print_result, show_lines
from compactor.cli.ui.terminal import echo
from compactor.core.logs.names import LogGap, is_log
from compactor.core.text.formatting import count
from compactor.core.text.safe_text import Suggestions
from compactor.ops.rebuild.damaged import RebuildScan
from compactor.ops.redrive.giving_up import Dismissal, dismissed, find_unsettled
from compactor.ops.redrive.redrivable import Refused
from compactor.ops.trace.tracer import SEARCHED_DAYS
from compactor.settings.settings import Settings
from compactor.wiring import operating
from compactor.wiring.app import App


@click.command("dismiss")
@click.argument("uris", metavar="[FILE|RANGE]...", nargs=-1)
@click.option("--why", required=True, metavar="TEXT", help="Record why the input is no longer expected.")
@destination_option
@manifest_option(multiple=True, about="Give up this manifest's open input, dead letter and lost output; repeatable.")
@date_option
@click.option("--dry-run", is_flag=True, help="Write nothing; show what would be given up.")
@click.option("--yes", is_flag=True, help="Do not prompt before giving up the selection of --manifest and --date.")
@reporting(Dismissal)
def dismiss(
    invocation: Invocation,
    *,
    uris: tuple[str, ...],
    why: str,
    manifest_ids: tuple[str, ...],
    day: str | None,
    dry_run: bool,
    yes: bool,
    as_json: bool,
) -> ExitCode:
    """Give up quarantined input, dead letters and lost output.

    Gives up each FILE, and each RANGE of a topic or stream, by its URI; without any, all quarantined input of
    --manifest or --date, after a prompt. --manifest also gives up a dead letter, and files of output or rejects that
    are gone and cannot be rebuilt. Records who gave it up, when and why: status, verify, report and trace show it, and
    redrive skips it. Rows of other file versions stay, and a new version is compacted as usual.

    Exit codes: 1 cancelled at the prompt; 3 something was refused, because it is not open or can be rebuilt.
    """
    if not (uris or manifest_ids or day):
        raise click.UsageError("expected FILE, RANGE, --manifest or --date")
    for each in uris:
        refuse_destination(invocation, each, "a quarantined file or range")
    settings = invocation.settings()
    app = App(settings)
    found = find_unsettled(app.state, [absolute_uri(each) for each in uris], manifest_ids, date=day)
    if manifest_ids and not uris:
        scan = operating.rebuild_scanner(app).scan(manifest_ids)
        found = _without_rebuildable(found, scan, settings.suggestions.marked())
    refused = tuple(_explained(settings, each) for each in found.refused)
    found = replace(found, refused=refused, why=why, dry_run=dry_run)
    if not (found.is_empty or uris or dry_run or yes):
        what = _sum(found)
        confirm("dismiss", what, question=f"Give up {what}?", done="given up")
    if not dry_run:
        found = dismissed(app.state, found, why, by=person())
    print_result(found, _show, as_json=as_json)
    return ExitCode.NEEDS_OPERATOR if found.refused else ExitCode.DONE


def _without_rebuildable(found: Dismissal, scan: RebuildScan, suggest: Suggestions) -> Dismissal:
    """Refuse lost files that can be regenerated."""
    why = {each.commit.manifest_id: each.why for each in scan.damaged}
    lost = tuple(each for each in found.lost_files if each.manifest_id not in why)
    refused = (
        Refused(each, "", f"{fault}; expected {suggest.call('rebuild', '--manifest', each)}")
        for each, fault in why.items()
    )
    others = (each for each in found.refused if each.manifest_id not in why)
    return replace(found, lost_files=lost, refused=(*refused, *others))


def _sum(found: Dismissal) -> str:
    gaps = [LogGap.parse(each.uri) for each in found.inputs if is_log(each.uri)]
    files = count(len(found.inputs) - len(gaps), "quarantined file")
    # The sequence numbers of a stream give no count.
    offsets = sum(each.offsets for each in gaps)
    ranges = f"{count(offsets, 'offset')} of {count(len(gaps), 'range')}" if offsets else count(len(gaps), "range")
    lost = count(len(found.lost_files), "lost file")
    parts = {
        "nothing": found.is_empty,
        files: len(found.inputs) > len(gaps),
        ranges: gaps,
        count(len(found.dead_letters), "dead letter"): found.dead_letters,
        f"{lost} with {count(sum(each.rows for each in found.lost_files), 'line')}": found.lost_files,
    }
    return " and ".join(what for what, is_some in parts.items() if is_some)


def _show(found: Dismissal) -> None:
    echo(f"{'Would give up' if found.dry_run else 'Gave up'} {_sum(found)}")
    words = [f"{each.uri}: {each.status} in manifest {each.manifest_id}" for each in found.inputs]
    show_lines(
        [
            *(
                f"{word}; {each.detail}" if is_log(each.uri) else word
                for word, each in zip(words, found.inputs, strict=True)
            ),
            *(f"manifest {each.manifest_id}: {each.reason}" for each in found.dead_letters),
            *(f"{each.uri}: {count(each.rows, 'line')} of manifest {each.manifest_id}" for each in found.lost_files),
        ]
    )
    show_lines([f"{each.uri or each.manifest_id}: {each.why}" for each in found.refused], title="Refused")


def _explained(settings: Settings, refused: Refused) -> Refused:
    """The reason why a file or range cannot be given up, and what is expected."""
    if not refused.uri:
        return refused
    traced = find_trace(settings, refused.uri, SEARCHED_DAYS)
    found = traced.quarantined[-1].fate if traced.quarantined else traced.meaning
    listed = settings.suggestions.marked().call("verify")
    return replace(refused, why=f"not quarantined: {found}; expected quarantined input, which {listed} lists")
