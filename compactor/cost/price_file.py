"""Reads `prices.toml`, the one place of all prices."""

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any

HOURS_A_MONTH = 730
FIRST_REGION = "us-east-1"
_ABOUT = frozenset({"as_of", "source", "unseen", "regions"})


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


def regions() -> tuple[str, ...]:
    """The regions with prices."""
    return tuple(_document()["regions"])


@cache
def prices_of(region: str) -> Mapping[str, Price]:
    """All prices of a region by name; for a region that has none on file, those of the first."""
    document = _document()

    def price(about: Mapping[str, Any]) -> Price:
        return Price(
            dollars=float(about.get("elsewhere", {}).get(region, about["dollars"])),
            per=about["per"],
            unit=about["unit"],
            source=document["unseen"] if about.get("is_unseen") or region != FIRST_REGION else document["source"],
            as_of=document["as_of"],
            is_monthly=about.get("is_monthly", False),
        )

    return {name: price(about) for name, about in document.items() if name not in _ABOUT}


def as_of() -> str:
    """The date of the prices."""
    return str(_document()["as_of"])


@cache
def _document() -> dict[str, Any]:
    return tomllib.loads(files("compactor.cost").joinpath("prices.toml").read_text(encoding="utf-8"))
