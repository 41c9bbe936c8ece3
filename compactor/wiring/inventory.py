"""Puts together what plans from an S3 Inventory."""

import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from compactor.core.errors import SettingsError
from compactor.core.layout import canonical, folder, is_within
from compactor.cost.planning_cost import PlanningCost, planning_cost
from compactor.cost.prices import prices_of
from compactor.settings.types import JOURNAL_CLAIMS
from compactor.sources.inventory.document import Inventory
from compactor.sources.inventory.pace import Pace, PacedGate, PaceRules
from compactor.sources.plan import Plan
from compactor.sources.planner import Gate, OpenGate
from compactor.sources.spill import SpilledFile
from compactor.sources.unplanned import check_prefix
from compactor.wiring.job.app import App

MAX_ROUNDS = 10


@dataclass(frozen=True, slots=True)
class Rate:
    """How fast planned manifests are released.

    Attributes:
        is_paced: Whether they wait until the watched prefix has room.
        per_hour: The most in an hour; None for any number.
    """

    is_paced: bool = True
    per_hour: float | None = None


def plan_inventory(
    app: App,
    found: Callable[[Plan], Iterable[SpilledFile]],
    rate: Rate,
    *,
    on_wait: Callable[[str], None],
    on_batch: Callable[[str, Plan], None] = lambda _date, _plan: None,
    limit: int | None = None,
    dry_run: bool = False,
    sleep: Callable[[float], None] = time.sleep,
) -> Plan:
    """Write manifests for files that an inventory lists, those that a dead planner has claimed once its lease is over.

    Args:
        app: The components of this process.
        found: Yields the files, and counts what else the inventory lists.
        rate: How fast it releases manifests.
        on_wait: Called when it begins to wait, with the cause.
        on_batch: Called after each batch of manifests, with its last date and what was done so far.
        limit: The most manifests to write; None for any number.
        dry_run: Claim and write nothing.
        sleep: Waits for a number of seconds.

    Raises:
        SettingsError: The job reads any version of a file, so that a replaced file could be compacted twice.
    """
    if app.settings.input.on_changed_file != "skip":
        why = "a file may be replaced since, and the event of its new version plans it, too"
        raise SettingsError([f'input.on_changed_file: "read" -> expected "skip" for --inventory: {why}'])
    gate, plan = _gate(app, rate, on_wait, sleep), Plan(dry_run=dry_run)
    with app.unplanned(found, may_be_gone=True) as files:
        for number in range(MAX_ROUNDS):
            app.planner.plan(files, limit=limit, gate=gate, on_batch=on_batch, plan=plan)
            if dry_run or plan.is_over or plan.held_until is None or number == MAX_ROUNDS - 1:
                break
            sleep(max(0.0, (plan.held_until - app.clock.now()).total_seconds()) + 0.1)
            plan.held, plan.held_until = 0, None
    return plan


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
        check_prefix(app.state, prefix, app.settings.input.allowed_prefixes)
    asked: Sequence[str] = app.settings.input.allowed_prefixes if prefix is None else [prefix]
    bucket = f"s3://{inventory.source_bucket}"
    within = tuple(f for f in (folder(canonical(each)) for each in asked) if is_within(f, bucket))
    if not within:
        named = "input.allowed_prefixes" if prefix is None else "PREFIX"
        raise SettingsError([f"plan: {inventory.uri} lists {bucket} -> expected {named} in it: {', '.join(asked)}"])
    return within


def cost_of_planning(app: App, plan: Plan) -> PlanningCost:
    """What the claims and requests of a plan cost in the region of the settings."""
    builder = app.settings.builder
    in_dynamodb = builder.claims not in {"", JOURNAL_CLAIMS}
    return planning_cost(
        plan.files + plan.planned_before + plan.held,
        plan.files,
        len(plan.manifests),
        claim_days=builder.claim_ttl_days if in_dynamodb else None,
        prices=prices_of(app.settings.aws.region),
    )
