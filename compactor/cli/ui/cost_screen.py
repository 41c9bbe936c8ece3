"""Shows an estimate with the workers for a load, and the cost of commits."""

from collections.abc import Callable, Sequence

from compactor.cli.ui.output import Field, print_fields, print_table
from compactor.cli.ui.terminal import echo
from compactor.core.text.formatting import count, dollars, duration, rate, size
from compactor.core.text.safe_text import visible
from compactor.cost.cost import NOT_COUNTED, ActualCost, CostReport, Estimate
from compactor.cost.measured_cost import MeasuredCost, StreamCost
from compactor.cost.price_table import AS_OF
from compactor.cost.prices import FIRST_REGION, CostLine, HourlyCost, Load, PricedJob
from compactor.cost.worker_needs import BUSY_SHARE, WorkerNeed

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
        ("job", f"{job}: {job.dpu:g} DPU around the clock, {_drivers(jobs)}"),
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
