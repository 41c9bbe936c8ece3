"""What a Glue job costs by its workers, at list prices."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Literal, Protocol

from compactor.core.results import as_document
from compactor.cost.price_table import LISTED, REGIONS, SOURCE, UNSEEN, Listed

HOURS_A_MONTH = 730
FIRST_REGION = REGIONS[0]


@dataclass(frozen=True, slots=True)
class Price:
    """A list price."""

    dollars: float  # the price of `per` units
    per: int  # the number of units that the price is for
    unit: str  # what is counted
    source: str  # where the figure comes from
    as_of: str  # day on which it was looked up
    is_monthly: bool = False  # whether a unit is paid for a month

    def dollars_for(self, quantity: float) -> float:
        """Dollars for this many units."""
        return quantity * self.dollars / self.per

    def dollars_per_hour(self, quantity: float) -> float:
        """Dollars per hour for this many units: those of an hour, or those of a month where the price is monthly."""
        return self.dollars_for(quantity) / (HOURS_A_MONTH if self.is_monthly else 1)


@cache
def prices_of(region: str) -> Mapping[str, Price]:
    """All prices of a region by name; for a region that has none in the table, those of the first."""
    return {name: _price(listed, region) for name, listed in LISTED.items()}


def _price(listed: Listed, region: str) -> Price:
    return Price(
        dollars=listed.elsewhere.get(region, listed.dollars),
        per=listed.per,
        unit=listed.unit,
        source=listed.source or (UNSEEN if listed.is_unseen or region != FIRST_REGION else SOURCE),
        as_of=listed.as_of,
        is_monthly=listed.is_monthly,
    )


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
    def dollars_per_hour(self) -> float:
        """Cost per hour."""

    @property
    def dollars_per_month(self) -> float:
        """Cost per month of 730 hours."""
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
    def compared(self) -> "PricedJob":
        """A common job on the same version of Glue."""
        return PricedJob(CLASSIC.worker_type, CLASSIC.workers, self.glue_version)

    @property
    def share_of_compared(self) -> float:
        """Cost as a fraction of the compared job's."""
        return self.dollars_per_hour / self.compared.dollars_per_hour

    def __str__(self) -> str:
        return f"{self.workers} x {self.worker_type}, Glue {self.glue_version}"


@as_document(shows=("dpu", *DOLLARS))
class PricedJob(JobSize):
    """Workers of a Glue job, with their price."""


CLASSIC = PricedJob("G.2X", 10, "6.0")
"""What a job is compared with, on its own version of Glue."""

SHIPPED = PricedJob("G.1X", 3, "6.0")
"""The job of `deploy/parameters/prod.json`, and what an option stands for that is not given."""


Basis = Literal["given", "counted", "assumed"]
"""Where a quantity comes from: options, the code (tests hold the two together), or judgement without a measurement."""


@dataclass(frozen=True, slots=True)
class Load:
    """The input."""

    files_per_hour: float  # files per hour, as given
    file_bytes: int  # the stored size of a file

    @property
    def bytes_per_hour(self) -> float:
        return self.files_per_hour * self.file_bytes


@as_document(shows=DOLLARS)
@dataclass(frozen=True, slots=True)
class CostLine(HourlyCost):
    """One item of the estimate."""

    service: str
    item: str
    basis: Basis
    quantity: float  # the quantity in units of the price, per hour, or per month where the price is monthly
    price: Price  # price of a unit

    @property
    def dollars_per_hour(self) -> float:
        return self.price.dollars_per_hour(self.quantity)


Item = tuple[str, str, Basis, float, str]
"""An item before it is priced: service, item, basis, quantity, and the name of the price."""


def priced(items: Iterable[Item], prices: Mapping[str, Price]) -> tuple[CostLine, ...]:
    """The items with their prices."""
    return tuple(CostLine(*item[:4], prices[item[4]]) for item in items)
