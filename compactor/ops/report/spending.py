"""What the workers of a period cost, or would cost, at list prices, next to a common job. No I/O."""

from dataclasses import dataclass

from compactor.cost.cost import Basis, Load, Shape, estimate
from compactor.cost.prices import TERABYTE, JobSize
from compactor.ops.report.figures import Figures

_HOUR_SECONDS = 3600.0


@dataclass(frozen=True, slots=True)
class ServiceCost:
    """The estimated dollars of one service for the load of the period, workers aside.

    Attributes:
        dollars: The cost of the period.
    """

    service: str
    item: str
    basis: Basis
    dollars: float


@dataclass(frozen=True, slots=True)
class Spending:
    """The cost of a period.

    Attributes:
        job: The workers to price.
        is_job_named: Whether the user named them; the ledger does not record workers.
        classic: The common job, which runs around the clock.
        is_local: Whether the state is on a disk, so that nothing was paid to AWS.
        elapsed_seconds: The length of the period.
        at_work_seconds: Time during which at least one manifest was being processed.
        services: Estimates of other services; empty without input.
    """

    job: JobSize
    is_job_named: bool
    classic: JobSize
    is_local: bool
    elapsed_seconds: float
    at_work_seconds: float
    input_bytes: int
    services: tuple[ServiceCost, ...]

    @property
    def classic_dollars(self) -> float:
        return self.classic.dollars_per_hour * self.elapsed_seconds / _HOUR_SECONDS

    @property
    def job_dollars(self) -> float:
        return self.job.dollars_per_hour * self.elapsed_seconds / _HOUR_SECONDS

    @property
    def at_work_dollars(self) -> float:
        """The job, if it ran only while it was at work."""
        return self.job.dollars_per_hour * self.at_work_seconds / _HOUR_SECONDS

    def per_terabyte(self, dollars: float) -> float | None:
        """Dollars per terabyte of input; None if there was no input."""
        return dollars / (self.input_bytes / TERABYTE) if self.input_bytes else None


def service_costs(figures: Figures, job: JobSize, shape: Shape) -> tuple[ServiceCost, ...]:
    """Estimates for the services other than Glue; none without input."""
    totals, hours = figures.totals, figures.period.seconds / _HOUR_SECONDS
    if not totals.input_bytes:
        return ()
    load = Load(totals.input_files / hours, max(1, totals.input_bytes // totals.input_files))
    return tuple(
        ServiceCost(line.service, line.item, line.basis, line.dollars_per_hour * hours)
        for line in estimate(load, job, shape).lines
        if line.service != "Glue"
    )
