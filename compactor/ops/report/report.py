"""A report: the figures of a period, the verdict on them and their price. No I/O."""

from dataclasses import dataclass, replace
from datetime import datetime

from compactor.core.results import as_document
from compactor.core.text.safe_text import Suggestions
from compactor.cost.cost import Basis, Load, Shape, estimate
from compactor.cost.measured_cost import MEASURED_DOLLARS, MeasuredCost
from compactor.cost.prices import HOUR_SECONDS, JobSize, PricedJob
from compactor.ops.report.figures import Figures
from compactor.ops.report.verdict import Verdict


@dataclass(frozen=True, slots=True)
class ServiceCost:
    """The estimated dollars of one service for the load of the period, workers aside."""

    service: str
    item: str
    basis: Basis
    dollars: float  # the cost of the period


@dataclass(frozen=True, slots=True)
class ComparedJob(JobSize):
    """A common job to compare with."""

    dollars_elapsed: float  # cost of the whole period
    dollars_per_terabyte_elapsed: float | None  # the same per terabyte; null without input


@dataclass(frozen=True, slots=True, kw_only=True)
class Cost:
    """Cost of the period, at list prices. Dollars are null for work on a machine whose price is not known."""

    is_job_named: bool  # whether the user named the workers; the ledger does not record them
    is_local: bool  # whether the state is on a disk, so that nothing was paid to AWS
    is_by_hand: bool  # whether a person compacted a folder, on a machine whose price is not known
    services: tuple[ServiceCost, ...]  # estimates of other services; empty without input or a price
    at_work_seconds: float  # the time during which at least one commit was in progress
    elapsed_seconds: float  # length of the period
    job: PricedJob | None = None  # the workers to price; null without a price
    dollars_at_work: float | None = None  # cost of the workers for the time at work; null without a price
    dollars_elapsed: float | None = None  # cost of the workers for the whole time; null without a price
    dollars_per_terabyte_at_work: float | None = None  # cost of the time at work per terabyte; null without input
    dollars_per_terabyte_elapsed: float | None = None  # cost of the whole time per terabyte; null without input
    compared: ComparedJob | None = None  # a common job to compare with; null without a price


@dataclass(frozen=True, slots=True, kw_only=True)
class Spending(MeasuredCost):
    """The cost of all commits of a period, however many, from its start to its end, on the workers to price."""

    job: PricedJob  # the workers to price
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

    @property
    def cost(self) -> Cost:
        """The cost as it is printed."""
        measured = Cost(
            is_job_named=self.is_job_named,
            is_local=self.is_local,
            is_by_hand=self.is_by_hand,
            services=self.services,
            at_work_seconds=self.at_work_seconds,
            elapsed_seconds=self.elapsed_seconds,
        )
        if not self.has_price:
            return measured
        other, dollars = self.job.compared, self.classic_dollars
        compared = ComparedJob(
            other.worker_type, other.workers, other.glue_version, dollars, self.per_terabyte(dollars)
        )
        prices = {name: getattr(self, name) for name in MEASURED_DOLLARS}
        return replace(measured, job=self.job, compared=compared, **prices)


def service_costs(figures: Figures, job: PricedJob, shape: Shape) -> tuple[ServiceCost, ...]:
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


@as_document(
    shows=("folder", "needs_operator", "cost"), omits=("suggest", "has_samples", "spending"), inlines={"figures": ()}
)
@dataclass(frozen=True, slots=True)
class Report:
    """The figures of a period. No page is written unless `--out` names a file."""

    as_of: datetime  # time at which the ledger was read
    state_folder: str  # the place `paths.state`
    suggest: Suggestions  # how commands are suggested to those who read it
    # Longest time a file should take to be visible; null for a folder without `control.sla_seconds`
    sla_seconds: float | None
    has_samples: bool  # rejected lines were read as well
    figures: Figures
    verdict: Verdict  # how the period went
    spending: Spending

    @property
    def folder(self) -> str:
        """The folder that `compact` wrote, as commands name it; empty for a job."""
        return self.suggest.folder

    @property
    def needs_operator(self) -> bool:
        """Whether something of the period needs a person: the exit code is 3."""
        return self.verdict.severity == "act"

    @property
    def cost(self) -> Cost:
        """Cost of the period."""
        return self.spending.cost
