"""`compactor cost`: the cost of a load at list prices, and of the latest commits."""

from dataclasses import replace
from pathlib import Path
from typing import Any, get_args

import click

from compactor.cli.failures import ExitCode
from compactor.cli.invocation import Invocation, body, json_option
from compactor.cli.ui.console import SafeConsole
from compactor.cli.ui.output import print_fields, print_json, shallow
from compactor.cli.ui.terminal import echo
from compactor.cli.ui.worker_needs import HOW_TO_MEASURE, figures_table, needs_document, show_needs
from compactor.core.formatting import count, dollars, duration, rate, size
from compactor.core.records import RecentCommit
from compactor.cost.bench_result import read_bench_result
from compactor.cost.cost import CostLine, Estimate, Load, Shape, estimate
from compactor.cost.measured_cost import MeasuredCost, measured_cost
from compactor.cost.prices import AS_OF, DPU_PER_WORKER, GLUE_VERSIONS, HOURS_A_MONTH, PRICES, JobSize
from compactor.engines.engine import EngineName
from compactor.ledger.sizing import learned_ratio
from compactor.settings.sections import Builder, Convert, Output, Stream
from compactor.wiring.app import App
from compactor.wiring.engine_components import engine_of

LAST_BENCH = Path(".bench/last.json")  # the result of `python -m bench`, below the folder that it ran in

COMMON_WORKERS, COMMON_WORKER_TYPE = 10, "G.2X"
NOT_COUNTED = (
    "storage",
    "logs",
    "requests of producers and readers",
    "KMS",
    "failed attempts",
    "free tiers and discounts",
)
_PER = {1: "", 1000: " / k", 1_000_000: " / M"}
_NAMES, _FIGURES = ("service", "item", "basis"), ("quantity", "price", "$ an hour", "$ a month")
_DOLLARS = ("dollars_per_hour", "dollars_per_month")
_TIMES = ("at_work", "elapsed")
_MEASURED = (*(f"dollars_{time}" for time in _TIMES), *(f"dollars_per_terabyte_{time}" for time in _TIMES))


@click.command("cost", context_settings={"show_default": True})
@click.option(
    "--files-per-hour", type=click.FloatRange(min=0, min_open=True), default=200_000, help="Input files an hour."
)
@click.option("--file-bytes", type=click.IntRange(min=1), default=3_670_016, help="Size of a file.")
@click.option(
    "--worker-type", type=click.Choice(list(DPU_PER_WORKER)), default=COMMON_WORKER_TYPE, help="Glue worker type."
)
@click.option("--workers", type=click.IntRange(min=2), default=COMMON_WORKERS, help="All workers; one is the driver.")
@click.option("--glue-version", type=click.Choice(GLUE_VERSIONS), default="6.0", help="Glue version.")
@click.option(
    "--engine",
    type=click.Choice(get_args(EngineName)),
    help="Default: the engine of the settings, else native if its wheel is installed.",
)
@click.option(
    "--bench",
    type=click.Path(dir_okay=False, path_type=Path),
    help=f"Result of `python -m bench`; default: {LAST_BENCH}, if it exists.",
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
    """Estimate the cost of a load; with settings, also show that of the latest commits.

    Prices are list prices of us-east-1: check them before quoting. The named workers are taken to be enough. With the
    result of a benchmark, the command shows how many workers of each type the load needs at that speed.
    """
    result = read_bench_result(bench or LAST_BENCH) if bench or LAST_BENCH.is_file() else None
    job, common = (
        JobSize(*size, glue_version) for size in ((worker_type, workers), (COMMON_WORKER_TYPE, COMMON_WORKERS))
    )
    recent, shape = _of_settings(invocation, engine)
    found, measured = (
        estimate(Load(files_per_hour, file_bytes), job, shape),
        measured_cost(recent, job.dollars_per_hour),
    )
    if as_json:
        needed = None if result is None else needs_document(result, found.load, common)
        print_json({**_document(found, shape, measured, common), "needed": needed})
    else:
        _show(found, shape, measured, common)
        if result is None:
            print_fields([("enough?", f"to see how many workers the load needs, {HOW_TO_MEASURE}")])
        else:
            echo()
            show_needs(result, found.load, common)
    return ExitCode.DONE


def _of_settings(invocation: Invocation, engine: EngineName | None) -> tuple[list[RecentCommit], Shape]:
    """The latest commits, and how the work is divided; defaults without settings."""
    if not invocation.has_settings:
        return [], shape_of(engine or engine_of(Convert()), Builder(), Output(), Stream(), None)
    app = App(invocation.settings())
    recent, settings = app.ledger.recent(), app.settings
    # Not `App.engine_name`: the wheel that the job has need not be installed here.
    engine = engine or engine_of(settings.convert)
    return recent, shape_of(engine, settings.builder, settings.output, settings.stream, learned_ratio(recent))


def shape_of(engine: EngineName, builder: Builder, output: Output, stream: Stream, ratio: float | None) -> Shape:
    """How settings divide the work; the usual ratio where none is known yet."""
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
        **shallow(found, *_DOLLARS, "dollars_per_terabyte"),
        "job": shallow(found.job, "dpu"),
        "shape": shape,
        "lines": [shallow(line, "quantity_per", *_DOLLARS) for line in found.lines],
        "compared": shallow(common, *_DOLLARS),
        "measured": measured and shallow(measured, "elapsed_seconds", *_MEASURED),
        "not_counted": NOT_COUNTED,
        "prices": PRICES,
    }


