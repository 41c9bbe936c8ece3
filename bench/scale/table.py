"""Compares the costs of a large and a small state: ratios first, and a verdict where a cost is not flat."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import median, quantiles

from bench.table import aligned

FLAT = 1.2
"""Up to this ratio a cost counts as flat."""

HEADINGS = ("cost", "ratio", "half of them", "much", "little", "unit")


@dataclass(frozen=True, slots=True)
class Measure:
    """One cost that is measured.

    Attributes:
        key: Its name in the answers of a probe.
        name: Its name in the table.
        unit: The unit in the table.
        per_unit: One such unit in seconds or bytes.
    """

    key: str
    name: str
    unit: str
    per_unit: float


@dataclass(frozen=True, slots=True)
class Row:
    """One line of the table.

    Attributes:
        ratio: The median ratio of the pairs.
        spread: The quartiles of the ratios.
        much: The median cost of the large state, in the unit.
        little: The median cost of the small state, in the unit.
    """

    measure: Measure
    ratio: float
    spread: tuple[float, float]
    much: float
    little: float


def make_rows(
    measures: Sequence[Measure], pairs: Sequence[tuple[Mapping[str, float], Mapping[str, float]]]
) -> list[Row]:
    """Compare pairs of figures, of a large and a small state at about the same time."""
    rows = []
    for each in measures:
        much = [found[each.key] / each.per_unit for found, _ in pairs]
        little = [found[each.key] / each.per_unit for _, found in pairs]
        ratios = [one / other for one, other in zip(much, little, strict=True)]
        rows.append(Row(each, median(ratios), middle_half(ratios), median(much), median(little)))
    return rows


def middle_half(ratios: Sequence[float]) -> tuple[float, float]:
    """The quartiles, between which half of the ratios are; of a single ratio, that ratio."""
    low, _, high = quantiles(ratios, n=4, method="inclusive") if len(ratios) > 1 else [*ratios] * 3
    return low, high


def plain(rows: Sequence[Row]) -> str:
    """The table as text."""
    return aligned([HEADINGS, *map(_cells, rows)])


def verdicts(rows: Sequence[Row]) -> list[str]:
    """Which costs are not flat, in words; or that all are."""
    steep = [row for row in rows if row.ratio > FLAT]
    if not steep:
        return [f"Flat: no ratio is above {FLAT}."]
    return [
        f"NOT FLAT: {row.measure.name} costs {row.ratio:.2f} times as much; expected {FLAT} at most" for row in steep
    ]


def _cells(row: Row) -> tuple[str, ...]:
    return (
        row.measure.name,
        f"{row.ratio:.2f}x",
        "{:.2f} to {:.2f}".format(*row.spread),
        f"{row.much:,.1f}",
        f"{row.little:,.1f}",
        row.measure.unit,
    )
