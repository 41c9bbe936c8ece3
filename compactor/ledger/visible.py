"""Tells, from all changes on record, what of a manifest is there, what a rule took, and where merged rows are."""

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from functools import lru_cache

from compactor.core.documents.changes import (
    TAKES,
    Part,
    Release,
    Rule,
    Taking,
    Why,
)
from compactor.core.documents.table_records import MergedFile
from compactor.core.errors import RecordUnreadable
from compactor.core.layout import ManifestKey
from compactor.ledger.change_log import changed_dates, changes_about, count_unfinished, places_about
from compactor.ledger.state import State

_DATES_HELD = 64
_MERGED_DATES_HELD = 8


@dataclass(frozen=True, slots=True)
class Moved:
    """Rows of a file of a commit that is gone because it was merged.

    Attributes:
        file: The merged file that has them.
        first: The number of rows before them.
        rows: Their number.
    """

    file: MergedFile
    first: int
    rows: int


@dataclass(frozen=True)
class Visible:
    """The fold of all changes. Changes of a date are read once, so make a new one for each call. Safe for many threads.

    What is gone was on record before that. So look for a file first, and ask only if it is not there: where the changes
    of its date were read before, they are read again before something counts as lost.

    Attributes:
        faults: What is wrong with changes that cannot be read, by their URIs. Nothing is under these.
    """

    state: State
    faults: dict[str, str] = field(default_factory=dict)
    # Made at once: from Python 3.12 on, threads that first ask for a `cached_property` may make one each.
    _held: Callable[[Why, str], tuple[Taking, ...]] = field(init=False)
    _held_parts: Callable[[str], Mapping[str, Sequence[Moved]]] = field(init=False)
    _retired_dates: Callable[[], frozenset[str]] = field(init=False)
    _asked: set[tuple[str, str]] = field(default_factory=set, init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_held", lru_cache(maxsize=_DATES_HELD)(self._read))
        object.__setattr__(self, "_held_parts", lru_cache(maxsize=_MERGED_DATES_HELD)(self._read_parts))
        object.__setattr__(self, "_retired_dates", lru_cache(maxsize=1)(self._read_retired_dates))

    def taken(self, part: Part, key: ManifestKey, generation: int = 1) -> Taking | None:
        """The change that took a part of a manifest; None if it has to be there."""
        whys = [why for why, parts in TAKES.items() if part in parts]
        may_be_old = self._was_asked("taken", key.date)
        found = taken_by((each for why in whys for each in self._held(why, key.date)), part, key, generation)
        if found is not None or not may_be_old:
            return found
        return taken_by((each for why in whys for each in self._read(why, key.date)), part, key, generation)

    def has_retired_rows(self, key: ManifestKey, generation: int) -> bool:
        """Whether the rows of a generation of a manifest went under a rule, for calls that ask it of every manifest."""
        return key.date in self._retired_dates() and self.taken("rows", key, generation) is not None

    def moved(self, date: str, uri: str) -> Moved | None:
        """The rows of a file of a date in a merged file that is there; None if there is none.

        Raises:
            RecordUnreadable: A change of that date cannot be read.
        """
        may_be_old = self._was_asked("moved", date)
        found = self._there(self._held_parts(date).get(uri, ()))
        if found is not None or not may_be_old:
            return found
        return self._there(self._read_parts(date).get(uri, ()))

    def is_moved(self, date: str, uri: str) -> bool:
        """Whether a file of a date is gone because it was merged, whatever became of the merged file."""
        return uri in self._held_parts(date) and self.state.store.stat(uri) is None

    def _was_asked(self, what: str, date: str) -> bool:
        was_asked = (what, date) in self._asked
        self._asked.add((what, date))
        return was_asked

    def _there(self, found: Sequence[Moved]) -> Moved | None:
        """The latest one whose file is there."""
        latest_first = sorted(found, key=lambda each: each.file.uri, reverse=True)
        return next((each for each in latest_first if self.state.store.stat(each.file.uri) is not None), None)

    def _read_retired_dates(self) -> frozenset[str]:
        whys = [why for why, parts in TAKES.items() if "rows" in parts]
        return frozenset(date for why in whys for date, _, _ in changed_dates(self.state, why))

    def _read(self, why: Why, date: str) -> tuple[Taking, ...]:
        found = list[Taking]()
        for uri in places_about(self.state, date, why):
            try:
                found += filter(None, [Taking.find(self.state.store, uri)])
            except RecordUnreadable as exc:
                self.faults[uri] = str(exc).removeprefix(f"{uri}: ")
        return tuple(found)

    def _read_parts(self, date: str) -> Mapping[str, Sequence[Moved]]:
        found = defaultdict[str, list[Moved]](list)
        for change in changes_about(self.state, Release, date, Why.RELEASED):
            first = 0
            for part in change.file.parts:
                found[part.uri].append(Moved(change.file, first, part.rows))
                first += part.rows
        return found


@dataclass(frozen=True, slots=True)
class ExpiredKind:
    """What is on record as expired under one kind of rule."""

    kind: Rule  # rule: retired dates, or the age of archived manifests, redriven lines or rejects
    dates: int  # dates of which something expired
    first_date: str  # the earliest of them
    last_date: str  # the latest of them
    recorded_at: datetime  # time of the latest record


@dataclass(frozen=True, slots=True)
class ExpiredSeen:
    """What is on record as expired, in a few figures."""

    retired_dates: int = 0  # dates that `compactor retire` took
    expiring: int = 0  # records of what expired whose deletion is not finished
    kinds: tuple[ExpiredKind, ...] = ()  # by kind of rule, those with a record

    def __bool__(self) -> bool:
        return bool(self.kinds or self.expiring)


NOTHING_EXPIRED = ExpiredSeen()


def taken_by(takings: Iterable[Taking], part: Part, key: ManifestKey, generation: int) -> Taking | None:
    """The first change that took a part of a manifest; None if it has to be there."""
    found = [each for each in takings if each.takes(part, key, generation)]
    return min(found, key=lambda each: (each.decided_at, each.id), default=None)


def expired_seen(state: State) -> ExpiredSeen:
    """What is on record as expired. Reads no record: a listing for each kind, of one request for 1,000 records."""
    kinds = list[ExpiredKind]()
    for why in TAKES:
        if found := list(changed_dates(state, why)):
            dates = {date for date, _, _ in found}
            kinds.append(ExpiredKind(why, len(dates), min(dates), max(dates), max(at for _, _, at in found)))
    return ExpiredSeen(
        retired_dates=sum(each.dates for each in kinds if each.kind is Why.RETIRED),
        expiring=count_unfinished(state, TAKES),
        kinds=tuple(kinds),
    )
