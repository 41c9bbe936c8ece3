"""A report: the figures of a period, the verdict on them and their price. No I/O."""

from dataclasses import asdict, dataclass
from datetime import datetime
from typing import Any

from compactor.core.text.safe_text import Suggestions
from compactor.cost.cost import Basis, Load, Shape, estimate
from compactor.cost.measured_cost import MEASURED_DOLLARS, MeasuredCost
from compactor.cost.prices import HOUR_SECONDS, JobSize
from compactor.ops.report.figures import Figures
from compactor.ops.report.verdict import Verdict


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


_POINT = ("condition", "severity", "reason", "next_move")
_COST = ("is_job_named", "is_local", "is_by_hand", "services", "at_work_seconds", "elapsed_seconds")


@dataclass(frozen=True, slots=True)
class Report:
    """Everything that a page shows."""

    made_at: datetime  # when the ledger was read
    place: str  # the prefix of the state
    suggest: Suggestions  # how commands are suggested to those who read it
    sla_seconds: float | None  # how long a file may take to become visible; None without an SLA
    has_samples: bool  # rejected lines were read as well
    figures: Figures
    verdict: Verdict
    spending: Spending

    @property
    def folder(self) -> str:
        """What `compact` wrote, as commands name it; empty for a job."""
        return self.suggest.folder

    @property
    def needs_operator(self) -> bool:
        return self.verdict.severity == "act"

    def document(self) -> dict[str, Any]:
        """The report as JSON, with the key names that other commands use."""
        verdict, spent = self.verdict, self.spending
        return {
            "as_of": self.made_at,
            "state_folder": self.place,
            "folder": self.folder,
            "sla_seconds": self.sla_seconds,
            "needs_operator": self.needs_operator,
            "verdict": {
                "severity": verdict.severity,
                "headline": verdict.headline,
                "points": [{name: getattr(each, name) for name in _POINT} for each in verdict.points],
            },
            **vars(self.figures),
            "cost": _cost(spent),
        }


def _cost(spent: Spending) -> dict[str, Any]:
    """The cost; without a price, all that is measured."""
    dollars = {name: getattr(spent, name) if spent.has_price else None for name in MEASURED_DOLLARS}
    compared = {
        **asdict(spent.job.compared),
        "dollars_elapsed": spent.classic_dollars,
        "dollars_per_terabyte_elapsed": spent.per_terabyte(spent.classic_dollars),
    }
    return {
        **{name: getattr(spent, name) for name in _COST},
        **dollars,
        "job": spent.job if spent.has_price else None,
        "compared": compared if spent.has_price else None,
    }
