"""Shows how many workers a load needs at the speed of the last benchmark: a part of `compactor cost`."""

from collections.abc import Iterable, Sequence
from datetime import UTC
from typing import Any

from rich.table import Table

from compactor.cli.ui.console import SafeConsole
from compactor.cli.ui.output import print_fields, shallow
from compactor.core.formatting import count, rate
from compactor.cost.bench_result import BenchResult
from compactor.cost.cost import Load
from compactor.cost.prices import GLUE_VERSIONS, VCPU_PER_WORKER, JobSize
from compactor.cost.worker_needs import BUSY_SHARE, WorkerNeed, worker_needs

HOW_TO_MEASURE = "run `make bench` here, or name its result by --bench FILE"
_HEADINGS = ("workers", "vCPU", "busy", "$ an hour", "$ a month", "$ a TB", "of that job")


def figures_table(names: Sequence[str], figures: Sequence[str], rows: Iterable[Sequence[str]]) -> Table:
    """A table with columns of names, then columns of figures, which are aligned to the right."""
    table = Table(box=None, padding=(0, 1, 0, 0), pad_edge=False, header_style="bold")
    for name in names:
        table.add_column(name, no_wrap=True)
    for name in figures:
        table.add_column(name, justify="right", no_wrap=True)
    for row in rows:
        table.add_row(*row)
    return table


def needs_document(result: BenchResult, load: Load, common: JobSize) -> dict[str, Any]:
    """The speeds, and for each engine what the load needs on each version of Glue and worker type."""
    per_core = {engine: result.bytes_per_second_per_core(engine) for engine in result.megabytes_per_second}
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
                "bytes_per_second_per_core": speed,
                "jobs": [_entry(need, common) for need in worker_needs(load, speed, GLUE_VERSIONS)],
            }
            for engine, speed in per_core.items()
        },
    }


def _entry(need: WorkerNeed, common: JobSize) -> dict[str, Any]:
    job = need.job
    same = JobSize(common.worker_type, common.workers, job.glue_version)
    return {
        **shallow(job, "dollars_per_hour", "dollars_per_month"),
        "vcpu_per_worker": VCPU_PER_WORKER[job.worker_type],
        "busy_share": need.busy_share,
        "dollars_per_terabyte": need.dollars_per_terabyte,
        "share_of_compared": job.dollars_per_hour / same.dollars_per_hour,
    }


def show_needs(result: BenchResult, load: Load, common: JobSize) -> None:
    """Print for each engine what the load needs of each worker type, on the Glue version of the common job."""
    where = f"{count(result.cores, 'core')} ({result.machine}), {result.measured_at:%Y-%m-%d}"
    for engine, speed in sorted(result.megabytes_per_second.items(), key=lambda item: -item[1]):
        per_core = result.bytes_per_second_per_core(engine)
        print_fields([("engine", f"{engine}, {rate(per_core, 1)} a core: {speed:,.0f} MB/s on {where}")])
        needs = worker_needs(load, per_core, [common.glue_version])
        rows = [_row(need, common) for need in needs]
        SafeConsole().print(figures_table([f"Glue {common.glue_version}"], _HEADINGS, rows))
    print_fields(
        [
            ("workers", f"with the driver's; the others at most {BUSY_SHARE:.0%} busy, for peaks and restarts"),
            ("assumed", "a vCPU is as fast as a core of that machine, and S3 as fast as its disk: try it on AWS"),
        ]
    )


def _row(need: WorkerNeed, common: JobSize) -> tuple[str, ...]:
    return (
        need.job.worker_type,
        f"{need.job.workers:,}",
        f"{VCPU_PER_WORKER[need.job.worker_type]}",
        f"{need.busy_share:.0%}",
        f"{need.job.dollars_per_hour:,.2f}",
        f"{need.job.dollars_per_month:,.0f}",
        f"{need.dollars_per_terabyte:,.2f}",
        f"{need.job.dollars_per_hour / common.dollars_per_hour:.2f}",
    )
