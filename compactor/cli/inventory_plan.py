"""The part of `compactor plan` that plans from an S3 Inventory."""

import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import click

from compactor.cli.ui.terminal import echo
from compactor.core.text.formatting import count
from compactor.cost.planning_cost import PlanningCost
from compactor.manifests.inventory.document import Inventory
from compactor.manifests.inventory.reading import InventoryReader
from compactor.manifests.inventory.rows import files_in_scope
from compactor.manifests.plan import Plan
from compactor.manifests.unplanned import FileScope
from compactor.wiring.inventory import Rate, cost_of_planning, plan_inventory, prefixes_to_plan
from compactor.wiring.job.app import App

PROGRESS_SECONDS = 60.0
LIVE, UNLIMITED = "live", "unlimited"


@dataclass(frozen=True, slots=True)
class InventoryPlan:
    """What came of planning from an inventory."""

    inventory: Inventory
    totals: Plan
    cost: PlanningCost

    def document(self) -> dict[str, Any]:
        """What `--json` adds for an inventory."""
        inventory = self.inventory
        return {
            "uri": inventory.uri,
            "bucket": inventory.source_bucket,
            "created_at": inventory.created_at,
            "data_files": len(inventory.files),
            "dollars": self.cost.dollars,
        }


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
        app: The components of this process.
        uri: The manifest.json of the inventory.
        prefix: The folder to plan; None for all allowed ones.
        scope: Which files to plan.
        rate: How fast to release manifests.
        limit: The most to write; None for any number, or for that of the settings if they are not held back.
        dry_run: Claim and write nothing.
        quiet: Print nothing meanwhile.
    """

    def tell(line: str) -> None:
        if not quiet:
            echo(line)

    reader = InventoryReader(app.store)
    inventory = reader.open(uri)
    prefixes, rows = prefixes_to_plan(app, inventory, prefix), reader.rows(inventory)
    made = f"{inventory.created_at:%Y-%m-%d %H:%M} UTC"
    tell(f"Inventory of s3://{inventory.source_bucket} at {made}, {count(len(inventory.files), 'data file')}")
    if limit is None and not rate.is_paced:
        limit = app.settings.builder.max_manifests_per_plan
    plan = plan_inventory(
        app,
        partial(files_in_scope, inventory, rows, prefixes, scope, app.state.rules),
        rate,
        on_wait=lambda why: tell(f"Waiting: {why}"),
        on_batch=_Progress(tell),
        limit=limit,
        dry_run=dry_run,
    )
    return InventoryPlan(inventory, plan, cost_of_planning(app, plan))


class _Progress:
    """Says now and then how far planning is. It may take days."""

    def __init__(self, tell: Callable[[str], None]) -> None:
        self._tell = tell
        self._told_at = time.monotonic()

    def __call__(self, date: str, plan: Plan) -> None:
        if time.monotonic() - self._told_at >= PROGRESS_SECONDS:
            self._told_at = time.monotonic()
            planned = f"{count(len(plan.manifests), 'manifest')} of {count(plan.files, 'file')}"
            self._tell(f"Up to {date}: {planned}, {count(plan.planned_before, 'file')} planned before")


def show_end(made: InventoryPlan, *, dry_run: bool) -> None:
    """Print what planning costs, and why it ended early if it did."""
    cost, verb = made.cost, "would cost" if dry_run else "costs"
    claims = cost.claims_written + cost.claims_read + cost.claims_kept
    echo(
        f"Planning {verb} about ${cost.dollars:,.2f} at list prices: ${claims:,.2f} for claims, "
        f"${cost.requests:,.2f} for requests; compactor cost estimates the compaction"
    )
    if made.totals.stalled:
        echo("Ended early: the job finished no manifest, or was late all the time; compactor status says why")
