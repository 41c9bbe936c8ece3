"""`compactor cost`: the cost of a load at list prices, and of the latest commits."""

from pathlib import Path
from typing import Any, get_args

import click

from compactor.cli.destination import destination_argument
from compactor.cli.invocation import Invocation, body, json_option
from compactor.cli.ui.cost_screen import show_estimate, show_needs
from compactor.cli.ui.output import picked, print_json, shallow
from compactor.core.errors import CompactorError, RecordUnreadable
from compactor.core.records import read_record
from compactor.cost.cost import NOT_COUNTED, REFERENCE_RATIO, Load, Shape, estimate
from compactor.cost.measured_cost import MEASURED_DOLLARS, measured_cost
from compactor.cost.prices import CLASSIC, DOLLARS, DPU_PER_WORKER, GLUE_VERSIONS, PRICES, JobSize
from compactor.cost.worker_needs import BUSY_SHARE, BenchResult, worker_need
from compactor.engines.engine import EngineName
from compactor.ledger.sizing import learned_ratio
from compactor.settings.sections import Builder, Convert, Output, Stream
from compactor.settings.settings import Settings
from compactor.wiring.app import App
from compactor.wiring.engine_choice import engine_of

LAST_BENCH = Path(".bench/last.json")  # the result of `python -m bench`, below the folder that it ran in


@click.command("cost", context_settings={"show_default": True})
@destination_argument
@click.option("--files-per-hour", type=click.FloatRange(0, min_open=True), default=200_000, help="Input files an hour.")
@click.option("--file-bytes", type=click.IntRange(min=1), default=3_670_016, help="Size of a file.")
@click.option("--worker-type", type=click.Choice(DPU_PER_WORKER), default=CLASSIC.worker_type, help="Glue worker type.")
@click.option("--workers", type=click.IntRange(min=2), default=CLASSIC.workers, help="All workers; one is the driver.")
@click.option("--glue-version", type=click.Choice(GLUE_VERSIONS), default=CLASSIC.glue_version, help="Glue version.")
@click.option(
    "--engine",
    type=click.Choice(get_args(EngineName)),
    help="Default: the engine of the settings, else native if it is installed.",
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
    engine: EngineName | None,
    bench: Path | None,
    as_json: bool,
    **workers: Any,
) -> None:
    """Estimate the cost of a load; with settings, also show that of the latest commits.

    Prices are list prices of us-east-1: check them before quoting. The named workers are taken to be enough. With the
    result of a benchmark, the command shows how many workers of each type the load needs at that speed.
    """
    result = _bench_result(bench or LAST_BENCH) if bench or LAST_BENCH.is_file() else None
    job = JobSize(**workers)
    app = App(invocation.settings()) if invocation.has_settings else None
    recent = app.ledger.recent() if app else []
    shape = shape_of(app.settings if app else None, engine, learned_ratio(recent))
    found = estimate(Load(files_per_hour, file_bytes), job, shape)
    measured = measured_cost(recent, job.dollars_per_hour)
    if not as_json:
        show_estimate(found, measured)
        show_needs(result, found)
        return
    print_json(
        {
            **shallow(found, *DOLLARS, "dollars_per_terabyte"),
            "job": shallow(job, "dpu"),
            "lines": [shallow(line, *DOLLARS) for line in found.lines],
            "compared": shallow(job.compared, *DOLLARS),
            "measured": measured and shallow(measured, "elapsed_seconds", *MEASURED_DOLLARS),
            "not_counted": NOT_COUNTED.split(", "),
            "prices": PRICES,
            "needed": result and _needed(result, found.load),
        }
    )


def _bench_result(path: Path) -> BenchResult:
    expected = "what `python -m bench` writes to .bench/last.json"
    try:
        return read_record(BenchResult.model_validate_json, path.read_bytes(), str(path), expected=expected)
    except OSError as exc:
        raise CompactorError(f"{path}: {exc.strerror}; expected {expected}") from exc
    except RecordUnreadable as exc:  # whose next move is for records of the ledger
        raise CompactorError(str(exc)) from exc


def shape_of(settings: Settings | None, engine: EngineName | None, ratio: float | None) -> Shape:
    """How settings, or the defaults, divide the work on an engine, or theirs; the usual ratio where none is known."""
    convert, builder = (settings.convert, settings.builder) if settings else (Convert(), Builder())
    output, stream = (settings.output, settings.stream) if settings else (Output(), Stream())
    return Shape(
        # Not `App.engine_name`: the wheel that the job has need not be installed here.
        engine=engine or engine_of(convert),
        target_manifest_bytes=builder.target_manifest_bytes,
        target_file_bytes=output.target_file_bytes,
        max_wait_seconds=builder.max_wait_seconds,
        trigger_interval_seconds=stream.trigger_interval_seconds,
        ratio=REFERENCE_RATIO if ratio is None else ratio,
    )


def _needed(result: BenchResult, load: Load) -> dict[str, Any]:
    return {
        "bench": picked(result, "cores", "machine", "measured_at"),
        "busy_share_at_most": BUSY_SHARE,
        "engines": {
            engine: {
                "bytes_per_second_per_core": speed,
                "jobs": [
                    shallow(worker_need(load, speed, worker_type, version), *DOLLARS, "share_of_compared")
                    for version in GLUE_VERSIONS
                    for worker_type in DPU_PER_WORKER
                ],
            }
            for engine, speed in result.bytes_per_second_per_core.items()
        },
    }
