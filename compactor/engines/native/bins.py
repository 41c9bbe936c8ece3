"""Divides the files of a manifest into bins whose output files have the right size. Decisions, no I/O.

A file is never divided between bins, but a bin may make several output files, which end at any row.
"""

from collections.abc import Callable, Sequence
from typing import TypeVar

from compactor.core.rules.packing import spread
from compactor.ledger.file_counts import leeway, planned_files

T = TypeVar("T")

LEEWAY = 1.01
"""A bin of which no better is expected than files at the very edge of the right sizes is joined with another one."""


def bins_of(items: Sequence[T], weight: Callable[[T], int], *, ratio: float, target_file_bytes: int) -> list[list[T]]:
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

    def is_right(load: int) -> bool:
        return leeway(load * ratio, target_file_bytes) >= LEEWAY

    def load(numbers: Sequence[int]) -> int:
        return sum(weight(items[number]) for number in numbers)

    bins = [(load(share), share) for share in spread(numbers, planned, lambda number: weight(items[number]))]
    joined = _joined(bins, is_right)
    if _wrong(joined, is_right) < _wrong(bins, is_right):
        bins = joined
    return [[items[number] for number in sorted(share)] for _, share in bins]


_Bin = tuple[int, list[int]]  # the load, and the numbers of the items


def _wrong(bins: Sequence[_Bin], is_right: Callable[[int], bool]) -> int:
    """The load of bins that cannot make files of the right size."""
    return sum(load for load, _ in bins if not is_right(load))


def _joined(bins: Sequence[_Bin], is_right: Callable[[int], bool]) -> list[_Bin]:
    """Join bins that would make too small or too large files with others: as few as need be, for each is a task."""
    joined = list(bins)
    while len(joined) > 1:
        wrong = min(joined, key=lambda each: (is_right(each[0]), each[0]))
        if is_right(wrong[0]):
            break
        joined.remove(wrong)
        other = min(joined, key=lambda each: (not is_right(wrong[0] + each[0]), each[0]))
        joined.remove(other)
        joined.append((wrong[0] + other[0], wrong[1] + other[1]))
    return joined
