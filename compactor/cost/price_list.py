"""Prices of a region, from the table."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache

from compactor.cost.price_table import LISTED, REGIONS, SOURCE, UNSEEN, Listed

HOURS_A_MONTH = 730
FIRST_REGION = REGIONS[0]


@dataclass(frozen=True, slots=True)
class Price:
    """One price."""

    dollars: float  # the price of `per` units
    per: int  # the number of units that the price is for
    unit: str  # what is counted
    source: str  # where the figure comes from
    as_of: str  # the date it was looked up
    is_monthly: bool = False  # whether a unit is paid for a month

    def dollars_per_hour(self, quantity: float) -> float:
        """Dollars per hour for this many units: those of an hour, or those of a month where the price is monthly."""
        return quantity * self.dollars / self.per / (HOURS_A_MONTH if self.is_monthly else 1)


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
