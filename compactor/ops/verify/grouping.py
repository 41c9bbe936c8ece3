"""Groups entries on disk, so that memory does not grow with their number."""

import heapq
import json
import tempfile
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from itertools import groupby
from types import TracebackType
from typing import IO, Any, Generic, Self, TypeVar

LINES_AT_ONCE = 200_000  # sorted in memory at once: about 50 MB
_BLOCK_BYTES = 1 << 17  # of each sorted run in memory, while the runs are merged

T = TypeVar("T")


class GroupedOnDisk(Generic[T]):
    """Collects entries, sorts them on disk, and yields those of a group together. A context manager, for one thread.

    Args:
        made: Creates an entry from the arguments of `add`.
    """

    def __init__(self, made: Callable[..., T]) -> None:
        self._made = made
        self._stack = ExitStack()
        self._lines: list[bytes] = []
        self._runs: list[tuple[int, int]] = []  # of sorted lines in the file: start and end

    def __enter__(self) -> Self:
        self._file: IO[bytes] = self._stack.enter_context(tempfile.TemporaryFile())
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stack.close()

    def add(self, group: str, *values: str | int | None) -> None:
        """Add an entry to a group."""
        self._lines.append(json.dumps((group, *values)).encode() + b"\n")
        if len(self._lines) >= LINES_AT_ONCE:
            start = self._file.tell()
            self._file.writelines(sorted(self._lines))
            self._runs.append((start, self._file.tell()))
            self._lines.clear()

    def groups(self) -> Iterator[tuple[str, list[T]]]:
        """Yield each group with its entries, both in order."""
        merged = heapq.merge(*map(self._run, self._runs), sorted(self._lines))
        parsed: Iterator[list[Any]] = map(json.loads, merged)
        for group, those in groupby(parsed, key=lambda line: line[0]):
            yield group, [self._made(*values) for _, *values in those]

    def _run(self, run: tuple[int, int]) -> Iterator[bytes]:
        place, end = run
        while place < end:
            self._file.seek(place)
            # `readlines` reads whole lines until it has more bytes than requested.
            lines = self._file.readlines(min(_BLOCK_BYTES, end - place) - 1)
            place += sum(map(len, lines))
            yield from lines
