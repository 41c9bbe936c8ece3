"""Puts together what plans from an S3 Inventory."""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from compactor.adapters.local.sqlite.spilled_files import SqliteSpill
from compactor.core.errors import SettingsError
from compactor.core.layout import canonical, folder, is_within
from compactor.cost.planning_cost import PlanningCost, planning_cost
from compactor.cost.prices import prices_of
from compactor.manifests.inventory.document import Inventory
from compactor.manifests.inventory.pacing import Pace, PaceRules
from compactor.manifests.inventory.planner import InventoryPlanner
from compactor.manifests.inventory.release import Gate, OpenGate, PacedGate
from compactor.manifests.spilled.named_before import NamedBefore
from compactor.manifests.spilled.totals import PlanTotals
from compactor.settings.types import JOURNAL_CLAIMS
from compactor.wiring.job.app import App


@dataclass(frozen=True, slots=True)
class Rate:
    """How fast planned manifests are released.

    Attributes:
        is_paced: Whether they wait until the watched prefix has room.
        per_hour: The most in an hour; None for any number.
    """

    is_paced: bool = True
    per_hour: float | None = None


def inventory_planner(
    app: App, rate: Rate, *, on_wait: Callable[[str], None], sleep: Callable[[float], None] = time.sleep
) -> InventoryPlanner:
    """Make what plans from an inventory; for one use.

    Args:
        app: The components of this process.
        rate: How fast it releases manifests.
        on_wait: Called when it begins to wait, with the cause.
        sleep: Waits for a number of seconds.

    Raises:
        SettingsError: The job reads any version of a file, so that a replaced file could be compacted twice.
    """
    if app.settings.input.on_changed_file != "skip":
        why = "a file may be replaced since, and the event of its new version plans it, too"
        raise SettingsError([f'input.on_changed_file: "read" -> expected "skip" for --inventory: {why}'])
    spill = SqliteSpill()
    return InventoryPlanner(
        planner=app.planner,
        spill=spill,
        named=NamedBefore(state=app.state, allowed_prefixes=app.settings.input.allowed_prefixes, spill=spill),
        gate=_gate(app, rate, on_wait, sleep),
        sleep=sleep,
    )


def _gate(app: App, rate: Rate, on_wait: Callable[[str], None], sleep: Callable[[float], None]) -> Gate:
    if not rate.is_paced:
        return OpenGate()
    stream, control = app.settings.stream, app.settings.control
    rules = PaceRules(
        slots=stream.manifests_in_flight,
        # At most one micro-batch waits while the manifests in flight are processed, so the job never idles.
        most_waiting=stream.max_manifests_per_trigger + stream.manifests_in_flight,
        most_age_seconds=control.sla_seconds / 2,
        per_hour=rate.per_hour,
    )
    return PacedGate(
        state=app.state,
        pace=Pace(rules),
        poll_seconds=stream.trigger_interval_seconds,
        stall_seconds=control.stall_seconds,
        sleep=sleep,
        on_wait=on_wait,
    )


def prefixes_to_plan(app: App, inventory: Inventory, prefix: str | None) -> tuple[str, ...]:
    """The folders of an inventory to plan: the given one, else all of the settings that are in its bucket.

    Raises:
        SettingsError: None is in its bucket, or the given one is not allowed.
    """
    if prefix is not None:
        app.planner.check(prefix)
    asked: Sequence[str] = app.settings.input.allowed_prefixes if prefix is None else [prefix]
    bucket = f"s3://{inventory.source_bucket}"
    within = tuple(f for f in (folder(canonical(each)) for each in asked) if is_within(f, bucket))
    if not within:
        named = "input.allowed_prefixes" if prefix is None else "PREFIX"
        raise SettingsError([f"plan: {inventory.uri} lists {bucket} -> expected {named} in it: {', '.join(asked)}"])
    return within


def cost_of_planning(app: App, totals: PlanTotals) -> PlanningCost:
    """What the claims and requests of a plan cost in the region of the settings."""
    builder = app.settings.builder
    in_dynamodb = builder.claims not in {"", JOURNAL_CLAIMS}
    return planning_cost(
        totals.files + totals.planned_before + totals.held,
        totals.files,
        len(totals.manifests),
        claim_days=builder.claim_ttl_days if in_dynamodb else None,
        prices=prices_of(app.settings.aws.region),
    )
