"""Finds file versions that are in several summaries: candidates by digest, each proved by the commits themselves.

The digests of all summaries are in an index in the state. Each closing adds the summaries that are not in it yet.
"""

from collections.abc import Iterator
from contextlib import suppress
from itertools import pairwise
from typing import TYPE_CHECKING

import pyarrow as pa

from compactor.core.errors import ObjectNotFound
from compactor.ledger.history.closed_dates import ClosedDates, Versions
from compactor.ledger.history.run_levels import Row, RunLevels, number_of, place_and_member

if TYPE_CHECKING:
    from array import array


class VersionIndex:
    """The file versions of all summaries so far. For one thread."""

    def __init__(self, dates: ClosedDates) -> None:
        self._dates = dates
        self._levels = RunLevels(dates.store, dates.layout.closed_versions)
        self._upto = 0

    def read_to(self, place: int) -> None:
        """Add the summaries up to a place that are not in the index."""
        if not self._upto:
            self._forget_another()
        for each in range(self._levels.upto + 1, place + 1):
            self._levels.add(each, self._rows(each), self._dates.read(each).fingerprint)
        self._upto = place

    def shared(self, versions: Versions, *, after: int = 0) -> Iterator[tuple[int, int, int]]:
        """The versions of a new summary that summaries behind a place have, too, as far as the index was read.

        Yields:
            The member of the new one by its number; the place of the other summary; and the number of its member.
        """
        found: dict[int, list[tuple[int, int]]] = {}
        for digest, number in self._levels.find(versions.digests, after=after):
            place, member = place_and_member(number)
            # guard: file versions are compared with those of all summaries
            if after < place <= self._upto:  # another process may have added more
                found.setdefault(digest, []).append((place, member))
        if found:
            for digest, own in zip(versions.digests, versions.members, strict=True):
                yield from ((own, *other) for other in found.get(digest, ()))

    def _forget_another(self) -> None:
        """Forget the index of another log, as after the summaries were deleted and made anew."""
        upto, found = self._levels.upto, ""
        with suppress(ObjectNotFound):
            found = self._dates.read(upto).fingerprint if upto else ""
        if found != self._levels.note:
            self._levels.forget()

    def _rows(self, place: int) -> Iterator[Row]:
        for part in self._dates.versions(place):
            yield from (
                (digest, number_of(place, member)) for digest, member in zip(part.digests, part.members, strict=True)
            )


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
