"""Chooses the files of a sample while they are listed, in bounded memory. No I/O."""

from collections.abc import Iterable
from typing import Generic, TypeVar

T = TypeVar("T")


class Spread(Generic[T]):
    """Items that are spread evenly over all that were offered: every one, every second, every fourth and so on.

    Args:
        most: How many to keep at most.

    Attributes:
        offered: How many were offered.
    """

    def __init__(self, items: Iterable[T], most: int) -> None:
        self.offered = 0
        self._kept: list[T] = []
        self._step = 1
        for item in items:
            if self.offered % self._step == 0:
                self._kept.append(item)
                if len(self._kept) > 2 * most:
                    self._kept = self._kept[::2]
                    self._step *= 2
            self.offered += 1
        self._most = most

    @property
    def chosen(self) -> list[T]:
        """The items, in the order in which they were offered; the last one is near the end."""
        count = min(self._most, len(self._kept))
        if count <= 1:
            return self._kept[:count]
        last = len(self._kept) - 1
        return [self._kept[round(at * last / (count - 1))] for at in range(count)]
