"""`compactor cost`: estimates the cost of a load at list prices, and shows the cost of commits."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import click

from compactor.cli.invocation import Invocation, reporting
from compactor.cli.parameters import FiniteRange, destination_argument
from compactor.cli.priced_job import job_options, priced_job, priced_load, region_of
from compactor.cli.ui.output import Field, print_fields, print_result, print_table
from compactor.cli.ui.terminal import echo
from compactor.core.documents.document import parsed
from compactor.core.documents.records import RecentCommit
from compactor.core.errors import CompactorError, OperatorError, RecordUnreadable
from compactor.core.text.formatting import count, dollars, duration, rate, size
from compactor.core.text.safe_text import visible
from compactor.cost.cost import NOT_COUNTED, ActualCost, CostReport, Estimate
from compactor.cost.measured_cost import MeasuredCost, StreamCost, common_commits, measured_cost, stream_costs, together
from compactor.cost.price_table import AS_OF, REGIONS
from compactor.cost.prices import FIRST_REGION, CostLine, HourlyCost, Load, PricedJob, prices_of
from compactor.cost.worker_needs import BUSY_SHARE, BenchResult, WorkerNeed, needed
from compactor.ledger.ledger import RECENT_SLOTS
from compactor.ledger.sizing import stored_ratio
from compactor.ops.report.period import Period
from compactor.ops.report.reader import read_figures
from compactor.ops.report.report import measured_in
from compactor.wiring.app import App

LAST_BENCH = Path(".bench/last.json")  # the result of `python -m bench`, relative to its working directory
GLUE_LEAST_SECONDS = 60.0
"""Glue bills at least this long per run."""

_PER = {1: "", 1000: " / k", 10_000: " / 10 k", 1_000_000: " / M"}
_ITEMS: dict[str, Callable[[CostLine], str]] = {
    "service": "{0.service}".format,
    "item": "{0.item}".format,
    "basis": "{0.basis}".format,
    "quantity": lambda line: f"{line.quantity:,.0f} / {'month' if line.price.is_monthly else 'h'}",
    "price": lambda line: f"{line.price.dollars:.6g}{_PER[line.price.per]}",
    "$ an hour": "{0.dollars_per_hour:,.3f}".format,
    "$ a month": "{0.dollars_per_month:,.2f}".format,
}
_NEEDS: dict[str, Callable[[WorkerNeed], str]] = {
    "workers": "{0.workers:,}".format,
    "vCPU": "{0.vcpu_per_worker}".format,
    "busy": "{0.busy_share:.0%}".format,
    "$ an hour": "{0.dollars_per_hour:,.2f}".format,
    "$ a month": "{0.dollars_per_month:,.0f}".format,
    "$ a TB": "{0.dollars_per_terabyte:,.2f}".format,
    "of that job": "{0.share_of_compared:.2f}".format,
}
_STREAMS: dict[str, Callable[[StreamCost], str]] = {
    "stream": "{0.stream}".format,
    "commits": "{0.commits:,}".format,
    "files": "{0.input_files:,}".format,
    "in": lambda each: size(each.input_bytes),
    "at work": lambda each: duration(each.at_work_seconds) if each.at_work_seconds else "",
    "of the input": "{0.share_of_input:.1%}".format,
    "$": "{0.dollars:,.2f}".format,
}


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
    hourly = sum(line.dollars_per_hour for line in job.lines_in(prices_of(region)))
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


def show_estimate(report: CostReport) -> None:
    """Print an estimate, next to a common job, and the number of workers for the load."""
    found = report.estimate
    print_fields(_load_fields(found, report.jobs))
    _show_items(found)
    if found.producers:
        echo("", "The topic itself, for its producers and all readers; not in the total:")
        print_table(_ITEMS, found.producers, names=3)
    echo()
    print_fields([*_total_fields(found), *_note_fields(report)])
    _show_needs(report)


def show_actual(report: ActualCost) -> None:
    """Print measurements and their cost; for a period, also an estimate of the mean load."""
    found, measured = report.estimate, report.measured
    if measured is None:
        echo("Nothing was compacted yet.")
        return
    fields = [*_measured_fields(measured, report.job, "commit" if found else "latest commit"), *_price_fields(report)]
    if found is not None:
        print_fields(_load_fields(found, report.jobs))
        _show_items(found)
        echo()
        was = ("was", f"{dollars(report.dollars or 0)} for the period, all services")
        fields = [*_total_fields(found), was, *fields]
    print_fields(fields)
    if report.streams:
        echo()
        print_table(_STREAMS, [*report.streams, _all(report.streams)], names=1)


def _show_items(found: Estimate) -> None:
    echo()
    print_table(_ITEMS, found.lines, names=3)


def _load_fields(found: Estimate, jobs: int) -> list[Field]:
    load, job, shape = found.load, found.job, found.shape
    made = f"{found.manifests_per_hour:,.0f} manifests an hour, {count(found.outputs_per_manifest, 'file')} each"
    hourly = f"{size(load.bytes_per_hour)} an hour, {rate(load.bytes_per_hour, 3600)}"
    return [
        ("load", hourly if found.producers else f"{_files(load)}: {hourly}"),
        (
            "job",
            f"{job}: {job.dpu:g} DPU around the clock, {_drivers(jobs)}" if job.dpu else f"{job}, around the clock",
        ),
        ("engine", f"{shape.engine}; choose a different one with --engine"),
        ("makes", f"{made}, at {shape.ratio:.2f} Parquet bytes per input byte"),
    ]


def _files(load: Load) -> str:
    return f"{load.files_per_hour:,.0f} files an hour of {size(load.file_bytes)}"


def _all(streams: Sequence[StreamCost]) -> StreamCost:
    """The totals, without the time at work, because streams work at the same time."""
    return StreamCost(
        "all",
        commits=sum(each.commits for each in streams),
        input_files=sum(each.input_files for each in streams),
        input_bytes=sum(each.input_bytes for each in streams),
        at_work_seconds=0.0,
        share_of_input=sum(each.share_of_input for each in streams),
        dollars=sum(each.dollars for each in streams),
    )


def _drivers(jobs: int) -> str:
    return "including the driver's" if jobs == 1 else f"in {jobs} jobs, including the drivers'"


def _total_fields(found: Estimate) -> list[Field]:
    job = found.job
    compared = f"{job.compared} around the clock, workers only: {_dollars(job.compared)}"
    kept = dollars(sum(line.dollars_per_month for line in found.kept))
    items = [f"{line.item} {dollars(line.dollars_per_month)}" for line in found.kept]
    return [
        ("total", f"{_dollars(found)}, {dollars(found.dollars_per_terabyte)} per terabyte of input"),
        ("kept", _kept_words(kept, items)),
        ("compared", [f"{compared};", f"these workers cost {job.share_of_compared:.2f} times that"]),
        ("VPC", [f"a NAT gateway would add {_dollars(found.nat)};", "a gateway endpoint for S3 is free"]),
    ]


def _kept_words(kept: str, items: Sequence[str]) -> list[str]:
    first = f"{kept} more per month, at full retention: {items[0]}"
    return [f"{first},", ", ".join(items[1:])] if items[1:] else [first]


def _price_fields(report: CostReport | ActualCost) -> list[Field]:
    is_known, region = report.has_prices_of_region, report.region
    where = region if is_known else f"{FIRST_REGION}, as there are none for {visible(region)},"
    return [("prices", f"list prices of {where} as of {AS_OF}, from third parties: check them")]


def _note_fields(report: CostReport) -> list[Field]:
    return [
        ("requests", "GET includes HEAD; PUT includes POST, COPY and LIST"),
        ("quantities", "given: by the options; counted: from the code; assumed: not measured"),
        *_price_fields(report),
        ("not counted", NOT_COUNTED),
    ]


def _dollars(cost: HourlyCost) -> str:
    return f"{dollars(cost.dollars_per_hour)} an hour, {dollars(cost.dollars_per_month)} a month"


def _measured_fields(found: MeasuredCost, job: PricedJob, what_of: str) -> list[Field]:
    span = f"{found.since:%Y-%m-%d %H:%M:%S} to {found.until:%m-%d %H:%M:%S} UTC"
    what = f"{count(found.input_files, 'file')}, {size(found.input_bytes)}"
    at_work = _spent(found, found.at_work_seconds, found.dollars_at_work)
    elapsed = _spent(found, found.elapsed_seconds, found.dollars_elapsed)
    speed = rate(found.input_bytes, found.at_work_seconds)
    return [
        ("measured", [f"{count(found.commits, what_of)}, {span}: {what},", f"{speed} while at work"]),
        ("their cost", f"with {job}: {at_work} at work; {elapsed} with pauses"),
    ]


def _spent(found: MeasuredCost, seconds: float, amount: float) -> str:
    per_terabyte = found.per_terabyte(amount)
    rest = "" if per_terabyte is None else f" ({dollars(per_terabyte)} a terabyte)"
    return f"{dollars(amount)}{rest} for {duration(seconds)}"


def _show_needs(report: CostReport) -> None:
    """Print for each engine, fastest first, how many workers of each type the load needs on the job's Glue version."""
    if report.needed is None:
        how = "run `make bench` here, or give its result as --bench FILE"
        print_fields([("enough?", f"to see how many workers the load needs, {how}")])
        return
    echo()
    version, bench = report.estimate.job.glue_version, report.needed.bench
    where = f"{count(bench.cores, 'core')} ({bench.machine}), {bench.measured_at:%Y-%m-%d}"
    for engine, need in report.needed.engines.items():
        in_all = f"{bench.megabytes_per_second[engine]:,.0f} MB/s on {where}"
        print_fields([("engine", f"{engine}, {rate(need.bytes_per_second_per_core, 1)} a core: {in_all}")])
        jobs = [each for each in need.jobs if each.glue_version == version]
        print_table({f"Glue {version}": "{0.worker_type}".format, **_NEEDS}, jobs, names=1)
    fields = [
        ("workers", f"including the driver's; the others at most {BUSY_SHARE:.0%} busy, for peaks and restarts"),
        ("assumed", "a vCPU is as fast as a core of that machine, and S3 as fast as its disk: try it on AWS"),
    ]
    print_fields(fields)
