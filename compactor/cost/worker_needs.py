"""Computes how many workers of each type a load needs at a measured speed of one core, and their cost. No I/O."""

import math
from dataclasses import dataclass

from compactor.cost.cost import Load
from compactor.cost.prices import HOUR_SECONDS, VCPU_PER_WORKER, JobSize

BUSY_SHARE = 0.5
"""The largest share of their time that workers are planned to be busy. The rest is for peaks and restarts. A batch then
takes half the time in which its input came, which leaves room within half the SLA."""


@dataclass(frozen=True, slots=True)
class WorkerNeed:
    """The smallest job of one worker type that is enough for a load."""

    job: JobSize
    busy_share: float  # the share of time for which the workers are busy, without the driver
    dollars_per_terabyte: float


def worker_need(load: Load, bytes_per_second_per_core: float, worker_type: str, glue_version: str) -> WorkerNeed:
    """The smallest job of a worker type, such as `G.2X`, that is enough; a vCPU is assumed to do as much as a core."""
    bytes_per_second = load.bytes_per_hour / HOUR_SECONDS
    of_one_worker = bytes_per_second_per_core * VCPU_PER_WORKER[worker_type]
    # Slightly less, so that the last bit of a fraction does not round a whole number of workers up.
    executors = max(1, math.ceil(bytes_per_second / (of_one_worker * BUSY_SHARE) - 1e-9))
    job = JobSize(worker_type, executors + 1, glue_version)
    busy_share = bytes_per_second / (of_one_worker * executors)
    return WorkerNeed(job, busy_share, job.dollars_per_hour / load.terabytes_per_hour)
