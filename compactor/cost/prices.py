"""List prices of AWS in US dollars for us-east-1, each with its source and date. Check before quoting."""

from dataclasses import dataclass
from typing import Protocol

AS_OF = "2026-11-20"
HOUR_SECONDS = 3600.0
HOURS_A_MONTH = 730
TERABYTE = 1e12

_LIST = "public list price, as third parties quote it"
_UNSEEN = "third parties; AWS's page was not seen"


@dataclass(frozen=True, slots=True)
class Price:
    """One price."""

    dollars: float  # the price of `per` units
    per: int  # the number of units that the price is for
    unit: str  # what is counted
    source: str = _LIST  # where the figure comes from
    as_of: str = AS_OF  # the date it was looked up
    is_monthly: bool = False  # whether a unit is paid for a month

    def dollars_per_hour(self, quantity: float) -> float:
        """Dollars per hour for this many units: those of an hour, or those of a month where the price is monthly."""
        return quantity * self.dollars / self.per / (HOURS_A_MONTH if self.is_monthly else 1)


PRICES = {
    "glue_dpu_hour": Price(0.44, 1, "DPU-hour of Glue 2.0 to 5.1"),
    "glue_memory_dpu_hour": Price(0.52, 1, "memory-optimised DPU-hour of Glue 2.0 to 5.1"),
    "glue_6_dpu_hour": Price(0.308, 1, "DPU-hour of Glue 6.0", _UNSEEN),
    "glue_6_memory_dpu_hour": Price(0.364, 1, "memory-optimised DPU-hour of Glue 6.0", _UNSEEN),
    "s3_put": Price(0.005, 1000, "PUT, COPY, POST or LIST request, S3 Standard"),
    "s3_get": Price(0.0004, 1000, "GET or HEAD request, S3 Standard; DELETE is free"),
    "sqs": Price(0.40, 1_000_000, "request to a standard queue"),
    "lambda_gb_second": Price(0.0000166667, 1, "GB-second of Lambda on x86"),
    "lambda_call": Price(0.20, 1_000_000, "call of a function"),
    "dynamodb_write": Price(0.625, 1_000_000, "write of up to 1 KB, on demand"),
    "dynamodb_read": Price(0.125, 1_000_000, "consistent read of up to 4 KB, on demand"),
    "cloudwatch_metric": Price(0.30, 1, "metric, of the first 10,000", is_monthly=True),
    "cloudwatch_request": Price(0.01, 1000, "PutMetricData request"),
    "cloudwatch_alarm": Price(0.10, 1, "alarm", is_monthly=True),
    "cloudwatch_dashboard": Price(3.00, 1, "dashboard", is_monthly=True),
}
"""All prices that an estimate may use. Free tiers and discounts are left out."""

DPU_PER_WORKER = {
    "G.025X": 0.25,
    **{f"G.{dpu}X": float(dpu) for dpu in (1, 2, 4, 8, 12, 16)},
    **{f"R.{dpu}X": float(dpu) for dpu in (1, 2, 4, 8)},
}
"""DPU of one worker, by its type. R types are memory-optimised [Glue developer guide, worker types]."""

GLUE_VERSIONS = ("4.0", "5.0", "5.1", "6.0")  # those with a known price
DOLLARS = ("dollars_per_hour", "dollars_per_month")  # the properties of a cost by the hour


class HourlyCost(Protocol):
    """A cost by the hour, also by the month."""

    @property
    def dollars_per_hour(self) -> float: ...

    @property
    def dollars_per_month(self) -> float:
        return self.dollars_per_hour * HOURS_A_MONTH


@dataclass(frozen=True, slots=True)
class JobSize(HourlyCost):
    """The workers of a Glue job."""

    worker_type: str  # the type of a worker, such as `G.2X`
    workers: int  # the number of workers, the driver's included
    glue_version: str  # the version of Glue, such as `6.0`

    @property
    def dpu(self) -> float:
        """DPU of all workers together."""
        return DPU_PER_WORKER[self.worker_type] * self.workers

    @property
    def is_priced(self) -> bool:
        """Whether the price of these workers on this version is known."""
        return self.worker_type in DPU_PER_WORKER and self.glue_version in GLUE_VERSIONS

    @property
    def price(self) -> Price:
        version = "glue_6" if self.glue_version == "6.0" else "glue"
        return PRICES[f"{version}_memory_dpu_hour" if self.worker_type.startswith("R.") else f"{version}_dpu_hour"]

    @property
    def dollars_per_hour(self) -> float:
        return self.price.dollars_per_hour(self.dpu)

    @property
    def compared(self) -> "JobSize":
        """A common job on the same version of Glue."""
        return JobSize(CLASSIC.worker_type, CLASSIC.workers, self.glue_version)

    @property
    def share_of_compared(self) -> float:
        """Cost as a fraction of the compared job's."""
        return self.dollars_per_hour / self.compared.dollars_per_hour

    def __str__(self) -> str:
        return f"{self.workers} x {self.worker_type}, Glue {self.glue_version}"


CLASSIC = JobSize("G.2X", 10, "6.0")
"""What a job is compared with, on its own version of Glue, and what an option stands for that is not given."""
