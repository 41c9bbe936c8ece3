"""The values of an estimate: a load, and items with their prices."""

from dataclasses import dataclass
from typing import Literal

from compactor.cost.price_list import Price
from compactor.cost.prices import HourlyCost

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


@dataclass(frozen=True, slots=True)
class CostLine(HourlyCost):
    """One item of an estimate."""

    service: str
    item: str
    basis: Basis
    quantity: float  # the quantity in units of the price, per hour, or per month where the price is monthly
    price: Price

    @property
    def dollars_per_hour(self) -> float:
        return self.price.dollars_per_hour(self.quantity)
