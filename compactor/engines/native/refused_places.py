"""Keeps the places of refused lines in little memory: a piece of a file may have millions of them."""

from array import array
from collections.abc import Iterable, Iterator

from compactor.engines.native.kernel import RefusedPlace

_NUMBERS = 4  # of each place: the line, its first byte, its line feed, and its reason


class RefusedPlaces:
    """Places in the order in which they are added: 16 bytes each, where tuples take more than ten times as much.

    Numbers stay below 2 ** 32, for a piece is not much longer than a line, which has 1 GiB at most.
    """

    def __init__(self) -> None:
        self._numbers = array("I")
        self._reasons: dict[str, int] = {}

    def add(self, places: Iterable[RefusedPlace], lines_before: int) -> None:
        """Add the places of the next block.

        Args:
            places: Each with the number of its line in the block.
            lines_before: How many lines the blocks before it have.
        """
        reasons = self._reasons
        for number, start, end, reason in places:
            self._numbers.extend((lines_before + number, start, end, reasons.setdefault(reason, len(reasons))))

    def __bool__(self) -> bool:
        return bool(self._numbers)

    def __iter__(self) -> Iterator[RefusedPlace]:
        reasons, numbers = list(self._reasons), self._numbers
        for at in range(0, len(numbers), _NUMBERS):
            number, start, end, reason = numbers[at : at + _NUMBERS]
            yield number, start, end, reasons[reason]
