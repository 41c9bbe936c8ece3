"""An index over a log: sorted runs, merged in levels, so that they stay few however long the log is.

A run of level 0 covers one place in the log, from 1. Sixteen runs of a level are merged into one of the next level,
unless that would be too large. They are kept, so that a reader with an older list of runs can continue. Everything here
is derived from the log and can be rebuilt: two processes that write the same run write the same bytes.

A run is an object of digests in order, each with a number; a reader fetches only the pages it needs. It only shows
where to look, and matches are verified there: so digests of 8 bytes are enough.
"""

import heapq
import struct
import sys
import tempfile
from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from hashlib import blake2b
from itertools import islice
from typing import IO, NamedTuple

from compactor.core.errors import ObjectNotFound, RecordUnreadable
from compactor.core.layout import base_name
from compactor.core.map_ordered import map_ordered
from compactor.core.ports import ObjectStore

Row = tuple[int, int]
"""A digest, and a number below 2^64 that identifies the location."""

PAGE_ROWS = 4096
READ_ROWS = 1 << 18
"""The most rows per request: 2 MB of digests."""

_ROWS_A_SEARCH = 64
"""About this many rows can be scanned in the time of one search (measured: 25 ns, and 1.6 us)."""

_MERGED_ROWS = 1 << 16  # in memory, per merged run

_MAGIC = b"cmprun1\n"
_HEAD = struct.Struct("<8sQI")  # the magic, the number of rows, and the length of the note that follows
_HEAD_BYTES = 64 * 1024
_BYTES = 8  # per digest, and per number
_COPY_BYTES = 1 << 20


def digest_of(text: str) -> int:
    """The digest of a text."""
    return int.from_bytes(blake2b(text.encode("utf-8", "surrogatepass"), digest_size=_BYTES).digest(), "big")


@dataclass(frozen=True, slots=True)
class SortedRun:
    """One run. After its head come the first digest of each page, the digests, and the numbers.

    Attributes:
        note: The writer's note.
        firsts: The first digest of each page, in order.
        begins_at: Offset of the digests.
    """

    store: ObjectStore
    uri: str
    rows: int
    note: str
    firsts: Sequence[int]
    begins_at: int

    def parts(self, wanted: Sequence[int]) -> list[Row]:
        """The pages that may have some digests, in as few parts as possible: first row and number of rows of each."""
        if not wanted:
            return []
        pages: Iterable[int] = range(self._pages_of(wanted[0]).start, self._pages_of(wanted[-1]).stop)
        if len(wanted) < len(self.firsts):
            pages = sorted({page for digest in wanted for page in self._pages_of(digest)})
        found: list[Row] = []
        for page in pages:
            first = page * PAGE_ROWS
            rows = min(PAGE_ROWS, self.rows - first)
            if found and sum(found[-1]) == first and found[-1][1] + rows <= READ_ROWS:
                found[-1] = (found[-1][0], found[-1][1] + rows)
            else:
                found.append((first, rows))
        return found

    def find(self, wanted: Sequence[int], first: int, rows: int) -> list[Row]:
        """The rows of one part that match any of the digests, which are in order."""
        digests = self._digests(first, rows)
        near = frozenset(wanted[bisect_left(wanted, digests[0]) : bisect_right(wanted, digests[-1])])
        there = near.intersection(digests) if len(near) * _ROWS_A_SEARCH > rows else near
        found = [(at, digest) for digest in sorted(there) for at in _places(digests, digest)]
        if not found:
            return []
        low, high = found[0][0], found[-1][0] + 1
        numbers = self._numbers(first + low, high - low)
        return [(digest, numbers[at - low]) for at, digest in found]

    def all_rows(self) -> Iterator[Row]:
        """Every row, in order."""
        for first in range(0, self.rows, _MERGED_ROWS):
            rows = min(_MERGED_ROWS, self.rows - first)
            yield from zip(self._digests(first, rows), self._numbers(first, rows), strict=True)

    def _pages_of(self, digest: int) -> range:
        """The pages that may have a digest, including the one before the first page that begins with it."""
        return range(max(0, bisect_left(self.firsts, digest) - 1), bisect_right(self.firsts, digest))

    def _digests(self, first: int, rows: int) -> Sequence[int]:
        return self._column(self.begins_at + first * _BYTES, rows)

    def _numbers(self, first: int, rows: int) -> Sequence[int]:
        return self._column(self.begins_at + (self.rows + first) * _BYTES, rows)

    def _column(self, at: int, rows: int) -> Sequence[int]:
        data = self.store.read_range(self.uri, at, rows * _BYTES)
        if len(data) != rows * _BYTES:
            raise RecordUnreadable(f"{self.uri}: truncated; expected {self.rows} rows. Delete it: it is rebuilt")
        return _numbers(data)


