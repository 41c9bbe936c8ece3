"""`compactor cost`: what a load costs by list prices, and what the latest runs did."""

from dataclasses import replace
from pathlib import Path
from typing import Any, get_args

import click
from rich.console import Console
from rich.table import Table

from compactor.cli.failures import ExitCode
from compactor.cli.invocation import Invocation, body, json_option
from compactor.cli.ui.output import print_fields, print_json, shallow
from compactor.cli.ui.worker_needs import HOW_TO_MEASURE, needs_document, show_needs
from compactor.core.formatting import count, dollars, duration, rate, size
from compactor.core.records import RecentCommit
from compactor.cost.bench_result import BenchResult, read_bench_result
from compactor.cost.cost import CostLine, Estimate, Load, Shape, estimate
from compactor.cost.measured_cost import MeasuredCost, measured_cost
from compactor.cost.prices import AS_OF, DPU_PER_WORKER, GLUE_VERSIONS, HOURS_A_MONTH, PRICES, JobSize
from compactor.engines.engine import EngineName
from compactor.ledger.sizing import learned_ratio
from compactor.settings.sections import Builder, Convert, Output, Stream
from compactor.wiring.app import App
from compactor.wiring.engine_components import engine_of

LAST_BENCH = Path(".bench/last.json")
"""Where `python -m bench` leaves its result, below the folder that it is run in."""

COMMON_WORKERS, COMMON_WORKER_TYPE = 10, "G.2X"
_PER = {1: "", 1000: " / k", 1_000_000: " / M"}
NOT_COUNTED = (
    "storage",
    "logs",
    "what producers and readers ask of S3",
    "KMS",
    "failed attempts",
    "free tiers and discounts",
)


@click.command("cost")
@click.option(
    "--files-per-hour",
    type=click.FloatRange(min=0, min_open=True),
    default=200_000,
    show_default=True,
    help="Assume this many input files per hour.",
)
@click.option("--file-bytes", type=click.IntRange(min=1), default=3_670_016, show_default=True, help="Of one file.")
@click.option(
    "--worker-type",
    type=click.Choice(list(DPU_PER_WORKER)),
    default=COMMON_WORKER_TYPE,
    show_default=True,
    help="Assume workers of this Glue type.",
)
@click.option(
    "--workers",
    type=click.IntRange(min=2),
    default=COMMON_WORKERS,
    show_default=True,
    help="All workers; one is the driver.",
)
@click.option(
    "--glue-version",
    type=click.Choice(GLUE_VERSIONS),
    default="6.0",
    show_default=True,
    help="Assume this version of Glue.",
)
@click.option(
    "--engine",
    type=click.Choice(get_args(EngineName)),
    help="Else that of the settings; without any, native if its wheel is installed here.",
)
@click.option(
    "--bench",
    type=click.Path(dir_okay=False, path_type=Path),
    help=f"Result of `python -m bench`; without it {LAST_BENCH}, if there is one.",
)
@json_option
@body
def cost(
    invocation: Invocation,
    *,
    files_per_hour: float,
    file_bytes: int,
    worker_type: str,
    workers: int,
    glue_version: str,
    engine: EngineName | None,
    bench: Path | None,
    as_json: bool,
) -> ExitCode:
    """Estimate what a load costs; with settings, also what the latest runs did.

    Prices are list prices of us-east-1: check them before quoting. Whether the workers that are named are enough is not
    asked; with the result of a benchmark, it says how many of each type the load needs at that speed.
    """
    bench_result = _bench_result(bench)
    job = JobSize(worker_type, workers, glue_version)
    recent, shape = _of_settings(invocation, engine)
    found = estimate(Load(files_per_hour, file_bytes), job, shape)
    measured = measured_cost(recent, job)
    common = JobSize(COMMON_WORKER_TYPE, COMMON_WORKERS, glue_version)
    if as_json:
        needs = None if bench_result is None else needs_document(bench_result, found.load, common)
        print_json({**_document(found, shape, measured, common), "needed": needs})
        return ExitCode.DONE
    _show(found, shape, measured, common)
    if bench_result is not None:
        click.echo()
        show_needs(bench_result, found.load, common)
    else:
        print_fields([("enough?", f"to see how many workers the load needs, {HOW_TO_MEASURE}")])
    return ExitCode.DONE


def _bench_result(named: Path | None) -> BenchResult | None:
    """What was named, else the last one of this folder, if any."""
    if named is None and not LAST_BENCH.is_file():
        return None
    return read_bench_result(named or LAST_BENCH)


def _of_settings(invocation: Invocation, engine: EngineName | None) -> tuple[list[RecentCommit], Shape]:
    """The latest commits and how the work is cut; defaults where nobody named settings, or an engine."""
    if not invocation.has_settings:
        return [], shape_of(engine or engine_of(Convert()), Builder(), Output(), Stream(), None)
    app = App(invocation.settings())
    recent, settings = app.ledger.recent(), app.settings
    # Not `App.engine_name`: where costs are asked for, the wheel that the job has need not be installed.
    engine = engine or engine_of(settings.convert)
    return recent, shape_of(engine, settings.builder, settings.output, settings.stream, learned_ratio(recent))


def shape_of(engine: EngineName, builder: Builder, output: Output, stream: Stream, ratio: float | None) -> Shape:
    """How settings cut the work; the usual ratio where none is known yet."""
    shape = Shape(
        engine=engine,
        target_manifest_bytes=builder.target_manifest_bytes,
        target_file_bytes=output.target_file_bytes,
        max_wait_seconds=builder.max_wait_seconds,
        trigger_interval_seconds=stream.trigger_interval_seconds,
    )
    return shape if ratio is None else replace(shape, ratio=ratio)


