"""Sets of line numbers as ranges: which of the rejected lines of a file were redriven. No I/O."""

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterable

from compactor.core.documents.records import RedrivenInput


class RangeBuilder:
    """Makes ranges of the numbers that are taken among those that are seen, in their order."""

    def __init__(self) -> None:
        self.ranges: list[tuple[int, int]] = []
        self._is_open = False

    def take(self, number: int) -> None:
        """Add a number."""
        if self._is_open:
            self.ranges[-1] = self.ranges[-1][0], number
        else:
            self.ranges.append((number, number))
            self._is_open = True

    def leave_out(self) -> None:
        """See a number that is not added: the next one begins another range."""
        self._is_open = False


class LineNumbers:
    """The lines of a file that were redriven; all of them, without ranges."""

    def __init__(self, ranges: Iterable[tuple[int, int]] = ()) -> None:
        self._ranges = sorted(ranges)
        self._firsts = [first for first, _ in self._ranges]

    def __contains__(self, number: int) -> bool:
        if not self._ranges:
            return True
        at = bisect_right(self._firsts, number)
        return bool(at) and number <= self._ranges[at - 1][1]


def numbers_of(inputs: Iterable[RedrivenInput]) -> dict[tuple[str, str], LineNumbers]:
    """The lines in some files of redriven lines, by the file that they are from and the reason of their rejection."""
    ranges: dict[tuple[str, str], list[tuple[int, int]]] = defaultdict(list)
    for each in inputs:
        ranges[each.source_uri, each.reason] += each.numbers
    return {key: LineNumbers(found) for key, found in ranges.items()}
