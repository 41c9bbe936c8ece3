"""How many workers of each type a load needs, at a measured speed of one core, and what they cost. No I/O."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from compactor.cost.cost import Load
from compactor.cost.prices import HOURS_A_MONTH, VCPU_PER_WORKER, JobSize

BUSY_SHARE = 0.5
"""The most of their time that workers are planned to be busy. The rest is for peaks, and for catching up after a
restart; and a batch that takes half the time in which its input came is done well before half the SLA."""

_HOUR_SECONDS = 3600.0


@dataclass(frozen=True, slots=True)
class WorkerNeed:
    """The smallest job of one worker type that is enough.

    Attributes:
        job: Its workers, the driver's included.
        busy_share: Of their time, what those beside the driver work under the load.
        load: What comes in.
    """

    job: JobSize
    busy_share: float
    load: Load

    @property
    def dollars_per_hour(self) -> float:
        return self.job.dollars_per_hour

    @property
    def dollars_per_month(self) -> float:
        return self.dollars_per_hour * HOURS_A_MONTH

    @property
    def dollars_per_terabyte(self) -> float:
        """Of input, for the workers alone."""
        return self.dollars_per_hour / self.load.terabytes_per_hour


def worker_need(load: Load, bytes_per_second_per_core: float, worker_type: str, glue_version: str) -> WorkerNeed:
    """The smallest job of a worker type that is enough for a load.

    Args:
        load: What comes in.
        bytes_per_second_per_core: Measured stored input bytes; a vCPU is taken to do as much as a core did.
        worker_type: Such as `G.2X`.
        glue_version: For its price.
    """
    bytes_per_second = load.bytes_per_hour / _HOUR_SECONDS
    of_one_worker = bytes_per_second_per_core * VCPU_PER_WORKER[worker_type]
    # A hair less, so that a load of exactly so many workers is not rounded up by the last bit of a fraction.
    executors = max(1, math.ceil(bytes_per_second / (of_one_worker * BUSY_SHARE) - 1e-9))
    job = JobSize(worker_type, executors + 1, glue_version)
    return WorkerNeed(job, bytes_per_second / (of_one_worker * executors), load)


def worker_needs(load: Load, bytes_per_second_per_core: float, glue_versions: Sequence[str]) -> list[WorkerNeed]:
    """The smallest job of each worker type that has a price, on each of these versions of Glue."""
    return [
        worker_need(load, bytes_per_second_per_core, worker_type, glue_version)
        for glue_version in glue_versions
        for worker_type in VCPU_PER_WORKER
    ]
