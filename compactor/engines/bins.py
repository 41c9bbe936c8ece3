"""Divides the files of a manifest into bins whose output files have the right size. Decisions, no I/O.

A file is never divided between bins, but a bin may make several output files, which end at any row.
"""

from collections.abc import Callable, Sequence
from typing import TypeVar

from compactor.core.packing import spread
from compactor.ledger.file_counts import leeway, planned_files

T = TypeVar("T")

LEEWAY = 1.03
"""By which factor the estimate of a bin may be wrong at least, as commits teach ratios that are about so exact."""


def bins_of(
    items: Sequence[T], weight: Callable[[T], int], *, ratio: float, target_file_bytes: int
) -> list[list[T]]:
    """Divide files into one bin for each output file; into fewer bins where large files would make unlike ones.

    Args:
        items: The files; each bin keeps their order.
        weight: Returns the stored length of a file.
        ratio: Parquet bytes per stored byte.
        target_file_bytes: How large an output file should be.

    Returns:
        Bins with at least one file each.
    """
    numbers = range(len(items))
    total = sum(weight(item) for item in items)
    planned = planned_files(total, ratio, target_file_bytes)

    def factor(load: float) -> float:
        return leeway(load * ratio, target_file_bytes)

    def load(numbers: Sequence[int]) -> int:
        return sum(weight(items[number]) for number in numbers)

    bins = [(load(share), share) for share in spread(numbers, planned, lambda number: weight(items[number]))]
    joined = _joined(bins, factor)
    if _at_risk(joined, factor) < _at_risk(bins, factor):
        bins = joined
    return [[items[number] for number in sorted(share)] for _, share in bins]


_Bin = tuple[int, list[int]]  # the load, and the numbers of the items


def _at_risk(bins: Sequence[_Bin], factor: Callable[[float], float]) -> int:
    """The load of bins whose files may get another size than they should have."""
    return sum(load for load, _ in bins if factor(load) < LEEWAY)


def _joined(bins: Sequence[_Bin], factor: Callable[[float], float]) -> list[_Bin]:
    """Join bins that would make too small or too large files with others, as few as need be."""
    joined = list(bins)
    while len(joined) > 1:
        worst = min(joined, key=lambda each: factor(each[0]))
        if factor(worst[0]) >= LEEWAY:
            break
        joined.remove(worst)
        # A lighter one leaves the others to other tasks; among those that do not help, the lightest is as good as any.
        other = min(joined, key=lambda each: (factor(worst[0] + each[0]) < LEEWAY, each[0]))
        joined.remove(other)
        joined.append((worst[0] + other[0], worst[1] + other[1]))
    return joined
