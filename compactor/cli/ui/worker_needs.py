"""Shows how many workers a load needs at the speed of the last benchmark: a part of `compactor cost`."""

from collections.abc import Callable
from datetime import UTC
from typing import Any

import click

from compactor.cli.ui.output import print_fields, print_table, shallow
from compactor.core.formatting import count, rate
from compactor.cost.bench_result import BenchResult
from compactor.cost.cost import Load
from compactor.cost.prices import GLUE_VERSIONS, VCPU_PER_WORKER, JobSize
from compactor.cost.worker_needs import BUSY_SHARE, WorkerNeed, worker_need

_FIGURES: dict[str, Callable[[dict[str, Any]], str]] = {
    "workers": "{workers:,}".format_map,
    "vCPU": "{vcpu_per_worker}".format_map,
    "busy": "{busy_share:.0%}".format_map,
    "$ an hour": "{dollars_per_hour:,.2f}".format_map,
    "$ a month": "{dollars_per_month:,.0f}".format_map,
    "$ a TB": "{dollars_per_terabyte:,.2f}".format_map,
    "of that job": "{share_of_compared:.2f}".format_map,
}


def needs_document(result: BenchResult, load: Load, common: JobSize) -> dict[str, Any]:
    """The speeds, and for each engine what the load needs on each version of Glue and worker type."""
    speeds = {engine: speed * 1e6 for engine, speed in result.megabytes_per_second.items()}
    return {
        "bench": {
            "bytes_per_second": speeds,
            "cores": result.cores,
            "machine": result.machine,
            "measured_at": result.measured_at.astimezone(UTC),
        },
        "busy_share_at_most": BUSY_SHARE,
        "engines": {
            engine: {
                "bytes_per_second_per_core": speed / result.cores,
                "jobs": [
                    _job(worker_need(load, speed / result.cores, worker_type, glue_version), common)
                    for glue_version in GLUE_VERSIONS
                    for worker_type in VCPU_PER_WORKER
                ],
            }
            for engine, speed in speeds.items()
        },
    }


def _job(need: WorkerNeed, common: JobSize) -> dict[str, Any]:
    job = need.job
    same = JobSize(common.worker_type, common.workers, job.glue_version)
    return {
        **shallow(job, "dollars_per_hour", "dollars_per_month"),
        "vcpu_per_worker": VCPU_PER_WORKER[job.worker_type],
        "busy_share": need.busy_share,
        "dollars_per_terabyte": need.dollars_per_terabyte,
        "share_of_compared": job.dollars_per_hour / same.dollars_per_hour,
    }


def show_needs(document: dict[str, Any] | None, glue_version: str) -> None:
    """Print for each engine, the fastest first, what the load needs of each worker type on a version of Glue."""
    if document is None:
        how = "run `make bench` here, or name its result by --bench FILE"
        print_fields([("enough?", f"to see how many workers the load needs, {how}")])
        return
    click.echo()
    bench = document["bench"]
    where = f"{count(bench['cores'], 'core')} ({bench['machine']}), {bench['measured_at']:%Y-%m-%d}"
    columns = {f"Glue {glue_version}": "{worker_type}".format_map, **_FIGURES}
    for engine, speed in sorted(bench["bytes_per_second"].items(), key=lambda item: -item[1]):
        found = document["engines"][engine]
        per_core = rate(found["bytes_per_second_per_core"], 1)
        print_fields([("engine", f"{engine}, {per_core} a core: {speed / 1e6:,.0f} MB/s on {where}")])
        print_table(columns, [job for job in found["jobs"] if job["glue_version"] == glue_version], names=1)
    print_fields(
        [
            ("workers", f"with the driver's; the others at most {BUSY_SHARE:.0%} busy, for peaks and restarts"),
            ("assumed", "a vCPU is as fast as a core of that machine, and S3 as fast as its disk: try it on AWS"),
        ]
    )
