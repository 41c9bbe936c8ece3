"""`compactor plan`: writes manifests for the files below a prefix."""

from datetime import datetime
from typing import Any

import click

from compactor.adapters.local.skipped_links import skipped_links
from compactor.api.arguments import date_fault
from compactor.cli.destination import taken_destination
from compactor.cli.invocation import Invocation, body, json_option, stream_option
from compactor.cli.ui.output import picked, print_json
from compactor.cli.ui.terminal import echo
from compactor.cli.ui.times import moment
from compactor.core.formatting import count, size
from compactor.core.manifest import Manifest
from compactor.manifests.dating import dated_files
from compactor.manifests.planning import SKIP_REASONS, Plan
from compactor.settings.places import parse_place
from compactor.wiring.app import App

SHOWN_MANIFESTS = 20


def _date(_context: click.Context, _option: click.Parameter, value: str | None) -> str | None:
    if value is not None and (fault := date_fault(value)):
        raise click.BadParameter(fault)
    return value


def _place(value: str) -> str:
    try:
        return parse_place(value, any_name=True)
    except ValueError as exc:
        raise click.BadParameter(f"{value!r} -> expected {exc}") from exc


date_option = click.option("--date", "day", metavar="YYYY-MM-DD", callback=_date, help="Take only this day.")


@click.command("plan")
@click.argument("words", nargs=-1, required=True, metavar="[DST] PREFIX")
@click.option("--dry-run", is_flag=True, help="Claim and write nothing; show what would be written.")
@date_option
@click.option(
    "--since", metavar="TIME", callback=moment, help="Plan only files written at TIME or later (ISO 8601, default UTC)."
)
@click.option(
    "--max-manifests",
    type=click.IntRange(min=1),
    metavar="N",
    help="Write at most N manifests, the largest first (default: builder.max_manifests_per_plan).",
)
@json_option
@stream_option
@body
def plan(
    invocation: Invocation,
    *,
    words: tuple[str, ...],
    dry_run: bool,
    day: str | None,
    since: datetime | None,
    max_manifests: int | None,
    as_json: bool,
) -> None:
    """Write manifests for the files below PREFIX that are in none.

    Use it for back-fills, and for files whose events were lost. A second call writes nothing twice.
    """
    if len(words) > 1:
        invocation, words = taken_destination(invocation, words, most=1)
    prefix = _place(words[0])
    app = App(invocation.settings())
    most = max_manifests or app.settings.builder.max_manifests_per_plan
    made = app.planner.plan(prefix, date=day, since=since, max_manifests=most, dry_run=dry_run)
    made.skipped |= skipped_links(prefix, app.settings.input.allowed_prefixes)
    if as_json:
        print_json(_document(made, dry_run=dry_run))
    else:
        _show(made, app.layout.manifests_folder, dry_run=dry_run)


def _document(made: Plan, *, dry_run: bool) -> dict[str, Any]:
    # A dry run claims no id, so it has none to show.
    ids = (None if dry_run else each.manifest_id for each in made.manifests)
    manifests = [
        {"manifest_id": manifest_id, "date": each.date, "files": len(each.files), "bytes": _bytes(each)}
        for manifest_id, each in zip(ids, made.manifests, strict=True)
    ]
    planned = picked(made, "skipped", "planned_before", "held", "held_until")
    further = picked(made, "misdated", "left_manifests", "left_files")
    return {"dry_run": dry_run, "manifests": manifests, "dated": dated_files(made.manifests), **planned, **further}


def show_dates(made: Plan) -> None:
    """Print a table of the rules that dated the planned files, and of their days."""
    dated = dated_files(made.manifests)
    width = max((len(each.looks_for) for each in dated), default=0)
    for each in dated:
        days = each.first_date if each.days == 1 else f"{each.first_date} to {each.last_date}"
        found = f"{count(each.files, 'file'):>12}  {count(each.days, 'day'):>8}  {days}"
        echo(f"Dated by {each.looks_for:{width}}  {found}, such as {each.example}")


def _bytes(manifest: Manifest) -> int:
    return sum(file.size_bytes or 0 for file in manifest.files)


def _show(made: Plan, folder: str, *, dry_run: bool) -> None:
    files = count(sum(len(each.files) for each in made.manifests), "file")
    total = size(sum(map(_bytes, made.manifests)))
    verb = "Would write" if dry_run else "Wrote"
    echo(f"{verb} {count(len(made.manifests), 'manifest')} of {files} ({total}) to {folder}")
    for each in made.manifests[:SHOWN_MANIFESTS]:
        name = each.date if dry_run else each.manifest_id
        echo(f"  {name}  {count(len(each.files), 'file'):>12}  {size(_bytes(each)):>10}")
    if len(made.manifests) > SHOWN_MANIFESTS:
        echo(f"  and {len(made.manifests) - SHOWN_MANIFESTS:,} more")
    if dry_run:
        show_dates(made)
    if made.left_manifests:
        left = f"{count(made.left_manifests, 'manifest')} of {count(made.left_files, 'file')}"
        echo(f"Left for the next plan: {left}; run the command again")
    if made.misdated:
        echo(
            f"Dated by arrival: {count(made.misdated, 'file')} named after a date outside input.earliest_date and "
            f"input.max_future_days, such as {made.first_misdated}"
        )
    if made.planned_before:
        echo(f"In a manifest already: {count(made.planned_before, 'file')}")
    for reason, number in sorted(made.skipped.items()):
        echo(f"Skipped: {count(number, 'object')}, {SKIP_REASONS[reason]}")
    if made.held:
        until = f"{made.held_until:%Y-%m-%d %H:%M:%S} UTC" if made.held_until else "a lease runs out"
        echo(f"Claimed by another planner: {count(made.held, 'file')}; plan again after {until}")
