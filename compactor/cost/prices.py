"""What a Glue job costs by its workers, at list prices."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol

from compactor.cost.price_list import FIRST_REGION, HOURS_A_MONTH, Price, prices_of
from compactor.cost.price_table import AS_OF

__all__ = ["AS_OF", "HOURS_A_MONTH", "PRICES", "HourlyCost", "JobSize", "Price"]

HOUR_SECONDS = 3600.0
TERABYTE = 1e12
GIB = 1024**3  # what AWS bills as a GB

PRICES = prices_of(FIRST_REGION)
"""The prices where no region is known. Free tiers and discounts are left out."""

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
        return self.price_in(PRICES)

    def price_in(self, prices: Mapping[str, Price]) -> Price:
        """The price of a DPU-hour among those of a region."""
        version = "glue_6" if self.glue_version == "6.0" else "glue"
        return prices[f"{version}_memory_dpu_hour" if self.worker_type.startswith("R.") else f"{version}_dpu_hour"]

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
"""What a job is compared with, on its own version of Glue."""

SHIPPED = JobSize("G.1X", 3, "6.0")
"""The job of `deploy/parameters/prod.json`, and what an option stands for that is not given."""
