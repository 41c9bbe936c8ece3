"""`compactor redrive`: reprocesses dead letters, quarantined files or rejected lines."""

from functools import partial

import click

from compactor.adapters.local.machine import person
from compactor.cli.invocation import Invocation, reporting
from compactor.cli.parameters import date_option, destination_option, manifest_option
from compactor.cli.ui.failures import ExitCode, confirm
from compactor.cli.ui.output import SHOWN, more_of, print_result, show_counted, show_lines
from compactor.cli.ui.progress import working
from compactor.cli.ui.terminal import echo
from compactor.cli.ui.words import show_steps
from compactor.core.text.formatting import by_name, count
from compactor.core.text.safe_text import Suggestions
from compactor.ledger.accounts.account import Kind
from compactor.ledger.accounts.reading import Scope
from compactor.ops.redrive.redrivable import REASONS, THINGS, find_redrivable
from compactor.ops.redrive.redriver import Redriven, RedriveReport
from compactor.wiring import operating
from compactor.wiring.app import App

ASKED_ABOVE = 1_000


@click.command("redrive")
@click.argument("kind", type=click.Choice(list(REASONS)))
@destination_option
@manifest_option(multiple=True, about="Redrive only input of this manifest; repeatable.")
@click.option("--reason", metavar="REASON", help="Redrive only input with this reason.")
@date_option
@click.option("--dry-run", is_flag=True, help="Claim and write nothing; show what would be redriven.")
@click.option("--yes", is_flag=True, help=f"Do not prompt above {ASKED_ABOVE:,} manifests, files or lines.")
@reporting(RedriveReport)
def redrive(
    invocation: Invocation,
    *,
    kind: Kind,
    manifest_ids: tuple[str, ...],
    reason: str | None,
    day: str | None,
    dry_run: bool,
    yes: bool,
    as_json: bool,
) -> ExitCode:
    """Reprocess dead letters, quarantined files or rejected lines.

    Redrives everything not yet redriven, or only the selection of --manifest, --date and --reason. Each redrive is a
    new manifest <id>-r<n>. It leaves out files and lines that already have rows.

    Exit codes: 0 done; 1 cancelled at the prompt; 3 some input was refused.
    """
    if reason is not None and reason not in REASONS[kind]:
        expected = ", ".join(sorted(REASONS[kind]))
        raise click.BadParameter(f"{reason!r} -> expected one of {expected}", param_hint="--reason")
    settings = invocation.settings()
    app = App(settings)
    with working("searching", app.state.meter):
        scan = find_redrivable(app.state, Scope(kind, manifest_ids, reason, day))
    if not (dry_run or yes) and scan.things > ASKED_ABOVE:
        things = f"{count(scan.things, THINGS[scan.kind])} of {count(len(scan.sources), 'manifest')}"
        confirm("redrive", things, question=f"Redrive {things}?", done="redriven")
    with working("redriving", app.state.meter):
        report = operating.redriver(app, person()).redrive(scan, dry_run=dry_run)
    print_result(report, partial(_show, settings.suggestions), as_json=as_json)
    return ExitCode.NEEDS_OPERATOR if report.refused else ExitCode.DONE


def _show(suggest: Suggestions, report: RedriveReport) -> None:
    would = "Would redrive" if report.dry_run else "Redrove"
    lines = sum(sum(each.counts.values()) for each in report.redriven)
    files = count(sum(each.files for each in report.redriven), "file")
    what = f"{count(lines, 'line')} in {files}" if report.kind == "rejects" else files
    echo(f"{would} {what} of {count(len(report.redriven), 'manifest')}")
    show_lines([_shown(each) for each in report.redriven])
    for manifest_id in report.healed[:SHOWN]:
        echo(f"{'Would write' if report.dry_run else 'Wrote'} the manifest of an earlier redrive: {manifest_id}")
    for line in more_of(len(report.healed)):
        echo(f"  {line}")
    show_counted("Settled", [(each.manifest_id, each.fate) for each in report.settled])
    refused = [(f"{each.manifest_id}{f'  {each.uri}' if each.uri else ''}", each.why) for each in report.refused]
    show_counted("Refused", refused)
    if not report.dry_run and (report.redriven or report.healed):
        show_steps([suggest.again_with() or f"{suggest.call('run --once')}, unless a job runs"])


def _shown(each: Redriven) -> str:
    return f"{each.source}{f' as {each.manifest_id}' if each.manifest_id else ''}  {by_name(each.counts)}"
