"""`compactor data clean`: deletes expired archives, rejects, staging and checkpoints."""

from collections import Counter
from dataclasses import replace

import click

from compactor.adapters.local.machine import person
from compactor.cli.invocation import Invocation, reporting
from compactor.cli.parameters import destination_argument
from compactor.cli.ui.console import SafeConsole
from compactor.cli.ui.output import print_fields, print_json
from compactor.cli.ui.terminal import echo
from compactor.core.text.formatting import by_name, count, size
from compactor.core.text.safe_text import quoted
from compactor.upkeep.cleaner import CleaningReport, Kind
from compactor.wiring import operating
from compactor.wiring.app import App

SHOWN_KEPT = 20
NAMES = {
    Kind.ARCHIVED: "archived manifests",
    Kind.REDRIVEN: "redriven inputs",
    Kind.REJECTS: "rejects files",
    Kind.STAGED: "staged files",
    Kind.ORPHANED: "orphaned output files",
    Kind.CHECKPOINT: "checkpoint files",
}


@click.command("data clean")
@destination_argument
@click.option("--dry-run", is_flag=True, help="Delete nothing; show what would be deleted.")
@click.option(
    "--archive-days",
    type=click.IntRange(min=0),
    metavar="N",
    help="Delete archived manifests older than N days; default: retention.archive_days.",
)
@click.option("--checkpoints", is_flag=True, help="Delete the checkpoints of all stopped runs, of any age.")
@click.option("--force", is_flag=True, help="With --checkpoints: also delete those written a moment ago.")
@reporting(CleaningReport)
def clean(
    invocation: Invocation, *, dry_run: bool, archive_days: int | None, checkpoints: bool, force: bool, as_json: bool
) -> None:
    """Delete expired archives, rejects, orphans and checkpoints.

    Archived manifests, redriven lines and landed records expire after retention.archive_days, rejects after
    retention.rejects_days, orphaned staging after a day, and checkpoints of dead runs after 15 days. Files of
    unfinished manifests are kept and listed. Each removal is recorded first, so `verify` does not report the files as
    missing.

    With a table, uncommitted files that attempts wrote in place are deleted after a day.

    A job does the same once a day, with orphaned output files of the last 8 days.
    """
    if force and not checkpoints:
        raise click.UsageError("--force needs --checkpoints")
    app = App(invocation.settings())
    days = app.settings.retention.archive_days if archive_days is None else archive_days
    rule = "" if archive_days is None else f"`compactor data clean --archive-days {quoted(str(archive_days))}`"
    report = _cleaned(app, days, rule, checkpoints=checkpoints, force=force, dry_run=dry_run)
    if as_json:
        print_json(replace(report, removed=Counter({kind: report.removed[kind] for kind in Kind})))  # every kind
    else:
        _show(report)


def _cleaned(
    app: App, archive_days: int, archive_rule: str, *, checkpoints: bool, force: bool, dry_run: bool
) -> CleaningReport:
    if checkpoints:
        operating.cleaner(app).check_checkpoints(force=force)
    with SafeConsole(stderr=True).status("cleaning") as progress:

        def show(report: CleaningReport) -> bool:
            progress.update(f"cleaning: {count(sum(report.removed.values()), 'object')}")
            return True

        return operating.cleaner(app, person()).clean(
            archive_days=archive_days,
            archive_rule=archive_rule,
            rejects_days=app.settings.retention.rejects_days,
            all_checkpoints=checkpoints,
            all_orphans=True,
            dry_run=dry_run,
            on_chunk=show,
        )


def _show(report: CleaningReport) -> None:
    found = [(NAMES[kind], f"{report.removed[kind]:,}") for kind in Kind]
    total = f"{count(sum(report.removed.values()), 'object')}, {size(report.removed_bytes)}"
    kept = f"{sum(report.kept.values()):,}" + (f": {by_name(report.kept)}" if report.kept else "")
    print_fields([*found, ("would delete" if report.dry_run else "deleted", total), ("kept", kept)])
    for each in report.kept_named[:SHOWN_KEPT]:
        echo("", f"  {each.where}", f"    {each.reason}")
    if sum(report.kept.values()) > SHOWN_KEPT:
        echo("", f"  and {sum(report.kept.values()) - SHOWN_KEPT:,} more")
