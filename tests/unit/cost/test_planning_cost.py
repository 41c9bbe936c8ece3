"""What planning from an inventory costs."""

import re
from pathlib import Path

import pytest

from compactor.cost.planning_cost import PlanningCost, planning_cost
from compactor.cost.prices import prices_of

DOCUMENT = Path(__file__).resolve().parents[3] / "docs" / "back-fill.md"
OBJECTS, MANIFESTS = 5_000_000, 17_155


def cost(**changes: float | None) -> PlanningCost:
    days = changes.get("claim_days", 30.0)
    return planning_cost(OBJECTS, OBJECTS, MANIFESTS, claim_days=days, prices=prices_of("us-east-1"))


def test_the_table_of_the_document() -> None:
    """The page says what the code computes."""
    found = cost()
    rows = dict(re.findall(r"^\| (claims \w+|requests).* \| ([\d.]+) \|$", DOCUMENT.read_text(), re.MULTILINE))
    assert {name: float(dollars) for name, dollars in rows.items()} == pytest.approx(
        {
            "claims written": found.claims_written,
            "claims read": found.claims_read,
            "claims kept": found.claims_kept,
            "requests": found.requests,
        },
        abs=0.0051,
    )
    put = prices_of("us-east-1")["s3_put"]
    assert f"${OBJECTS * put.dollars / put.per:.2f}" in DOCUMENT.read_text()
    assert f"${MANIFESTS * put.dollars / put.per:.2f} here" in DOCUMENT.read_text()


def test_claims_elsewhere_cost_nothing() -> None:
    """SQLite and the journal have no table; the sum is of all items."""
    assert cost(claim_days=None) == PlanningCost(requests=cost().requests)
    assert cost().dollars == pytest.approx(4.85, abs=0.01)
    assert planning_cost(0, 0, 0, claim_days=30, prices=prices_of("us-east-1")).dollars == 0
