"""Shows how many workers a load needs at the speed of the last benchmark: a part of `compactor cost`."""

from collections.abc import Sequence
from datetime import UTC
from typing import Any

from rich.console import Console
from rich.table import Table

from compactor.cli.ui.output import print_fields, shallow
from compactor.core.formatting import count, rate
from compactor.cost.bench_result import BenchResult
from compactor.cost.cost import Load
from compactor.cost.prices import GLUE_VERSIONS, VCPU_PER_WORKER, JobSize
from compactor.cost.worker_needs import BUSY_SHARE, WorkerNeed, worker_needs

HOW_TO_MEASURE = "run `make bench` here, or name its result by --bench FILE"
_HEADINGS = ("workers", "vCPU", "busy", "$ an hour", "$ a month", "$ a TB", "of that job")


def needs_document(result: BenchResult, load: Load, common: JobSize) -> dict[str, Any]:
    """The speeds, and for each engine what the load needs on each version of Glue and worker type."""
    return {
        "bench": {
            "bytes_per_second": {engine: speed * 1e6 for engine, speed in result.megabytes_per_second.items()},
            "cores": result.cores,
            "machine": result.machine,
            "measured_at": result.measured_at.astimezone(UTC),
        },
        "busy_share_at_most": BUSY_SHARE,
        "engines": {
            engine: {
                "bytes_per_second_per_core": result.bytes_per_second_per_core(engine),
                "jobs": [
                    _entry(need, common)
                    for need in worker_needs(load, result.bytes_per_second_per_core(engine), GLUE_VERSIONS)
                ],
            }
            for engine in result.megabytes_per_second
        },
    }


def show_needs(result: BenchResult, load: Load, common: JobSize) -> None:
    """Print for each engine what the load needs of each worker type.

    Args:
        result: Of the benchmark.
        load: What comes in.
        common: The job that the others are set against; its version of Glue is the one that is shown.
    """
    for engine, speed in sorted(result.megabytes_per_second.items(), key=lambda item: -item[1]):
        per_core = result.bytes_per_second_per_core(engine)
        where = f"{count(result.cores, 'core')} ({result.machine}), {result.measured_at:%Y-%m-%d}"
        print_fields([("engine", f"{engine}, {rate(per_core, 1)} a core: {speed:,.0f} MB/s on {where}")])
        Console(highlight=False).print(_table(worker_needs(load, per_core, [common.glue_version]), common))
    print_fields(
        [
            ("workers", f"with the driver's; the others at most {BUSY_SHARE:.0%} busy, for peaks and restarts"),
            ("taken", "that a vCPU does what a core of that machine did, and that S3 is as fast as its disk: try it"),
        ]
    )


def _table(needs: Sequence[WorkerNeed], common: JobSize) -> Table:
    table = Table(box=None, padding=(0, 1, 0, 0), pad_edge=False, header_style="bold")
    table.add_column(f"Glue {common.glue_version}", no_wrap=True)
    for heading in _HEADINGS:
        table.add_column(heading, justify="right", no_wrap=True)
    for need in needs:
        table.add_row(
            need.job.worker_type,
            f"{need.job.workers:,}",
            f"{VCPU_PER_WORKER[need.job.worker_type]}",
            f"{need.busy_share:.0%}",
            f"{need.dollars_per_hour:,.2f}",
            f"{need.dollars_per_month:,.0f}",
            f"{need.dollars_per_terabyte:,.2f}",
            f"{need.dollars_per_hour / common.dollars_per_hour:.2f}",
        )
    return table


def _entry(need: WorkerNeed, common: JobSize) -> dict[str, Any]:
    same = JobSize(common.worker_type, common.workers, need.job.glue_version)
    return {
        **shallow(need.job),
        "vcpu_per_worker": VCPU_PER_WORKER[need.job.worker_type],
        "busy_share": need.busy_share,
        "dollars_per_hour": need.dollars_per_hour,
        "dollars_per_month": need.dollars_per_month,
        "dollars_per_terabyte": need.dollars_per_terabyte,
        "share_of_compared": need.dollars_per_hour / same.dollars_per_hour,
    }
