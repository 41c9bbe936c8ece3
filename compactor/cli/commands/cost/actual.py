"""`compactor cost actual`: shows the cost of commits."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import timedelta
from typing import Any

import click

from compactor.cli.invocation import Invocation, reporting
from compactor.cli.parameters import FiniteRange, destination_argument
from compactor.cli.priced_job import job_options, priced_job, priced_load, region_of
from compactor.cli.ui.cost_screen import show_actual
from compactor.cli.ui.output import print_result
from compactor.core.documents.records import RecentCommit
from compactor.core.errors import OperatorError
from compactor.cost.cost import ActualCost
from compactor.cost.measured_cost import MeasuredCost, common_commits, measured_cost, stream_costs, together
from compactor.cost.price_table import REGIONS
from compactor.cost.prices import prices_of
from compactor.ledger.ledger import RECENT_SLOTS
from compactor.ledger.sizing import stored_ratio
from compactor.ops.report.period import Period
from compactor.ops.report.reader import read_figures
from compactor.ops.report.report import measured_in
from compactor.wiring.app import App

GLUE_LEAST_SECONDS = 60.0
"""Glue bills at least this long per run."""


@click.command("cost actual", context_settings={"show_default": True})
@destination_argument
@click.option(
    "--days", type=FiniteRange(0, 3650, min_open=True), help="Include all commits of the last N days.", metavar="N"
)
@job_options
@reporting(ActualCost)
def actual(invocation: Invocation, *, days: float | None, as_json: bool, **options: Any) -> None:
    """Show the cost of recent commits.

    Bytes and times come from the ledger, the workers that are assumed to have made the commits from the options. With
    --days, the cost covers everything compacted in that time: workers around the clock, plus an estimate of the other
    services for the mean load. Without --stream, the cost of all streams and jobs is divided by each stream's bytes.
    """
    settings = invocation.deployment()
    job, region = priced_job(options, settings), region_of(options, settings)
    hourly = job.price_in(prices_of(region)).dollars_per_hour(job.dpu)
    apps = {each.name: App(each) for each in (settings.streams or (settings,))}
    recent = common_commits({name: each.ledger.recent() for name, each in apps.items()}, RECENT_SLOTS)
    commits = [commit for found in recent.values() for commit in found]
    of_each = _measured(recent, hourly) if days is None else past_costs(apps, days, hourly)
    measured = measured_cost(commits, hourly) if days is None else together([*of_each.values()], hourly)
    ratio = stored_ratio(commits)
    report = ActualCost(
        job=job,
        jobs=len(settings.jobs),
        region=region,
        has_prices_of_region=region in REGIONS,
        measured=measured,
        estimate=priced_load(measured.load, options, settings, ratio) if days is not None and measured else None,
    )
    if settings.streams and measured is not None:
        whole = measured.dollars_elapsed if report.dollars is None else report.dollars
        report = replace(report, streams=stream_costs(of_each, whole))
    print_result(report, show_actual, as_json=as_json)


def _measured(recent: Mapping[str, Sequence[RecentCommit]], hourly: float) -> dict[str, MeasuredCost]:
    return {name: found for name, commits in recent.items() if (found := measured_cost(commits, hourly))}


def past_costs(apps: Mapping[str, App], days: float, dollars_per_hour: float) -> dict[str, MeasuredCost]:
    """Measure each stream's work of the last days, on workers at this price around the clock.

    Raises:
        OperatorError: No stream compacted anything.
    """
    now = next(iter(apps.values())).clock.now()
    period = Period(now - timedelta(days=days), now)
    found = {name: past_cost(app, period, dollars_per_hour) for name, app in apps.items()}
    if not any(each.input_bytes for each in found.values()):
        where = ", ".join(app.layout.state for app in apps.values())
        raise OperatorError(f"{where}: nothing was compacted in the last {days:g} days -> expected --days N")
    return {name: each for name, each in found.items() if each.input_bytes}


def past_cost(app: App, period: Period, dollars_per_hour: float) -> MeasuredCost:
    """Measure all work of a period, on workers at this price around the clock."""
    target_file_bytes = app.settings.output.target_file_bytes
    found = measured_in(
        read_figures(app.state, app.registry, period, target_file_bytes=target_file_bytes), dollars_per_hour
    )
    return replace(found, at_work_seconds=max(found.at_work_seconds, GLUE_LEAST_SECONDS))
