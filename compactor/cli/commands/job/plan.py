"""`compactor job plan`: writes manifests for files under a prefix."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime

import click

from compactor.cli.invocation import Invocation, reporting
from compactor.cli.parameters import date_option, destination_option, moment
from compactor.cli.plan_result import (
    PlanResult,
    landed_log,
    parsed_rate,
    plan_log,
    planned_inventory,
    show_end,
    show_log,
)
from compactor.cli.ui.compact_screen import left_out_fields, left_out_moves
from compactor.cli.ui.output import print_fields, print_json
from compactor.cli.ui.progress import working
from compactor.cli.ui.terminal import echo
from compactor.core.errors import ExitCode
from compactor.core.inputs.source_places import SourcePlace
from compactor.core.logs.names import LogName, is_log
from compactor.core.text.formatting import count, size
from compactor.core.text.safe_text import Suggestions
from compactor.settings.places import parse_place
from compactor.sources.candidates import SKIP_REASONS
from compactor.sources.folders.planning import OnReplaced
from compactor.sources.input_files import FileScope
from compactor.sources.inventory.planning import Rate
from compactor.sources.inventory.rows import INVENTORY_REASONS
from compactor.sources.landing.lander import LandingResult
from compactor.sources.plan import MAX_MANIFESTS_PER_PLAN, DatedFiles, Plan
from compactor.wiring import finding
from compactor.wiring.app import App
from compactor.wiring.settings_files import check_sources

SHOWN_MANIFESTS = 20

_REASONS = {**SKIP_REASONS, **INVENTORY_REASONS}


def _given_place(_context: click.Context, _option: click.Parameter, value: str | None) -> str | None:
    return None if value is None else _place(value)


def _place(value: str) -> str:
    try:
        return str(LogName.parse(value)) if is_log(value) else parse_place(value, any_name=True)
    except ValueError as exc:
        raise click.BadParameter(f"{value!r} -> expected {exc}") from exc


@click.command("job plan")
@click.argument("prefix", required=False, metavar="PREFIX", callback=_given_place)
@destination_option
@click.option(
    "--inventory",
    metavar="URI",
    callback=_given_place,
    help="Plan from the manifest.json of an S3 Inventory instead of a listing; PREFIX is then optional.",
)
@click.option(
    "--rate",
    metavar="RATE",
    callback=parsed_rate,
    help="With --inventory: release manifests as capacity allows alongside live data (live, the default), at most "
    "this many per hour (a number), or all at once (unlimited).",
)
@click.option("--hidden", is_flag=True, help="Include files and folders whose names begin with . or _.")
@click.option(
    "--on-replaced",
    type=click.Choice(("quarantine", "append")),
    help="What to do if a compacted local file was replaced, not just appended to. quarantine (default): leave the new "
    "version out, and report it. append: plan all its lines, and keep the earlier rows.",
)
@click.option("--dry-run", is_flag=True, help="Claim and write nothing; show what would be written.")
@date_option
@click.option(
    "--since", metavar="TIME", callback=moment, help="Plan only files written at TIME or later (ISO 8601, default UTC)."
)
@click.option(
    "--max-manifests",
    type=click.IntRange(min=1),
    metavar="N",
    help="Write at most N manifests, earliest days first (default: 10,000; no limit for --inventory with --rate live).",
)
@reporting(PlanResult)
def plan(
    invocation: Invocation,
    *,
    prefix: str | None,
    inventory: str | None,
    rate: Rate | None,
    hidden: bool,
    on_replaced: OnReplaced | None,
    dry_run: bool,
    day: str | None,
    since: datetime | None,
    max_manifests: int | None,
    as_json: bool,
) -> ExitCode:
    """Write manifests for files under PREFIX that have none.

    Use it for back-fills, and for files whose events were lost. With kafka://CLUSTER/TOPIC or kinesis://SOURCE/STREAM
    as PREFIX, it lands the records of a topic or stream. You may repeat it: no version of a file is planned twice. Of
    a local file that grew, only the new lines are planned, and of one that was renamed or touched, nothing.

    Exit codes: 1 if a partition is unreadable; 3 if a file was left out and needs an operator, the job did not keep up
    with --inventory, or records were deleted before they were landed.
    """
    if prefix is None and inventory is None:
        raise click.UsageError("expected PREFIX or --inventory")
    if rate is not None and inventory is None:
        raise click.UsageError("--rate needs --inventory; --max-manifests limits a listing.")
    app = App(invocation.settings())
    of_inventory, of_log, scope = None, None, FileScope(date=day, since=since, hidden=hidden)
    if prefix is not None and is_log(prefix):
        if inventory is not None or day is not None or since is not None or hidden or on_replaced:
            options = "--inventory, --date, --since, --hidden and --on-replaced are for files"
            raise click.UsageError(f"{options}; topics and streams are landed completely.")
        of_log = plan_log(app, LogName.parse(prefix), max_manifests, dry_run=dry_run)
        made: Plan = of_log
    elif inventory is not None:
        of_inventory = planned_inventory(
            app, inventory, prefix=prefix, scope=scope, rate=rate or Rate(),
            limit=max_manifests, dry_run=dry_run, quiet=as_json,
        )  # fmt: skip
        made = of_inventory.totals
    else:
        check_sources([SourcePlace(prefix or "")], "PREFIX")
        with working("planning", app.state.meter):
            made = finding.plan(
                app, prefix or "", scope, limit=max_manifests or MAX_MANIFESTS_PER_PLAN, dry_run=dry_run,
                on_replaced=on_replaced or "quarantine",
            )  # fmt: skip
    read = of_inventory.read if of_inventory is not None else None
    result = PlanResult(made, dry_run, read, landed_log(of_log) if of_log is not None else None)
    if as_json:
        print_json(result)
    else:
        _show(made, app.layout.manifests_folder, dry_run=dry_run)
        if result.log is not None:
            show_log(result.log, dry_run=dry_run)
        if of_inventory is not None:
            show_end(of_inventory, dry_run=dry_run)
        if made.left_out:
            _show_left_out(made, replace(app.settings.suggestions, prefix=prefix or ""))
    needs_operator = made.stalled or bool(made.left_out) or (of_log is not None and _needs_operator(of_log))
    return ExitCode.NEEDS_OPERATOR if needs_operator else ExitCode.DONE


def _needs_operator(of_log: LandingResult) -> bool:
    for trouble in of_log.troubles[:1]:
        raise trouble  # once all other work is done
    return bool(of_log.gaps)


def show_dates(dated: Sequence[DatedFiles]) -> None:
    """Print the rules that dated the planned files, and their days, as tables."""
    width = max((len(each.looks_for) for each in dated), default=0)
    for each in dated:
        days = each.first_date if each.days == 1 else f"{each.first_date} to {each.last_date}"
        found = f"{count(each.files, 'file'):>12}  {count(each.days, 'day'):>8}  {days}"
        echo(f"Dated by {each.looks_for:{width}}  {found}, such as {each.example}")


def _show(made: Plan, folder: str, *, dry_run: bool) -> None:
    verb = "Would write" if dry_run else "Wrote"
    written, files = count(len(made.manifests), "manifest"), count(made.files, "file")
    echo(f"{verb} {written} of {files} ({size(made.size_bytes)}) to {folder}")
    for each in made.manifests[:SHOWN_MANIFESTS]:
        echo(f"  {each.manifest_id or each.date}  {count(each.files, 'file'):>12}  {size(each.size_bytes):>10}")
    if len(made.manifests) > SHOWN_MANIFESTS:
        echo(f"  and {len(made.manifests) - SHOWN_MANIFESTS:,} more")
    if dry_run:
        show_dates(made.dated)
    if made.left_manifests:
        left = f"{count(made.left_manifests, 'manifest')} of {count(made.left_files, 'file')}"
        echo(f"Left for the next plan: {left}; run the command again")
    if made.misdated:
        echo(
            f"Dated by arrival: {count(made.misdated, 'file')} with a date before 2000, or over 31 days after "
            f"arrival, in the name, such as {made.first_misdated}"
        )
    if made.planned_before:
        echo(f"Already in a manifest: {count(made.planned_before, 'file')}")
    if made.grown:
        echo(f"Grown: {count(made.grown, 'file')}, of which only the new lines are planned")
    reported = {each.reason for each in made.left_out}
    for reason, number in sorted((reason, number) for reason, number in made.skipped.items() if reason not in reported):
        echo(f"Skipped: {count(number, 'object')}, {_REASONS[reason]}")
    if made.held:
        until = f"{made.held_until:%Y-%m-%d %H:%M:%S} UTC" if made.held_until else "a lease expires"
        echo(f"Claimed by another planner: {count(made.held, 'file')}; plan again after {until}")


def _show_left_out(made: Plan, suggest: Suggestions) -> None:
    """Print the files that need an operator, and what to do about them."""
    print_fields(left_out_fields(made.left_out))
    for move in left_out_moves(made.left_out, suggest):
        echo(f"next        {move}")
