"""What the workers of a period cost, or would cost, at list prices, next to a common job. No I/O."""

from dataclasses import dataclass

from compactor.cost.cost import Basis, Load, Shape, estimate
from compactor.cost.measured_cost import MeasuredCost
from compactor.cost.prices import HOUR_SECONDS, JobSize
from compactor.ops.report.figures import Figures


@dataclass(frozen=True, slots=True)
class ServiceCost:
    """The estimated dollars of one service for the load of the period, workers aside."""

    service: str
    item: str
    basis: Basis
    dollars: float  # the cost of the period


@dataclass(frozen=True, slots=True, kw_only=True)
class Spending(MeasuredCost):
    """The cost of all commits of a period, however many, from its start to its end, on the workers to price."""

    job: JobSize  # the workers to price
    is_job_named: bool  # whether the user named them; the ledger does not record workers
    is_local: bool  # whether the state is on a disk, so that nothing was paid to AWS
    is_by_hand: bool  # whether a person compacted a folder, on a machine whose price is not known
    services: tuple[ServiceCost, ...]  # estimates of other services; empty without input or a price

    @property
    def has_price(self) -> bool:
        """Whether dollars mean anything: the work ran on Glue, or the user asks what it would cost there."""
        return self.is_job_named or not (self.is_local or self.is_by_hand)

    @property
    def classic_dollars(self) -> float:
        """Dollars for the compared job around the clock."""
        return self.job.compared.dollars_per_hour * self.elapsed_seconds / HOUR_SECONDS


def service_costs(figures: Figures, job: JobSize, shape: Shape) -> tuple[ServiceCost, ...]:
    """Estimates for the services other than Glue; none without input."""
    totals, hours = figures.totals, figures.period.seconds / HOUR_SECONDS
    if not totals.input_bytes:
        return ()
    load = Load(totals.input_files / hours, max(1, totals.input_bytes // totals.input_files))
    return tuple(
        ServiceCost(line.service, line.item, line.basis, line.dollars_per_hour * hours)
        for line in estimate(load, job, shape).lines
        if line.service != "Glue"
    )
