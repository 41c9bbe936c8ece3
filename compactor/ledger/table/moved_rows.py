"""Finds the rows of a file of a commit that is gone because it was merged: in the merged file, from a row on."""

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, lru_cache

from compactor.core.documents.table_records import MergedFile
from compactor.ledger.state import State
from compactor.ledger.table.releases import Releases

_DATES_HELD = 8


@dataclass(frozen=True, slots=True)
class Moved:
    """Rows of a file that is gone.

    Attributes:
        file: The merged file that has them.
        first: The number of rows before them.
        rows: Their number.
    """

    file: MergedFile
    first: int
    rows: int


@dataclass(frozen=True)
class MovedRows:
    """Looks up rows. Records of a date are read once, so make a new one for each call. Safe for many threads.

    What is gone was on record before that. So look for a file first, and ask only if it is not there.
    """

    state: State
    _asked_dates: set[str] = field(default_factory=set, init=False)

    def of(self, date: str, uri: str) -> Moved | None:
        """The rows of a file of a date in a merged file that is there; None if there is none.

        Raises:
            RecordUnreadable: A record of that date cannot be read.
        """
        may_be_old = date in self._asked_dates
        self._asked_dates.add(date)
        found = self._there(self._by_part(date).get(uri, ()))
        if found is not None or not may_be_old:
            return found
        return self._there(self._read(date).get(uri, ()))

    def are_gone(self, date: str, uri: str) -> bool:
        """Whether a file of a date is gone because it was merged, whatever became of the merged file."""
        return uri in self._by_part(date) and self.state.store.stat(uri) is None

    def _there(self, found: Sequence[Moved]) -> Moved | None:
        """The latest one whose file is there."""
        latest_first = sorted(found, key=lambda each: each.file.uri, reverse=True)
        return next((each for each in latest_first if self.state.store.stat(each.file.uri) is not None), None)

    @cached_property
    def _by_part(self) -> Callable[[str], Mapping[str, Sequence[Moved]]]:
        return lru_cache(maxsize=_DATES_HELD)(self._read)

    def _read(self, date: str) -> Mapping[str, Sequence[Moved]]:
        found = defaultdict[str, list[Moved]](list)
        for file in Releases(self.state).of_date(date):
            first = 0
            for part in file.parts:
                found[part.uri].append(Moved(file, first, part.rows))
                first += part.rows
        return found
