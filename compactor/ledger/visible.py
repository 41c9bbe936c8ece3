"""Determines from all changes which parts of a manifest exist, what rules deleted, and where merged rows are."""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import lru_cache

from compactor.core.documents.changes import (
    TAKES,
    Commit,
    GivenUp,
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
    """Rows of a commit's file that was deleted after a merge.

    Attributes:
        file: The merged file with these rows.
        first: The number of rows before them.
        rows: Their number.
    """

    file: MergedFile
    first: int
    rows: int


class Visible:
    """The fold of all changes. Changes of a date are read once, so make a new one per call. Safe for many threads.

    Every deletion is recorded before it happens. So look for a file first, and ask only if it is missing: changes that
    were read earlier are read again before anything counts as lost.

    Attributes:
        faults: Errors of unreadable changes, by URI. Their effects are unknown.
    """

    def __init__(self, state: State) -> None:
        self.state = state
        self.faults: dict[str, str] = {}
        # Created eagerly: from Python 3.12 on, threads that race for a `cached_property` may create one each.
        self._held = lru_cache(_DATES_HELD)(self._read)
        self._held_parts = lru_cache(_MERGED_DATES_HELD)(self._read_parts)
        self._expired_dates = lru_cache(1)(self._read_expired_dates)
        self._given_up = lru_cache(_DATES_HELD)(self._read_given_up)
        self._asked = set[tuple[str, str]]()

    def deletion(self, part: Part, key: ManifestKey, generation: int = 1) -> Taking | None:
        """The change that deleted a part of a manifest; None if the part must exist."""
        whys = [why for why, parts in TAKES.items() if part in parts]
        may_be_old = self._was_asked("deletion", key.date)
        found = expired_by((each for why in whys for each in self._held(why, key.date)), part, key, generation)
        if found is not None or not may_be_old:
            return found
        return expired_by((each for why in whys for each in self._read(why, key.date)), part, key, generation)

    def given_up(self, commit: Commit, uri: str) -> GivenUp | None:
        """Who gave up a lost file of output or rejects, and why; None if it must exist."""
        found = (each for each in self._given_up(commit.manifest_id) if each.generation == commit.generation)
        return next((each for each in found if each.input == uri), None)

    def has_expired_rows(self, key: ManifestKey, generation: int) -> bool:
        """Whether a rule deleted the rows of a manifest's generation, for calls that check every manifest."""
        return key.date in self._expired_dates() and self.deletion("rows", key, generation) is not None

    def moved(self, date: str, uri: str) -> Moved | None:
        """The place of a file's rows in an existing merged file; None if there is none.

        Raises:
            RecordUnreadable: A change of that date cannot be read.
        """
        may_be_old = self._was_asked("moved", date)
        found = self._there(self._held_parts(date).get(uri, ()))
        if found is not None or not may_be_old:
            return found
        return self._there(self._read_parts(date).get(uri, ()))

    def is_moved(self, date: str, uri: str) -> bool:
        """Whether a date's file was deleted after a merge, whether or not the merged file still exists."""
        return uri in self._held_parts(date) and self.state.store.stat(uri) is None

    def _was_asked(self, what: str, date: str) -> bool:
        was_asked = (what, date) in self._asked
        self._asked.add((what, date))
        return was_asked

    def _there(self, found: Sequence[Moved]) -> Moved | None:
        """The latest one whose file exists."""
        latest_first = sorted(found, key=lambda each: each.file.uri, reverse=True)
        return next((each for each in latest_first if self.state.store.stat(each.file.uri) is not None), None)

    def _read_expired_dates(self) -> frozenset[str]:
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

    def _read_given_up(self, manifest_id: str) -> tuple[GivenUp, ...]:
        return tuple(changes_about(self.state, GivenUp, manifest_id, Why.GIVEN_UP))

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
    """What is recorded as expired under one kind of rule."""

    kind: Rule  # rule: expired dates, or the age of archived manifests, redriven lines or rejects
    dates: int  # dates with expired data
    first_date: str  # the earliest of them
    last_date: str  # the latest of them
    recorded_at: datetime  # time of the latest record


@dataclass(frozen=True, slots=True)
class ExpiredSeen:
    """What is recorded as expired, in a few figures."""

    expired_dates: int = 0  # dates deleted by `compactor data expire`
    expiring: int = 0  # records of expired data whose deletion is unfinished
    kinds: tuple[ExpiredKind, ...] = ()  # by kind of rule, if any record exists

    def __bool__(self) -> bool:
        return bool(self.kinds or self.expiring)


NOTHING_EXPIRED = ExpiredSeen()


def expired_by(takings: Iterable[Taking], part: Part, key: ManifestKey, generation: int) -> Taking | None:
    """The first change that deleted a part of a manifest; None if the part must exist."""
    found = [each for each in takings if each.takes(part, key, generation)]
    return min(found, key=lambda each: (each.decided_at, each.id), default=None)


def expired_seen(state: State) -> ExpiredSeen:
    """Summarise what is recorded as expired. Reads no records: one listing per kind, one request per 1,000 records."""
    kinds = list[ExpiredKind]()
    for why in TAKES:
        if found := list(changed_dates(state, why)):
            dates = {date for date, _, _ in found}
            kinds.append(ExpiredKind(why, len(dates), min(dates), max(dates), max(at for _, _, at in found)))
    return ExpiredSeen(
        expired_dates=sum(each.dates for each in kinds if each.kind is Why.DATE),
        expiring=count_unfinished(state, TAKES),
        kinds=tuple(kinds),
    )
