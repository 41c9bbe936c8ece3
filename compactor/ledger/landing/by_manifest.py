"""Groups what the links of many chains say of manifests by manifest, so that each manifest is read once.

A plan links one manifest into hundreds of chains. Memory does not grow with the number of links: they are sorted on
disk, and only those of one manifest are in memory together.
"""

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


class ByManifest(Generic[T]):
    """Collects what links say, and yields it by manifest. A context manager, for one thread.

    Args:
        made: Makes what a link says of the values that `add` was given: texts, integers and None.
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

    def add(self, manifest_id: str, *values: str | int | None) -> None:
        """Add what one link says of a manifest."""
        self._lines.append(json.dumps((manifest_id, *values)).encode() + b"\n")
        if len(self._lines) >= LINES_AT_ONCE:
            start = self._file.tell()
            self._file.writelines(sorted(self._lines))
            self._runs.append((start, self._file.tell()))
            self._lines.clear()

    def groups(self) -> Iterator[tuple[str, list[T]]]:
        """Yield each manifest id with all that was said of it, in the order of the ids."""
        merged = heapq.merge(*map(self._run, self._runs), sorted(self._lines))
        parsed: Iterator[list[Any]] = map(json.loads, merged)
        for manifest_id, those in groupby(parsed, key=lambda line: line[0]):
            yield manifest_id, [self._made(*values) for _, *values in those]

    def _run(self, run: tuple[int, int]) -> Iterator[bytes]:
        place, end = run
        while place < end:
            self._file.seek(place)
            # It reads lines until it has more bytes than asked for.
            lines = self._file.readlines(min(_BLOCK_BYTES, end - place) - 1)
            place += sum(map(len, lines))
            yield from lines
