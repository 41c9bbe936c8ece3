"""Computes how many workers of each type a load needs at the last benchmark's speed, and their cost. No I/O."""

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
"""The largest planned share of busy time. The rest is for peaks and restarts. A batch then takes half the time in which
its input arrived, which leaves room within half the SLA."""


@as_document(omits=("megabytes_per_second",))
class BenchResult(Document):
    """A machine's latest benchmark result.

    Attributes:
        cores: Number of cores.
        machine: Machine, in words.
        measured_at: Time of the benchmark.
    """

    # Millions of stored input bytes per second on all cores, by engine.
    megabytes_per_second: Mapping[str, Annotated[float, Field(gt=0, allow_inf_nan=False)]] = Field(min_length=1)
    cores: int = Field(ge=1)
    machine: str
    measured_at: Annotated[AwareDatetime, AfterValidator(lambda time: time.astimezone(UTC))]

    @property
    def bytes_per_second_per_core(self) -> dict[str, float]:
        """Stored input bytes per second on one core, by engine, fastest first."""
        fastest_first = sorted(self.megabytes_per_second.items(), key=lambda item: -item[1])
        return {engine: speed * 1e6 / self.cores for engine, speed in fastest_first}


@as_document(shows=("share_of_compared",))
@dataclass(frozen=True, slots=True)
class WorkerNeed(PricedJob):
    """The smallest sufficient job for a load, with one worker type on one Glue version."""

    vcpu_per_worker: int  # virtual CPUs per worker
    busy_share: float  # share of time that workers are busy, not counting the driver
    dollars_per_terabyte: float


def worker_need(load: Load, bytes_per_second_per_core: float, worker_type: str, glue_version: str) -> WorkerNeed:
    """The smallest sufficient job with a worker type such as `G.2X`; a vCPU is assumed to equal a core."""
    vcpu = max(2, round(4 * DPU_PER_WORKER[worker_type]))  # [Glue developer guide, worker types]
    needed = load.bytes_per_hour / HOUR_SECONDS / (bytes_per_second_per_core * vcpu)  # workers that are always busy
    # Slightly less, so that rounding errors do not add a worker to a whole number.
    executors = max(1, math.ceil(needed / BUSY_SHARE - 1e-9))
    job = worker_type, executors + 1, glue_version
    dollars_per_terabyte = JobSize(*job).dollars_per_hour / (load.bytes_per_hour / TERABYTE)
    return WorkerNeed(*job, vcpu, needed / executors, dollars_per_terabyte)


@dataclass(frozen=True, slots=True)
class EngineNeed:
    """One engine's needs."""

    bytes_per_second_per_core: float  # measured speed of a core
    jobs: tuple[WorkerNeed, ...]  # sufficient workers, one entry per type and Glue version


@dataclass(frozen=True, slots=True)
class Needed:
    """The workers needed for the load, by the last benchmark."""

    bench: BenchResult  # the benchmark
    engines: Mapping[str, EngineNeed]  # each engine's needs, by name, fastest first
    busy_share_at_most: float = BUSY_SHARE  # highest share of time that workers may be busy


def needed(load: Load, bench: BenchResult) -> Needed:
    """The workers needed for a load, of each type on each Glue version."""
    engines = {}
    for engine, speed in bench.bytes_per_second_per_core.items():
        jobs = (worker_need(load, speed, kind, version) for version in GLUE_VERSIONS for kind in DPU_PER_WORKER)
        engines[engine] = EngineNeed(speed, tuple(jobs))
    return Needed(bench, engines)
