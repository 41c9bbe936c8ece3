"""Remembers how large each group of files is, to choose the largest ones. No I/O."""

import heapq
from array import array
from collections.abc import Collection, Iterable

from compactor.manifests.partitioning import Group


class GroupSizes:
    """The sizes of groups in their order: 13 bytes a group."""

    def __init__(self) -> None:
        self._is_full = bytearray()
        self._size_bytes = array("Q")
        self._files = array("I")

    def __len__(self) -> int:
        return len(self._files)

    def add(self, groups: Iterable[Group]) -> None:
        """Add groups behind those before."""
        for group in groups:
            self._is_full.append(group.is_full)
            self._size_bytes.append(group.size_bytes)
            self._files.append(len(group.files))

    def largest(self, most: int | None) -> Collection[int]:
        """The numbers of as many groups, as `largest_first` orders them; of all groups for None."""
        numbers = range(len(self))
        if most is None or len(numbers) <= most:
            return numbers
        return frozenset(
            heapq.nsmallest(most, numbers, key=lambda each: (not self._is_full[each], -self._size_bytes[each]))
        )

    def files_without(self, chosen: Collection[int]) -> int:
        """How many files are in the groups whose numbers are not among these."""
        return sum(self._files) - sum(self._files[each] for each in chosen)
