"""Computes how many workers of each type a load needs at the speed of the last benchmark, and their cost. No I/O."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC
from typing import Annotated

from pydantic import AfterValidator, AwareDatetime, Field

from compactor.core.documents.document import Document
from compactor.core.results import as_document
from compactor.cost.prices import DPU_PER_WORKER, GLUE_VERSIONS, HOUR_SECONDS, TERABYTE, JobSize, Load, PricedJob

BUSY_SHARE = 0.5
"""The largest share of their time that workers are planned to be busy. The rest is for peaks and restarts. A batch then
takes half the time in which its input came, which leaves room within half the SLA."""


@as_document(omits=("megabytes_per_second",))
class BenchResult(Document):
    """The latest result of the benchmark on a machine.

    Attributes:
        cores: Number of cores.
        machine: Machine, in words.
        measured_at: Time of the benchmark.
    """

    # Millions of stored input bytes per second on all cores, by the name of the engine.
    megabytes_per_second: Mapping[str, Annotated[float, Field(gt=0, allow_inf_nan=False)]] = Field(min_length=1)
    cores: int = Field(ge=1)
    machine: str
    measured_at: Annotated[AwareDatetime, AfterValidator(lambda time: time.astimezone(UTC))]

    @property
    def bytes_per_second_per_core(self) -> dict[str, float]:
        """Stored input bytes per second on one core, by the name of the engine, the fastest first."""
        fastest_first = sorted(self.megabytes_per_second.items(), key=lambda item: -item[1])
        return {engine: speed * 1e6 / self.cores for engine, speed in fastest_first}


@as_document(shows=("share_of_compared",))
@dataclass(frozen=True, slots=True)
class WorkerNeed(PricedJob):
    """The smallest job of one worker type, on one version of Glue, that is enough for a load."""

    vcpu_per_worker: int  # virtual CPUs of a worker
    busy_share: float  # the share of the time that workers are busy, the driver's not counted
    dollars_per_terabyte: float


def worker_need(load: Load, bytes_per_second_per_core: float, worker_type: str, glue_version: str) -> WorkerNeed:
    """The smallest job of a worker type, such as `G.2X`, that is enough; a vCPU is assumed to do as much as a core."""
    vcpu = max(2, round(4 * DPU_PER_WORKER[worker_type]))  # [Glue developer guide, worker types]
    needed = load.bytes_per_hour / HOUR_SECONDS / (bytes_per_second_per_core * vcpu)  # workers that are always busy
    # Slightly less, so that the last bit of a fraction does not round a whole number of workers up.
    executors = max(1, math.ceil(needed / BUSY_SHARE - 1e-9))
    job = worker_type, executors + 1, glue_version
    dollars_per_terabyte = JobSize(*job).dollars_per_hour / (load.bytes_per_hour / TERABYTE)
    return WorkerNeed(*job, vcpu, needed / executors, dollars_per_terabyte)


@dataclass(frozen=True, slots=True)
class EngineNeed:
    """What one engine needs."""

    bytes_per_second_per_core: float  # measured speed of a core
    jobs: tuple[WorkerNeed, ...]  # enough workers, one entry for each type and Glue version


@dataclass(frozen=True, slots=True)
class Needed:
    """Workers that the load needs, by the last benchmark."""

    bench: BenchResult  # the benchmark
    engines: Mapping[str, EngineNeed]  # what each engine needs, by its name, the fastest first
    busy_share_at_most: float = BUSY_SHARE  # highest share of the time that workers may be busy


def needed(load: Load, bench: BenchResult) -> Needed:
    """The workers that a load needs, of each type on each version of Glue."""
    engines = {}
    for engine, speed in bench.bytes_per_second_per_core.items():
        jobs = (worker_need(load, speed, kind, version) for version in GLUE_VERSIONS for kind in DPU_PER_WORKER)
        engines[engine] = EngineNeed(speed, tuple(jobs))
    return Needed(bench, engines)