def _document(found: Estimate, shape: Shape, measured: MeasuredCost | None, common: JobSize) -> dict[str, Any]:
    return {
        "load": shallow(found.load),
        "job": {**shallow(found.job), "dpu": found.job.dpu},
        "shape": shallow(shape),
        "manifests_per_hour": found.manifests_per_hour,
        "outputs_per_manifest": found.outputs_per_manifest,
        "lines": [_line(line) for line in found.lines],
        "dollars_per_hour": found.dollars_per_hour,
        "dollars_per_month": found.dollars_per_month,
        "dollars_per_terabyte": found.dollars_per_terabyte,
        "compared": {
            **shallow(common),
            "dollars_per_hour": common.dollars_per_hour,
            "dollars_per_month": common.dollars_per_hour * HOURS_A_MONTH,
        },
        "measured": None if measured is None else _measured(measured),
        "not_counted": NOT_COUNTED,
        "prices": {name: shallow(price) for name, price in PRICES.items()},
    }


def _line(line: CostLine) -> dict[str, Any]:
    dollars = {"dollars_per_hour": line.dollars_per_hour, "dollars_per_month": line.dollars_per_month}
    per = "month" if line.price.is_monthly else "hour"
    return {**shallow(line), "price": shallow(line.price), "quantity_per": per, **dollars}


def _measured(found: MeasuredCost) -> dict[str, Any]:
    return {
        **shallow(found),
        "elapsed_seconds": found.elapsed_seconds,
        "dollars_at_work": found.dollars_at_work,
        "dollars_elapsed": found.dollars_elapsed,
        "dollars_per_terabyte_at_work": found.per_terabyte(found.dollars_at_work),
        "dollars_per_terabyte_elapsed": found.per_terabyte(found.dollars_elapsed),
    }


def _show(found: Estimate, shape: Shape, measured: MeasuredCost | None, common: JobSize) -> None:
    load, job = found.load, found.job
    made = f"{found.manifests_per_hour:,.0f} manifests an hour, {count(found.outputs_per_manifest, 'file')} each"
    print_fields(
        [
            ("load", f"{load.files_per_hour:,.0f} files an hour of {size(load.file_bytes)}: {_a_hour(load)}"),
            ("job", f"{job}: {job.dpu:g} DPU around the clock, the driver's included"),
            ("engine", f"{shape.engine}; name the other one by --engine"),
            ("makes", f"{made}, at {shape.ratio:.2f} Parquet bytes for each input byte"),
        ]
    )
    click.echo()
    Console(highlight=False).print(_table(found))
    click.echo()
    per_terabyte = f"{dollars(found.dollars_per_terabyte)} a terabyte of input"
    share = f"these workers are {job.dollars_per_hour / common.dollars_per_hour:.2f} of that"
    print_fields(
        [
            ("total", f"{_a_month(found.dollars_per_hour)}, {per_terabyte}"),
            ("compared", f"{common} around the clock, workers alone: {_a_month(common.dollars_per_hour)};\n{share}"),
            *([] if measured is None else _measured_fields(measured, job)),
            ("requests", "GET stands for GET and HEAD; PUT for PUT, POST, COPY and LIST"),
            ("quantities", "given: by the options; counted: from the code; assumed: nobody has counted them yet"),
            ("prices", f"list prices of us-east-1 as of {AS_OF}, that of Glue 6.0 from third parties: check them"),
            ("not counted", ", ".join(NOT_COUNTED)),
        ]
    )


def _a_hour(load: Load) -> str:
    return f"{size(load.bytes_per_hour)} an hour, {rate(load.bytes_per_hour, 3600)}"


def _a_month(dollars_per_hour: float) -> str:
    return f"{dollars(dollars_per_hour)} an hour, {dollars(dollars_per_hour * HOURS_A_MONTH)} a month"


def _table(found: Estimate) -> Table:
    table = Table(box=None, padding=(0, 1, 0, 0), pad_edge=False, header_style="bold")
    for name in ("service", "item", "basis"):
        table.add_column(name, no_wrap=True)
    for name in ("quantity", "price", "$ an hour", "$ a month"):
        table.add_column(name, justify="right", no_wrap=True)
    for line in found.lines:
        table.add_row(
            line.service,
            line.item,
            line.basis,
            f"{line.quantity:,.0f} / {'month' if line.price.is_monthly else 'h'}",
            f"{line.price.dollars:.6g}{_PER[line.price.per]}",
            f"{line.dollars_per_hour:,.3f}",
            f"{line.dollars_per_month:,.2f}",
        )
    return table


def _measured_fields(found: MeasuredCost, job: JobSize) -> list[tuple[str, str]]:
    span = f"{found.since:%Y-%m-%d %H:%M:%S} to {found.until:%m-%d %H:%M:%S} UTC"
    what = f"{count(found.input_files, 'file')}, {size(found.input_bytes)}"
    at_work = _spent(found, found.at_work_seconds, found.dollars_at_work)
    elapsed = _spent(found, found.elapsed_seconds, found.dollars_elapsed)
    speed = rate(found.input_bytes, found.at_work_seconds)
    return [
        ("measured", f"{count(found.commits, 'latest commit')}, {span}: {what},\n{speed} while at work"),
        ("cost of it", f"if {job} made them: {at_work} at work; {elapsed} with pauses"),
    ]


def _spent(found: MeasuredCost, seconds: float, amount: float) -> str:
    per_terabyte = found.per_terabyte(amount)
    rest = "" if per_terabyte is None else f" ({dollars(per_terabyte)} a terabyte)"
    return f"{dollars(amount)}{rest} for {duration(seconds)}"
