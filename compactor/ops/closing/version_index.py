"""Finds file versions that are in several summaries: candidates by digest, each proved by the commits themselves.

The digests of all summaries are read once a call, into a temporary file, and are compared part by part.
"""

import tempfile
from collections.abc import Iterator
from contextlib import ExitStack
from itertools import pairwise
from types import TracebackType
from typing import TYPE_CHECKING, Self

import pyarrow as pa
import pyarrow.compute as pc

from compactor.ledger.closed_dates import ClosedDates, Versions

if TYPE_CHECKING:
    from array import array


class VersionIndex:
    """The file versions of all summaries so far. A context manager, for one thread."""

    def __init__(self, dates: ClosedDates) -> None:
        self._dates = dates
        self._stack = ExitStack()
        self._parts: list[tuple[int, int, int]] = []  # place of the summary; offset and number of versions in the file
        self._upto = 0

    def __enter__(self) -> Self:
        self._file = self._stack.enter_context(tempfile.TemporaryFile())
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stack.close()

    def read_to(self, place: int) -> None:
        """Read the summaries up to a place that were not read yet."""
        for each in range(self._upto + 1, place + 1):
            for part in self._dates.versions(each):
                offset = self._file.seek(0, 2)
                self._file.write(part.digests.tobytes())
                self._file.write(part.members.tobytes())
                self._parts.append((each, offset, len(part)))
            self._upto = each

    def shared(self, versions: Versions, *, after: int = 0) -> Iterator[tuple[int, int, int]]:
        """The versions of a new summary that summaries behind a place have, too.

        Yields:
            The member of the new one by its number; the place of the other summary; and the number of its member.
        """
        mine = _column(versions.digests, pa.uint64())
        for place, offset, count in self._parts:
            if place <= after or not len(mine):
                continue
            other = self._part(offset, count)
            both = mine.filter(pc.is_in(mine, value_set=_column(other.digests, pa.uint64()))).to_pylist()
            if both:
                yield from _pairs(set(both), versions, place, other)

    def _part(self, offset: int, count: int) -> Versions:
        part = Versions.none()
        self._file.seek(offset)
        part.digests.frombytes(self._file.read(count * part.digests.itemsize))
        part.members.frombytes(self._file.read(count * part.members.itemsize))
        return part


def _pairs(both: set[int], versions: Versions, place: int, other: Versions) -> Iterator[tuple[int, int, int]]:
    own: dict[int, list[int]] = {}
    for digest, member in zip(versions.digests, versions.members, strict=True):
        if digest in both:
            own.setdefault(digest, []).append(member)
    for digest, member in zip(other.digests, other.members, strict=True):
        yield from ((each, place, member) for each in own.get(digest, ()))


def in_order(versions: Versions) -> Versions:
    """The versions sorted by digest."""
    columns = {"digest": _column(versions.digests, pa.uint64()), "member": _column(versions.members, pa.uint32())}
    table = pa.table(columns).sort_by([("digest", "ascending"), ("member", "ascending")]).combine_chunks()
    found = Versions.none()
    for chunk in table["digest"].chunks:
        found.digests.frombytes(_bytes(chunk, found.digests.itemsize))
    for chunk in table["member"].chunks:
        found.members.frombytes(_bytes(chunk, found.members.itemsize))
    return found


def _column(values: "array[int]", kind: pa.DataType) -> pa.Array:
    return pa.Array.from_buffers(kind, len(values), [None, pa.py_buffer(values)])


def _bytes(chunk: pa.Array, width: int) -> bytes:
    data: bytes = chunk.buffers()[1].slice(chunk.offset * width, len(chunk) * width).to_pybytes()
    return data


def shared_within(versions: Versions) -> Iterator[tuple[int, int]]:
    """The members, by number, that have a version in common with the one before it, given versions in order."""
    for (digest, member), (next_digest, next_member) in pairwise(zip(versions.digests, versions.members, strict=True)):
        if digest == next_digest and member != next_member:
            yield member, next_member
