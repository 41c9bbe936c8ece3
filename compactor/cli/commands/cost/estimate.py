"""`compactor cost estimate`: estimates the cost of a load at list prices."""

from pathlib import Path
from typing import Any

import click

from compactor.cli.invocation import Invocation, reporting
from compactor.cli.parameters import FiniteRange, destination_argument
from compactor.cli.priced_job import job_options, priced_load, region_of
from compactor.cli.ui.cost_screen import show_estimate
from compactor.cli.ui.output import print_result
from compactor.core.documents.document import parsed
from compactor.core.errors import CompactorError, RecordUnreadable
from compactor.cost.cost import CostReport
from compactor.cost.measured_cost import common_commits
from compactor.cost.price_table import REGIONS
from compactor.cost.prices import Load, prices_of
from compactor.cost.worker_needs import BenchResult, needed
from compactor.ledger.ledger import RECENT_SLOTS
from compactor.ledger.sizing import stored_ratio
from compactor.wiring.app import App

LAST_BENCH = Path(".bench/last.json")  # the result of `python -m bench`, relative to its working directory


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
