"""What the period cost, or would have on AWS, against ten workers around the clock. By list prices, no I/O."""

from dataclasses import dataclass

from compactor.cost.cost import Basis, Load, Shape, estimate
from compactor.cost.measured_cost import MeasuredCost
from compactor.cost.prices import JobSize
from compactor.ops.report.figures import Figures

_HOUR_SECONDS = 3600.0


@dataclass(frozen=True, slots=True)
class Spending:
    """Dollars of a period.

    Attributes:
        job: The workers that are reckoned with.
        is_job_named: Somebody said that these were the ones at work; the ledger does not know.
        classic: The workers of the classic plan.
        is_local: The state is on a disk, so no workers of AWS were paid.
        elapsed_seconds: Of the period.
        at_work_seconds: Of the period, while at least one manifest was in work.
        classic_dollars: The classic plan, around the clock.
        job_dollars: The job, around the clock.
        at_work_dollars: The job, if it were up only while it is at work.
        classic_dollars_per_terabyte: Of input; None where there was none. The others likewise.
    """

    job: JobSize
    is_job_named: bool
    classic: JobSize
    is_local: bool
    elapsed_seconds: float
    at_work_seconds: float
    classic_dollars: float
    job_dollars: float
    at_work_dollars: float
    classic_dollars_per_terabyte: float | None
    job_dollars_per_terabyte: float | None
    at_work_dollars_per_terabyte: float | None
    services: "tuple[ServiceCost, ...]"


@dataclass(frozen=True, slots=True)
class ServiceCost:
    """What one service takes for the load of the period, beside the workers; an estimate."""

    service: str
    item: str
    basis: Basis
    dollars: float


def spending(
    figures: Figures, *, job: JobSize, is_job_named: bool, classic: JobSize, shape: Shape, is_local: bool
) -> Spending:
    """Reckon a period.

    Args:
        figures: What was done.
        job: The workers.
        is_job_named: Somebody named them.
        classic: Those of the classic plan.
        shape: How the work is cut.
        is_local: The state is on a disk.
    """
    measured, compared = _measured(figures, job), _measured(figures, classic)
    return Spending(
        job=job,
        is_job_named=is_job_named,
        classic=classic,
        is_local=is_local,
        elapsed_seconds=measured.elapsed_seconds,
        at_work_seconds=measured.at_work_seconds,
        classic_dollars=compared.dollars_elapsed,
        job_dollars=measured.dollars_elapsed,
        at_work_dollars=measured.dollars_at_work,
        classic_dollars_per_terabyte=measured.per_terabyte(compared.dollars_elapsed),
        job_dollars_per_terabyte=measured.per_terabyte(measured.dollars_elapsed),
        at_work_dollars_per_terabyte=measured.per_terabyte(measured.dollars_at_work),
        services=_services(figures, job, shape),
    )


def _measured(figures: Figures, job: JobSize) -> MeasuredCost:
    totals = figures.totals
    return MeasuredCost(
        commits=totals.manifests,
        since=figures.period.since,
        until=figures.period.until,
        input_files=totals.input_files,
        input_bytes=totals.input_bytes,
        at_work_seconds=totals.at_work_seconds,
        dollars_per_hour=job.dollars_per_hour,
    )


def _services(figures: Figures, job: JobSize, shape: Shape) -> tuple[ServiceCost, ...]:
    totals, hours = figures.totals, figures.period.seconds / _HOUR_SECONDS
    if not totals.input_bytes:
        return ()
    load = Load(totals.input_files / hours, max(1, totals.input_bytes // totals.input_files))
    lines = estimate(load, job, shape).lines
    return tuple(
        ServiceCost(line.service, line.item, line.basis, line.dollars_per_hour * hours)
        for line in lines
        if line.service != "Glue"
    )
