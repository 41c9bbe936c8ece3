"""Which small files of one partition become one file. No I/O.

Files of the right size stay. Small ones are merged where that makes a file of the right size, or one that is at least
half as large again as the largest of them. So a row is written again at most as often as its file can grow by half:
some ten times from 2 MB to 128 MB, however many late files come.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol, TypeVar

from compactor.ledger.file_counts import best_count
from compactor.ledger.sizing import SIZE_TOLERANCE, is_right_sized

MAX_FILES = 500
"""Files that become one, at most: a merge names each of their parts."""

_GROWTH = 1.5


class _Sized(Protocol):
    @property
    def size_bytes(self) -> int: ...


S = TypeVar("S", bound=_Sized)


@dataclass(frozen=True, slots=True)
class MergeRule:
    """When files are merged.

    Attributes:
        target_file_bytes: How large a file should be.
    """

    target_file_bytes: int

    def is_small(self, size_bytes: int) -> bool:
        """Whether a file may be merged."""
        return size_bytes < (1 - SIZE_TOLERANCE) * self.target_file_bytes

    def is_settled(self, size_bytes: int) -> bool:
        """Whether a file is as large as it is to be, or larger."""
        return not self.is_small(size_bytes)

    def chosen(self, files: Sequence[S]) -> Iterator[list[S]]:
        """Groups of files that each become one file.

        Args:
            files: The files of one partition, in the order in which their rows are to be.
        """
        small = [each for each in files if self.is_small(each.size_bytes)]
        left = sum(each.size_bytes for each in small)
        start = 0
        while start < len(small):
            end = self._end(small, start, left)
            group = small[start:end]
            if self._is_worth(group):
                yield group
            left -= sum(each.size_bytes for each in group)
            start = end

    def _end(self, files: Sequence[S], start: int, left: int) -> int:
        """Where a group ends that is as close as possible to its share of what is left."""
        share = left / best_count(left, self.target_file_bytes)
        at, total = start, 0
        while at < len(files) and at - start < MAX_FILES:
            size = files[at].size_bytes
            if at > start and total + size / 2 > share:
                break
            at, total = at + 1, total + size
        return at

    def _is_worth(self, group: Sequence[S]) -> bool:
        sizes = [each.size_bytes for each in group]
        total = sum(sizes)
        return len(sizes) > 1 and (is_right_sized(total, self.target_file_bytes) or total >= _GROWTH * max(sizes))
