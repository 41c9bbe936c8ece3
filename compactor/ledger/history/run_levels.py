"""An index over a log, as sorted runs that are merged in levels: so there are few of them, however long the log is.

A run of level 0 is of one place in the log, from 1. Sixteen runs of a level are merged into one of the next level,
unless that would be too large. They stay, so a reader who has a list of runs can go on with it. All that is here
follows from the log, and is made again if it is lost: two processes that write the same run write the same bytes.
"""

import heapq
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from compactor.core.layout import base_name
from compactor.core.map_ordered import map_ordered
from compactor.core.ports import ObjectStore
from compactor.ledger.history.sorted_runs import Row, SortedRun, open_run, write_run

FANOUT = 16
MAX_ROWS = 1 << 26
"""The most rows of a merged run: 1 GB, and about two minutes of merging."""

_LEVELS = 6
_WANTED_AT_ONCE = 1 << 18
_READS_AT_ONCE = 4
"""Fewer than elsewhere: each may be 2 MB of digests."""

_MEMBER_BITS = 32


def number_of(place: int, member: int) -> int:
    """The number in a row that says in which place of the log something is, and which member of that place it is.

    Args:
        place: In the log, from 1.
        member: From 0, below 2**32.
    """
    return place << _MEMBER_BITS | member


def place_and_member(number: int) -> tuple[int, int]:
    """What `number_of` made a number of."""
    return number >> _MEMBER_BITS, number & (1 << _MEMBER_BITS) - 1


class _Placed(NamedTuple):
    """A run of a level, with its first and last place in the log."""

    level: int
    first: int
    last: int
    run: SortedRun


@dataclass(slots=True)
class RunLevels:
    """The runs below a folder, which ends with `/`. For one thread.

    Attributes:
        max_rows: See `MAX_ROWS`.
    """

    store: ObjectStore
    folder: str
    max_rows: int = MAX_ROWS
    _runs: list[_Placed] | None = field(default=None, init=False)

    @property
    def upto(self) -> int:
        """The last place that is in the index; 0 if none is."""
        return self._placed()[-1].last if self._placed() else 0

    @property
    def note(self) -> str:
        """What was noted with that place."""
        return self._placed()[-1].run.note if self._placed() else ""

    def add(self, place: int, rows: Iterable[Row], note: str = "") -> None:
        """Add the rows of the place behind the last one, in order, and merge runs that are complete.

        A place that is there already is not written again: a call that failed while it merged may be repeated.
        """
        runs = self._placed()
        if place > self.upto + 1:
            raise ValueError(f"{self.folder}: place {place} cannot follow on {self.upto}")
        if place > self.upto:
            runs.append(self._written(0, place, place, rows, note))
        while (start := self._mergeable(runs)) is not None:
            runs[start : start + FANOUT] = [self._merged(runs[start : start + FANOUT])]

    def find(self, wanted: Sequence[int], *, after: int = 0) -> Iterator[Row]:
        """The rows that have one of the digests, in runs with places behind one: so some may be of places before it.

        Args:
            wanted: The digests in order. So many of them read each page once, although not all are looked up at once.
            after: The place.
        """
        runs = [each.run for each in self._placed() if each.last > after]
        chunks = (wanted[at : at + _WANTED_AT_ONCE] for at in range(0, len(wanted), _WANTED_AT_ONCE))
        parts = ((run, some, part) for some in chunks for run in runs for part in run.parts(some))
        for found in map_ordered(lambda each: each[0].find(each[1], *each[2]), parts, threads=_READS_AT_ONCE):
            yield from found

    def forget(self) -> None:
        """Delete all runs: they are of another log."""
        self.store.delete(info.uri for info in self.store.list(self.folder))
        self._runs = []

    def _placed(self) -> list[_Placed]:
        """The runs that cover the log from its beginning, as few as there are."""
        if self._runs is None:
            runs: list[_Placed] = []
            for level in reversed(range(_LEVELS)):
                runs += self._following(level, runs[-1].last if runs else 0)
            self._runs = runs
        return self._runs

    def _following(self, level: int, place: int) -> Iterator[_Placed]:
        """The runs of a level that follow on a place without a gap."""
        listed = self.store.list(f"{self.folder}{level}/", start_after=self._uri(level, place))
        for uri, run in map_ordered(lambda info: (info.uri, open_run(self.store, info.uri)), listed):
            first, last = place + 1, place + FANOUT**level
            if run is None or base_name(uri) != base_name(self._uri(level, last)):
                return
            yield _Placed(level, first, last, run)
            place = last

    def _mergeable(self, runs: list[_Placed]) -> int | None:
        """Where sixteen runs begin that are to be merged."""
        for start in range(len(runs) - FANOUT + 1):
            some = runs[start : start + FANOUT]
            level = some[0].level
            is_whole = some[-1].last % FANOUT ** (level + 1) == 0 and all(each.level == level for each in some)
            if is_whole and level + 1 < _LEVELS and sum(each.run.rows for each in some) <= self.max_rows:
                return start
        return None

    def _merged(self, some: list[_Placed]) -> _Placed:
        rows = heapq.merge(*(each.run.all_rows() for each in some))
        return self._written(some[0].level + 1, some[0].first, some[-1].last, rows, some[-1].run.note)

    def _written(self, level: int, first: int, last: int, rows: Iterable[Row], note: str) -> _Placed:
        return _Placed(level, first, last, write_run(self.store, self._uri(level, last), rows, note))

    def _uri(self, level: int, last: int) -> str:
        return f"{self.folder}{level}/{last:012d}.run"
