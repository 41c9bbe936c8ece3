"""Chooses a partition's small files for merging. No I/O.

Right-sized files stay. Small ones are merged if the result is right-sized, or at least half as large again as the
largest of them. So each rewrite of a row grows its file by half: some ten times from 2 MB to 128 MB, however many late
files arrive.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol, TypeVar

from compactor.ledger.sizing import SIZE_TOLERANCE, best_count, is_right_sized

MAX_FILES = 500
"""The most files merged into one: a merge lists all of its parts."""

_GROWTH = 1.5


class _Sized(Protocol):
    @property
    def size_bytes(self) -> int: ...


S = TypeVar("S", bound=_Sized)


@dataclass(frozen=True, slots=True)
class MergeRule:
    """When to merge files.

    Attributes:
        target_file_bytes: Target size of a file.
    """

    target_file_bytes: int

    def is_small(self, size_bytes: int) -> bool:
        """Whether a file may be merged."""
        return size_bytes < (1 - SIZE_TOLERANCE) * self.target_file_bytes

    def chosen(self, files: Sequence[S]) -> Iterator[list[S]]:
        """Groups of files that each become one file.

        Args:
            files: The files of one partition, in the desired order of their rows.
        """
        left = [each for each in files if self.is_small(each.size_bytes)]
        while left:
            groups = [found for each in self._divided(left) if (found := self._worthy(each))]
            groups = groups or [found for each in (self._fitting, self._smallest) if (found := each(left))][:1]
            if not groups:
                return
            yield from groups
            gone = {id(each) for group in groups for each in group}
            left = [each for each in left if id(each) not in gone]

    def _divided(self, files: Sequence[S]) -> Iterator[list[S]]:
        """Groups of similar size and, with enough input, of the right size."""
        left, start = sum(each.size_bytes for each in files), 0
        while start < len(files):
            end = self._end(files, start, left)
            left -= sum(each.size_bytes for each in files[start:end])
            yield list(files[start:end])
            start = end

    def _worthy(self, group: list[S]) -> list[S]:
        """A group without the largest files that would make merging wasteful; may be empty."""
        while len(group) > 1 and not self._is_worth(group):
            group.remove(max(group, key=lambda each: each.size_bytes))
        return group if len(group) > 1 else []

    def _fitting(self, files: Sequence[S]) -> list[S]:
        """Files that together have the right size: the largest possible one and the next ones that fit."""
        by_size = sorted(files, key=lambda each: each.size_bytes, reverse=True)
        for start in range(len(by_size)):
            group, total = list[S](), 0
            for each in by_size[start : start + MAX_FILES]:
                if total + each.size_bytes <= (1 + SIZE_TOLERANCE) * self.target_file_bytes:
                    group.append(each)
                    total += each.size_bytes
            if len(group) > 1 and is_right_sized(total, self.target_file_bytes):
                chosen = {id(each) for each in group}
                return [each for each in files if id(each) in chosen]
        return []

    def _smallest(self, files: Sequence[S]) -> list[S]:
        """The smallest files, if they are worth merging."""
        by_size = sorted(files, key=lambda each: each.size_bytes)[:MAX_FILES]
        while len(by_size) > 1 and sum(each.size_bytes for each in by_size) > self.target_file_bytes:
            by_size.pop()
        chosen = {id(each) for each in self._worthy(by_size)}
        return [each for each in files if id(each) in chosen]

    def _end(self, files: Sequence[S], start: int, left: int) -> int:
        """The end of a group that is closest to its share of the rest."""
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
        if is_right_sized(total, self.target_file_bytes):
            return True
        return self.target_file_bytes > total >= _GROWTH * max(sizes)  # a larger one never has the right size
