"""`compactor cost`: estimates the cost of a load at list prices, and shows the cost of commits."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import click

from compactor.cli.invocation import Invocation, reporting
from compactor.cli.parameters import FiniteRange, destination_argument
from compactor.cli.priced_job import job_options, priced_job, priced_load, region_of
from compactor.cli.ui.cost_screen import show_actual, show_estimate
from compactor.cli.ui.output import print_result
from compactor.core.documents.document import parsed
from compactor.core.documents.records import RecentCommit
from compactor.core.errors import CompactorError, OperatorError, RecordUnreadable
from compactor.cost.cost import ActualCost, CostReport
from compactor.cost.measured_cost import MeasuredCost, common_commits, measured_cost, stream_costs, together
from compactor.cost.price_table import REGIONS
from compactor.cost.prices import Load, prices_of
from compactor.cost.worker_needs import BenchResult, needed
from compactor.ledger.ledger import RECENT_SLOTS
from compactor.ledger.sizing import stored_ratio
from compactor.ops.report.period import Period
from compactor.ops.report.reader import read_figures
from compactor.ops.report.report import measured_in
from compactor.wiring.app import App

LAST_BENCH = Path(".bench/last.json")  # the result of `python -m bench`, relative to its working directory
GLUE_LEAST_SECONDS = 60.0
"""Glue bills at least this long per run."""


@click.command("cost estimate", context_settings={"show_default": True})
@destination_argument
@click.option(
    "--files-per-hour", type=FiniteRange(0, 1e12, min_open=True), default=200_000, help="Input files per hour."
)
@click.option("--file-bytes", type=click.IntRange(min=1), default=3_670_016, help="Size of each file.")
@job_options
@click.option(
    "--bench",
    type=click.Path(dir_okay=False, path_type=Path),
    help=f"Read this result of `python -m bench`; default: {LAST_BENCH}, if it exists.",
)
@reporting(CostReport)
def estimate(
    invocation: Invocation,
    *,
    files_per_hour: float,
    file_bytes: int,
    bench: Path | None,
    as_json: bool,
    **options: Any,
) -> None:
    """Estimate the cost of a load at list prices.

    Check the prices before you quote them. Assumes that the given workers are enough. With a benchmark result, shows
    how many workers of each type the load needs at that speed. With settings, uses their engine, sizes, region and
    jobs.
    """
    result = _bench_result(bench or LAST_BENCH) if bench or LAST_BENCH.is_file() else None
    settings = invocation.deployment() if invocation.has_settings else None
    recent = {each.name: App(each).ledger.recent() for each in settings.streams or (settings,)} if settings else {}
    commits = [each for found in common_commits(recent, RECENT_SLOTS).values() for each in found]
    found = priced_load(Load(files_per_hour, file_bytes), options, settings, stored_ratio(commits))
    region = region_of(options, settings)
    report = CostReport(
        estimate=found,
        region=region,
        has_prices_of_region=region in REGIONS,
        prices=prices_of(region),
        jobs=len(settings.jobs) if settings else 1,
        needed=needed(found.load, result) if result else None,
    )
    print_result(report, show_estimate, as_json=as_json)


def _bench_result(path: Path) -> BenchResult:
    expected = "a result that `python -m bench` writes to .bench/last.json"
    try:
        return parsed(BenchResult.model_validate_json, path.read_bytes(), str(path), expected)
    except OSError as exc:
        raise CompactorError(f"{path}: {exc.strerror}; expected {expected}") from exc
    except RecordUnreadable as exc:  # its next action is for ledger records
        raise CompactorError(str(exc)) from exc


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
