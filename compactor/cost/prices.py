"""The cost of a job by its workers, at list prices."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
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
    per: int  # number of units for the price
    unit: str  # the unit
    source: str  # source of the figure
    as_of: str  # date of the look-up
    is_monthly: bool = False  # whether it is a price per month

    def dollars_for(self, quantity: float) -> float:
        """Dollars for this many units."""
        return quantity * self.dollars / self.per

    def dollars_per_hour(self, quantity: float) -> float:
        """Dollars per hour for this many units: per hour, or per month for a monthly price."""
        return self.dollars_for(quantity) / (HOURS_A_MONTH if self.is_monthly else 1)


@cache
def prices_of(region: str) -> Mapping[str, Price]:
    """A region's prices by name; the first region's for one not in the table."""
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
GIB = 1024**3  # AWS's definition of a GB

PRICES = prices_of(FIRST_REGION)
"""The prices for an unknown region. Free tiers and discounts are left out."""

DPU_PER_WORKER = {
    "G.025X": 0.25,
    **{f"G.{dpu}X": float(dpu) for dpu in (1, 2, 4, 8, 12, 16)},
    **{f"R.{dpu}X": float(dpu) for dpu in (1, 2, 4, 8)},
}
"""DPU per worker, by type. R types are memory-optimised [Glue developer guide, worker types]."""

VCPU_PER_DPU, GB_PER_DPU = 4, 16  # of G types [Glue developer guide, worker types]

Runtime = Literal["glue", "emr", "ecs", "machine"]
"""What runs the job: a service of AWS, or a machine, by systemd or Kubernetes."""

GLUE_VERSIONS = ("4.0", "5.0", "5.1", "6.0")  # those with a known price
DOLLARS = ("dollars_per_hour", "dollars_per_month")  # the properties of an hourly cost


class HourlyCost(Protocol):
    """A cost per hour, also per month."""

    @property
    def dollars_per_hour(self) -> float:
        """Cost per hour."""

    @property
    def dollars_per_month(self) -> float:
        """Cost per month of 730 hours."""
        return self.dollars_per_hour * HOURS_A_MONTH


@dataclass(frozen=True, slots=True)
class JobSize(HourlyCost):
    """The workers of a job."""

    worker_type: str  # worker type, such as `G.2X`; on `ecs` and `machine`, vCPU and GB, such as `2x4`
    workers: int  # number of workers, including the driver
    glue_version: str  # Glue version, such as `6.0`; elsewhere without effect
    runtime: Runtime = field(default="glue", kw_only=True)  # what runs it

    @property
    def dpu(self) -> float:
        """DPU of all workers together; 0 for tasks."""
        return DPU_PER_WORKER.get(self.worker_type, 0.0) * self.workers

    @property
    def is_priced(self) -> bool:
        """Whether the price of these workers is known: on Glue, on this version of it."""
        return self.runtime == "ecs" or (self.worker_type in DPU_PER_WORKER and self.glue_version in GLUE_VERSIONS)

    def lines_in(self, prices: Mapping[str, Price]) -> tuple["CostLine", ...]:
        """The workers' items in a region's prices."""
        if self.runtime == "glue":
            version = "glue_6" if self.glue_version == "6.0" else "glue"
            name = f"{version}_memory_dpu_hour" if self.worker_type.startswith("R.") else f"{version}_dpu_hour"
            return priced([("Glue", "DPU-hours", "given", self.dpu, name)], prices)
        service = {"emr": "EMR", "ecs": "Fargate", "machine": "EC2"}[self.runtime]
        vcpu, gb = (self.workers * each for each in self._vcpu_and_gb())
        items: list[Item] = [(service, "vCPU-hours", "given", vcpu, f"{self.runtime}_vcpu_hour")]
        if self.runtime != "machine":  # whose price includes its memory
            items.append((service, "GB-hours", "given", gb, f"{self.runtime}_gb_hour"))
        return priced(items, prices)

    def _vcpu_and_gb(self) -> tuple[float, float]:
        if dpu := DPU_PER_WORKER.get(self.worker_type):
            return VCPU_PER_DPU * dpu, GB_PER_DPU * dpu
        vcpu, _, gb = self.worker_type.partition("x")
        return float(vcpu), float(gb)

    @property
    def dollars_per_hour(self) -> float:
        return sum(line.dollars_per_hour for line in self.lines_in(PRICES))

    @property
    def compared(self) -> "PricedJob":
        """A common job on Glue, of the same version."""
        return PricedJob(CLASSIC.worker_type, CLASSIC.workers, self.glue_version)

    @property
    def share_of_compared(self) -> float:
        """Cost as a fraction of the compared job's."""
        return self.dollars_per_hour / self.compared.dollars_per_hour

    def __str__(self) -> str:
        workers = f"{self.workers} x {self.worker_type}"
        if self.runtime == "glue":
            return f"{workers}, Glue {self.glue_version}"
        places = {"emr": "on EMR Serverless", "ecs": "vCPU and GB on ECS", "machine": "vCPU and GB on EC2"}
        return f"{workers} {places[self.runtime]}"


@as_document(shows=("dpu", *DOLLARS))
class PricedJob(JobSize):
    """A job's workers, with their price."""


CLASSIC = PricedJob("G.2X", 10, "6.0")
"""The comparison job for each Glue version."""

SHIPPED = PricedJob("G.1X", 3, "6.0")
"""The job in `deploy/parameters/prod.json`, the default for missing options."""


Basis = Literal["given", "counted", "assumed"]
"""The basis of a quantity: options, the code (tests keep the two in step), or an unmeasured assumption."""


@dataclass(frozen=True, slots=True)
class Load:
    """The input."""

    files_per_hour: float  # files per hour, as given
    file_bytes: int  # stored size of a file

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
    quantity: float  # units of the price per hour, or per month for a monthly price
    price: Price  # price of a unit

    @property
    def dollars_per_hour(self) -> float:
        return self.price.dollars_per_hour(self.quantity)


Item = tuple[str, str, Basis, float, str]
"""An item before pricing: service, item, basis, quantity, and the price's name."""


def priced(items: Iterable[Item], prices: Mapping[str, Price]) -> tuple[CostLine, ...]:
    """The items with their prices."""
    return tuple(CostLine(*item[:4], prices[item[4]]) for item in items)
