"""The result of `compactor plan`: from a listing, an S3 Inventory, or a topic or stream."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import partial

import click

from compactor.cli.ui.progress import working
from compactor.cli.ui.terminal import echo
from compactor.core.logs.names import LogGap, LogName
from compactor.core.ports import FLUSH_SECONDS
from compactor.core.results import as_document
from compactor.core.text.formatting import count, duration
from compactor.cost.planning_cost import PlanningCost, cost_of_plan
from compactor.sources.input_files import FileScope
from compactor.sources.inventory.planning import Rate, prefixes_to_plan
from compactor.sources.inventory.reading import InventoryReader
from compactor.sources.inventory.rows import files_in_scope
from compactor.sources.landing.lander import LandingResult
from compactor.sources.plan import MAX_MANIFESTS_PER_PLAN, Plan
from compactor.telemetry.error_text import described
from compactor.wiring import finding, streaming
from compactor.wiring.app import App

LIVE, UNLIMITED = "live", "unlimited"


@dataclass(frozen=True, slots=True)
class ReadInventory:
    """The S3 Inventory used for planning."""

    uri: str  # its manifest.json
    bucket: str  # the listed bucket
    created_at: datetime  # time at which S3 started the listing
    data_files: int  # number of its data files
    dollars: float  # cost of claims and requests for planning, at list prices


@dataclass(frozen=True, slots=True)
class LandedLog:
    """What an operator needs to know about a topic or stream that was landed."""

    lines: int  # lines that were landed, or would be
    tombstones: int  # records without a value; they have no line
    gaps: Sequence[str]  # where retention deleted records, or may have; each is reported once
    strays: int  # skipped packed records of other shards
    closed: int  # number of shards that ended
    waiting: int  # number of shards whose parents are not completely landed
    has_more: bool  # whether more is left for the next plan
    # For how long the oldest record that is not landed may have waited; null if nothing was read
    behind_seconds: float | None
    troubles: Sequence[str]  # why the plan did not land more; empty if there is no reason
    former_ids: Sequence[str]  # ids of deleted logs with the same name that were landed


@as_document(
    inlines={
        "totals": (
            *("manifests", "dated", "planned_before", "skipped", "misdated"),
            *(
                "left_manifests",
                "left_files",
                "left_out",
                "touched",
                "renamed",
                "grown",
                "held",
                "held_until",
                "stalled",
            ),
        )
    }
)
@dataclass(frozen=True, slots=True)
class PlanResult:
    """The result of planning. With `--dry-run` nothing is claimed or written."""

    totals: Plan
    dry_run: bool  # whether nothing was claimed or written
    inventory: ReadInventory | None = None  # the inventory; null for a listing
    log: LandedLog | None = None  # details of a topic or stream; null for files


def landed_log(made: LandingResult) -> LandedLog:
    """The result of landing a topic or stream."""
    return LandedLog(
        made.lines,
        made.tombstones,
        [str(each) for each in made.gaps],
        made.strays,
        made.closed,
        made.waiting,
        made.has_more,
        made.behind_seconds,
        [described(each) for each in made.troubles],
        made.former_ids,
    )


@dataclass(frozen=True, slots=True)
class InventoryPlan:
    """The result of planning from an inventory."""

    read: ReadInventory
    totals: Plan
    cost: PlanningCost


def parsed_rate(_context: click.Context, _option: click.Parameter, value: str | None) -> Rate | None:
    """Parse `--rate`."""
    if value is None:
        return None
    if value in {LIVE, UNLIMITED}:
        return Rate(is_paced=value == LIVE)
    try:
        per_hour = float(value)
    except ValueError:
        per_hour = 0.0
    if not 0 < per_hour < float("inf"):
        raise click.BadParameter(f"{value!r} -> expected {LIVE}, {UNLIMITED}, or manifests an hour, as in 60")
    return Rate(per_hour=per_hour)


def planned_inventory(
    app: App,
    uri: str,
    *,
    prefix: str | None,
    scope: FileScope,
    rate: Rate,
    limit: int | None,
    dry_run: bool,
    quiet: bool,
) -> InventoryPlan:
    """Plan from an inventory.

    Args:
        app: The ports of this process.
        uri: The manifest.json of the inventory.
        prefix: The folder to plan; None for all allowed ones.
        scope: Which files to plan.
        rate: How fast to release manifests.
        limit: The most to write; None for no limit, or for the limit in the settings if they are not held back.
        dry_run: Claim and write nothing.
        quiet: Print nothing in the meantime.
    """

    def tell(line: str) -> None:
        if not quiet:
            echo(line)

    reader = InventoryReader(app.store)
    inventory = reader.open(uri)
    prefixes = prefixes_to_plan(app.state, app.settings.input.allowed_prefixes, inventory, prefix)
    made = f"{inventory.created_at:%Y-%m-%d %H:%M} UTC"
    tell(f"Inventory of s3://{inventory.source_bucket} at {made}, {count(len(inventory.files), 'data file')}")
    if limit is None and not rate.is_paced:
        limit = MAX_MANIFESTS_PER_PLAN
    with working("planning", app.state.meter):
        plan = finding.plan_inventory(
            app,
            partial(files_in_scope, inventory, reader.rows(inventory), prefixes, scope, app.state.rules),
            rate,
            on_wait=lambda why: tell(f"Waiting: {why}"),
            limit=limit,
            dry_run=dry_run,
        )
    cost = cost_of_plan(app.settings, plan)
    files = len(inventory.files)
    read = ReadInventory(inventory.uri, inventory.source_bucket, inventory.created_at, files, cost.dollars)
    return InventoryPlan(read, plan, cost)


def show_end(made: InventoryPlan, *, dry_run: bool) -> None:
    """Print the cost of planning, and the reason for an early end."""
    cost, verb = made.cost, "would cost" if dry_run else "costs"
    claims = cost.claims_written + cost.claims_read + cost.claims_kept
    echo(
        f"Planning {verb} about ${cost.dollars:,.2f} at list prices: ${claims:,.2f} for claims, "
        f"${cost.requests:,.2f} for requests; compactor cost estimate prices the compaction"
    )
    if made.totals.stalled:
        echo("Ended early: the job finished no manifest, or was late all the time; compactor status shows why")


def plan_log(app: App, log: LogName, max_manifests: int | None, *, dry_run: bool) -> LandingResult:
    """Land a log, with at most `MAX_MANIFESTS_PER_PLAN` manifests unless there is a different limit."""
    most = max_manifests or MAX_MANIFESTS_PER_PLAN
    made = streaming.lander(app, log.scheme).land(log, max_manifests=most, dry_run=dry_run)
    app.metrics.flush(FLUSH_SECONDS)
    return made


def show_log(made: LandedLog, *, dry_run: bool) -> None:
    """Print what an operator needs to know about a topic or stream."""
    behind = "" if made.behind_seconds is None else f", up to {duration(made.behind_seconds)} behind the newest records"
    echo(f"{'Would land' if dry_run else 'Landed'} {count(made.lines, 'line')}{behind}")
    for gap in map(LogGap.parse, made.gaps):
        subject = "Records are" if gap.offsets else "Records may be"
        echo(f"{subject} lost to retention: partition {gap.partition_id}, {gap.words}")
    if made.tombstones:
        echo(f"Without a value, so without a line: {count(made.tombstones, 'record')}")
    if made.closed:
        echo(f"Ended: {count(made.closed, 'shard')}")
    if made.waiting:
        echo(f"Waiting for their parent shards: {count(made.waiting, 'shard')}")
    if made.has_more:
        echo("More is left for the next plan; run the command again")
    if made.strays:
        echo(f"Skipped: {count(made.strays, 'packed record')} of other shards, as configured in kinesis.sources")
    for trouble in made.troubles[1:]:  # the first one ends the command
        echo(f"Not completely landed: {trouble}")
    for former in made.former_ids:
        echo(f"A deleted log with the id {former} had this name: its remaining records are lost")