def _show(found: Estimate, shape: Shape, measured: MeasuredCost | None, common: JobSize) -> None:
    load, job = found.load, found.job
    made = f"{found.manifests_per_hour:,.0f} manifests an hour, {count(found.outputs_per_manifest, 'file')} each"
    hourly = f"{size(load.bytes_per_hour)} an hour, {rate(load.bytes_per_hour, 3600)}"
    print_fields(
        [
            ("load", f"{load.files_per_hour:,.0f} files an hour of {size(load.file_bytes)}: {hourly}"),
            ("job", f"{job}: {job.dpu:g} DPU around the clock, the driver's included"),
            ("engine", f"{shape.engine}; choose the other one with --engine"),
            ("makes", f"{made}, at {shape.ratio:.2f} Parquet bytes for each input byte"),
        ]
    )
    echo()
    SafeConsole().print(figures_table(_NAMES, _FIGURES, map(_row, found.lines)))
    echo()
    share = f"these workers cost {job.dollars_per_hour / common.dollars_per_hour:.2f} of that"
    print_fields(
        [
            ("total", f"{_a_month(found.dollars_per_hour)}, {dollars(found.dollars_per_terabyte)} a terabyte of input"),
            ("compared", f"{common} around the clock, workers alone: {_a_month(common.dollars_per_hour)};\n{share}"),
            *([] if measured is None else _measured_fields(measured, job)),
            ("requests", "GET stands for GET and HEAD; PUT for PUT, POST, COPY and LIST"),
            ("quantities", "given: by the options; counted: from the code; assumed: not measured"),
            ("prices", f"list prices of us-east-1 as of {AS_OF}, that of Glue 6.0 from third parties: check them"),
            ("not counted", ", ".join(NOT_COUNTED)),
        ]
    )


def _a_month(dollars_per_hour: float) -> str:
    return f"{dollars(dollars_per_hour)} an hour, {dollars(dollars_per_hour * HOURS_A_MONTH)} a month"


def _row(line: CostLine) -> tuple[str, ...]:
    price = line.price
    return (
        line.service,
        line.item,
        line.basis,
        f"{line.quantity:,.0f} / {'month' if price.is_monthly else 'h'}",
        f"{price.dollars:.6g}{_PER[price.per]}",
        f"{line.dollars_per_hour:,.3f}",
        f"{line.dollars_per_month:,.2f}",
    )


def _measured_fields(found: MeasuredCost, job: JobSize) -> list[tuple[str, str]]:
    span = f"{found.since:%Y-%m-%d %H:%M:%S} to {found.until:%m-%d %H:%M:%S} UTC"
    what = f"{count(found.input_files, 'file')}, {size(found.input_bytes)}"
    at_work = _spent(found, found.at_work_seconds, found.dollars_at_work)
    elapsed = _spent(found, found.elapsed_seconds, found.dollars_elapsed)
    speed = rate(found.input_bytes, found.at_work_seconds)
    return [
        ("measured", f"{count(found.commits, 'latest commit')}, {span}: {what},\n{speed} while at work"),
        ("their cost", f"if {job} made them: {at_work} at work; {elapsed} with pauses"),
    ]


def _spent(found: MeasuredCost, seconds: float, amount: float) -> str:
    per_terabyte = found.per_terabyte(amount)
    rest = "" if per_terabyte is None else f" ({dollars(per_terabyte)} a terabyte)"
    return f"{dollars(amount)}{rest} for {duration(seconds)}"