def open_run(store: ObjectStore, uri: str) -> SortedRun | None:
    """Read the head of a run; None if there is none, or only one that this release cannot read."""
    try:
        data = store.read_range(uri, 0, _HEAD_BYTES)
        if len(data) < _HEAD.size or not data.startswith(_MAGIC):
            return None
        _, rows, note_bytes = _HEAD.unpack_from(data)
        firsts_at = _HEAD.size + note_bytes
        begins_at = firsts_at + -(-rows // PAGE_ROWS) * _BYTES
        if len(data) < begins_at:
            data += store.read_range(uri, len(data), begins_at - len(data))
    except ObjectNotFound:
        return None
    if len(data) < begins_at:
        return None
    note = data[_HEAD.size : firsts_at].decode(errors="replace")
    return SortedRun(store, uri, rows, note, _numbers(data[firsts_at:begins_at]), begins_at)


def write_run(store: ObjectStore, uri: str, rows: Iterable[Row], note: str) -> SortedRun:
    """Write a run of sorted rows in bounded memory. The same rows and note produce the same bytes."""
    each, count, firsts, noted = iter(rows), 0, array("Q"), note.encode()
    with tempfile.TemporaryFile() as digests, tempfile.TemporaryFile() as numbers:
        while page := list(islice(each, PAGE_ROWS)):
            firsts.append(page[0][0])
            digests.write(_stored(array("Q", (digest for digest, _ in page))))
            numbers.write(_stored(array("Q", (number for _, number in page))))
            count += len(page)
        head = _HEAD.pack(_MAGIC, count, len(noted)) + noted + _stored(firsts[:])
        with store.writer(uri) as writer:
            writer.write(head)
            for file in (digests, numbers):
                for piece in _pieces(file):
                    writer.write(piece)
    return SortedRun(store, uri, count, note, firsts, len(head))


def _pieces(file: IO[bytes]) -> Iterator[bytes]:
    file.seek(0)
    while piece := file.read(_COPY_BYTES):
        yield piece


def _places(digests: Sequence[int], digest: int) -> range:
    at = bisect_left(digests, digest)
    is_there = at < len(digests) and digests[at] == digest
    return range(at, bisect_right(digests, digest, at) if is_there else at)


def _numbers(data: bytes) -> Sequence[int]:
    """The numbers in stored bytes, not copied if the machine has the store's byte order."""
    return _native(array("Q", data)) if sys.byteorder == "big" else memoryview(data).cast("Q")


def _stored(numbers: "array[int]") -> bytes:
    return _native(numbers).tobytes()


def _native(numbers: "array[int]") -> "array[int]":
    """Convert numbers between this machine's byte order and the store's, which is little-endian."""
    if sys.byteorder == "big":
        numbers.byteswap()
    return numbers


FANOUT = 16
MAX_ROWS = 1 << 26
"""The most rows in a merged run: 1 GB, and about two minutes of merging."""

_LEVELS = 6
_WANTED_AT_ONCE = 1 << 18
_READS_AT_ONCE = 4
"""Fewer than elsewhere: each may be 2 MB of digests."""

_MEMBER_BITS = 32


def number_of(place: int, member: int) -> int:
    """Encode a place in the log and a member of that place as the number in a row.

    Args:
        place: In the log, from 1.
        member: From 0, below 2**32.
    """
    return place << _MEMBER_BITS | member


def place_and_member(number: int) -> tuple[int, int]:
    """Decode a number made by `number_of`."""
    return number >> _MEMBER_BITS, number & (1 << _MEMBER_BITS) - 1


class _LevelRun(NamedTuple):
    """A run of a level, with its first and last place in the log."""

    level: int
    first: int
    last: int
    run: SortedRun


@dataclass(slots=True)
class RunLevels:
    """The runs in a folder, which ends with `/`. For one thread.

    Attributes:
        max_rows: See `MAX_ROWS`.
    """

    store: ObjectStore
    folder: str
    max_rows: int = MAX_ROWS
    _runs: list[_LevelRun] | None = field(default=None, init=False)

    @property
    def upto(self) -> int:
        """The last indexed place; 0 if there is none."""
        return self._all_runs()[-1].last if self._all_runs() else 0

    @property
    def note(self) -> str:
        """The note stored with that place."""
        return self._all_runs()[-1].run.note if self._all_runs() else ""

    def add(self, place: int, rows: Iterable[Row], note: str = "") -> None:
        """Add the rows of the place after the last one, in order, and merge complete groups of runs.

        An existing place is not written again, so a call that failed while merging may be repeated.
        """
        runs = self._all_runs()
        if place > self.upto + 1:
            raise ValueError(f"{self.folder}: place {place} does not directly follow {self.upto}")
        if place > self.upto:
            runs.append(self._written(0, place, place, rows, note))
        while (start := self._mergeable(runs)) is not None:
            runs[start : start + FANOUT] = [self._merged(runs[start : start + FANOUT])]

    def find(self, wanted: Sequence[int], *, after: int = 0) -> Iterator[Row]:
        """The rows that match any of the digests, in runs with places after a given one; some may be of earlier places.

        Args:
            wanted: The digests in order. Many digests read each page once, although not all are looked up together.
            after: The place.
        """
        runs = [each.run for each in self._all_runs() if each.last > after]
        chunks = (wanted[at : at + _WANTED_AT_ONCE] for at in range(0, len(wanted), _WANTED_AT_ONCE))
        parts = ((run, some, part) for some in chunks for run in runs for part in run.parts(some))
        for found in map_ordered(lambda each: each[0].find(each[1], *each[2]), parts, threads=_READS_AT_ONCE):
            yield from found

    def forget(self) -> None:
        """Delete all runs: they belong to a different log."""
        self.store.delete(info.uri for info in self.store.list(self.folder))
        self._runs = []

    def _all_runs(self) -> list[_LevelRun]:
        """The fewest runs that cover the log from its beginning."""
        if self._runs is None:
            runs: list[_LevelRun] = []
            for level in reversed(range(_LEVELS)):
                runs += self._following(level, runs[-1].last if runs else 0)
            self._runs = runs
        return self._runs

    def _following(self, level: int, place: int) -> Iterator[_LevelRun]:
        """The runs of a level that follow a place without a gap."""
        listed = self.store.list(f"{self.folder}{level}/", start_after=self._uri(level, place))
        for uri, run in map_ordered(lambda info: (info.uri, open_run(self.store, info.uri)), listed):
            first, last = place + 1, place + FANOUT**level
            if run is None or base_name(uri) != base_name(self._uri(level, last)):
                return
            yield _LevelRun(level, first, last, run)
            place = last

    def _mergeable(self, runs: list[_LevelRun]) -> int | None:
        """The start of sixteen runs that are ready to merge."""
        for start in range(len(runs) - FANOUT + 1):
            some = runs[start : start + FANOUT]
            level = some[0].level
            is_whole = some[-1].last % FANOUT ** (level + 1) == 0 and all(each.level == level for each in some)
            if is_whole and level + 1 < _LEVELS and sum(each.run.rows for each in some) <= self.max_rows:
                return start
        return None

    def _merged(self, some: list[_LevelRun]) -> _LevelRun:
        rows = heapq.merge(*(each.run.all_rows() for each in some))
        return self._written(some[0].level + 1, some[0].first, some[-1].last, rows, some[-1].run.note)

    def _written(self, level: int, first: int, last: int, rows: Iterable[Row], note: str) -> _LevelRun:
        return _LevelRun(level, first, last, write_run(self.store, self._uri(level, last), rows, note))

    def _uri(self, level: int, last: int) -> str:
        return f"{self.folder}{level}/{last:012d}.run"
