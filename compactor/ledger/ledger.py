"""The ledger: create-only records of each manifest's progress, from which all other state is derived."""

import re
from collections.abc import Callable, Collection, Container, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import groupby, takewhile
from threading import Lock
from typing import TypeVar, overload

from compactor.core.documents.changes import (
    OUTCOME,
    Commit,
    DeadLetter,
    LaterChange,
    place_of,
)
from compactor.core.documents.closed_dates import COMMIT_MARK
from compactor.core.documents.document import Document, parsed
from compactor.core.documents.records import (
    Accepted,
    Attempt,
    AttemptFailure,
    AttemptsFolded,
    Done,
    OpenMarker,
    RecentCommit,
)
from compactor.core.errors import ObjectNotFound, StuckError, TryAgainError
from compactor.core.layout import Layout, ManifestKey, base_name, done_name, is_date, outcome_generation
from compactor.core.map_ordered import map_ordered
from compactor.core.ports import Clock, ObjectInfo, ObjectStore
from compactor.core.rules.attempts import Attempts, AttemptState, held_against, last_error

RECENT_SLOTS = 64  # latest commit summaries kept for sizing and `status`

FOLD_AT = 16
"""Once a manifest has this many attempt records, all but the last are folded into one record."""

_LONG_AGO = datetime.min.replace(tzinfo=UTC)
_ATTEMPT_NAME = re.compile(r"attempt-(?P<number>\d+)\.json")
_FOLDED_NAME = re.compile(r"attempts-to-(?P<number>\d+)\.json")


L = TypeVar("L", bound=LaterChange)


@dataclass(frozen=True, slots=True)
class LedgerState:
    """The records of one manifest.

    Attributes:
        attempts: Not read if there is an outcome.
        outcome: None if undecided. Only a rebuild changes it.
        is_done: All files of the outcome are in their final places.
    """

    attempts: Attempts
    outcome: Commit | DeadLetter | None
    is_done: bool


class Ledger:
    """Reads and writes the records of one state prefix, for one run.

    Args:
        store: Source of the records.
        layout: Their places.
        clock: The time for records.
        run_id: Part of every record, so that a retry after a lost response recognizes its own record.
    """

    def __init__(self, store: ObjectStore, layout: Layout, clock: Clock, run_id: str) -> None:
        self._store = store
        self._layout = layout
        self._clock = clock
        self.run_id = run_id
        self._slot_lock = Lock()
        self._next_slot: int | None = None
        self._ring: dict[ObjectInfo, RecentCommit] = {}  # what `_recent` read last

    def accepted(self, manifest_id: str) -> Accepted | None:
        """The record that binds an id; None if it is unbound."""
        return Accepted.find(self._store, self._layout.accepted(manifest_id))

    def accept(self, record: Accepted) -> Accepted:
        """Bind an id, unless it is bound already; return the valid record, this one or an earlier one."""
        uri = self._layout.accepted(record.manifest_id)
        if self._store.create(uri, record.to_json()):  # guard: an id is bound once
            return record
        return self.record(uri, Accepted)  # guard: an id is bound to its first manifest for good

    def begin_intake(self, place: str) -> int:
        """Record that this run reads a large delivered object; return how many other runs started and did not finish.

        Args:
            place: Identifies the object and its version.
        """
        folder = self._layout.intake_folder(place)
        own = f"{folder}{self.run_id}.json"
        earlier = sum(info.uri != own for info in self._store.list(folder))
        self._store.put(own, b"{}")
        return earlier

    def end_intake(self, place: str) -> None:
        """Delete the record of the runs that read an object."""
        self._store.delete([info.uri for info in self._store.list(self._layout.intake_folder(place))])

    def state(self, key: ManifestKey) -> LedgerState:
        """Read a manifest's state."""
        names = self.record_names(key)
        outcome = self.recorded_outcome(key, names)
        return LedgerState(Attempts() if outcome else self.attempts(key, names), outcome, is_done(outcome, names))

    def attempts(self, key: ManifestKey, names: Collection[str]) -> Attempts:
        """A manifest's attempts, given the names of its records."""
        upto = max(_numbers(_FOLDED_NAME, names), default=0)
        folded = self.record(self._layout.folded_attempts(key, upto), AttemptsFolded) if upto else None
        numbers = [number for number in _numbers(_ATTEMPT_NAME, names) if number > upto]
        return Attempts(tuple(self._attempt_state(key, number, names) for number in numbers), folded)

    def fold(self, key: ManifestKey, attempts: Attempts) -> None:
        """Before the next attempt, fold the records of the first attempts into one if there are many.

        An attempt without a recorded end is never folded.
        """
        first = attempts.unfolded[:-1]
        if len(attempts.unfolded) < FOLD_AT or any(state.failure is None for state in first):
            return
        earlier = Attempts(first, attempts.folded)
        upto = earlier.last_number
        last = attempts.unfolded[-1].attempt
        folded = AttemptsFolded(
            manifest_id=key.id,
            upto=upto,
            failures=earlier.failures,
            held=held_against(
                earlier, (), others_got_through=last.after_progress, self_test_passed=last.after_self_test
            ),
            deaths=earlier.deaths,
            last_error=last_error(earlier),
            first_started_at=attempts.folded.first_started_at if attempts.folded else first[0].attempt.started_at,
            folded_at=self._clock.now(),
        )
        self._store.create(self._layout.folded_attempts(key, upto), folded.to_json())
        places = [
            (self._layout.attempt(key, number), self._layout.attempt_failure(key, number))
            for number in (state.attempt.number for state in first)
        ]
        old = [self._layout.folded_attempts(key, attempts.folded.upto)] if attempts.folded else []
        self._store.delete([uri for pair in places for uri in pair] + old)

    def _attempt_state(self, key: ManifestKey, number: int, names: Collection[str]) -> AttemptState:
        attempt = self.record(self._layout.attempt(key, number), Attempt)
        failure_uri = self._layout.attempt_failure(key, number)
        is_failed = base_name(failure_uri) in names
        return AttemptState(attempt, self.record(failure_uri, AttemptFailure) if is_failed else None)

    def open(self, key: ManifestKey, generation: int = 1, attempt: int = 0) -> None:
        """Add a manifest to the index of open ones. A rebuild adds its generation and its attempt."""
        marker = OpenMarker(manifest_id=key.id, date=key.date)
        # guard: open manifests are found again after a death
        self._store.create(self._layout.open_marker(key.id, generation, attempt), marker.to_json())

    def close(self, manifest_id: str, generation: int = 1) -> None:
        """Remove a manifest from the index of open ones. Rebuilds of later generations stay."""
        rebuilds = self.open_rebuilds(manifest_id) if generation > 1 else []
        over = [uri for uri, of, _ in rebuilds if of <= generation]
        self._store.delete([self._layout.open_marker(manifest_id), *over])

    def open_rebuilds(self, manifest_id: str) -> list[tuple[str, int, datetime]]:
        """The markers of a manifest's rebuilds, with generation and time of writing."""
        beginning = self._layout.open_rebuilds(manifest_id)
        listed = self._store.list(self._layout.open_folder, start_after=beginning)
        found = takewhile(lambda info: info.uri.startswith(beginning), listed)
        return [(info.uri, self._layout.opened_generation(info.uri), info.modified_at) for info in found]

    def mark_unsummarised(self, outcome: Commit | DeadLetter) -> None:
        """Mark a finished manifest for the next summary of its date. Call it before `data close`."""
        key = outcome.key
        is_commit = isinstance(outcome, Commit)
        mark = COMMIT_MARK if is_commit else OpenMarker(manifest_id=key.id, date=key.date).to_json()
        self._store.create(self._layout.unsummarised(key, outcome.generation), mark)

    def open_ids(self) -> Iterator[str]:
        """The ids of all started manifests that are not done."""
        return iter(dict.fromkeys(self._layout.opened_id(info.uri) for info in self._records(self._layout.open_folder)))

    def opened_date(self, manifest_id: str) -> str | None:
        """The date of an open manifest; None if it is not open.

        Raises:
            RecordUnreadable: Its marker is damaged.
        """
        found = (
            info.uri
            for info in self._records(self._layout.open_folder)
            if self._layout.opened_id(info.uri) == manifest_id
        )
        return next((self.record(uri, OpenMarker).date for uri in found), None)

    def begin(
        self,
        key: ManifestKey,
        *,
        after: int,
        alone: bool,
        after_progress: bool = False,
        after_self_test: bool = False,
        generation: int = 1,
    ) -> Attempt:
        """Record a new attempt before its work starts; see `Attempt`.

        It gets the next free number after `after`, the highest known one: other drivers may have started more
        meanwhile.
        """
        number = after
        while True:
            number += 1
            attempt = Attempt(
                manifest_id=key.id,
                number=number,
                run_id=self.run_id,
                alone=alone,
                after_progress=after_progress,
                after_self_test=after_self_test,
                generation=generation,
                started_at=self._clock.now(),
            )
            # guard: an attempt is on record before its work starts
            if self._store.create(self._layout.attempt(key, number), attempt.to_json()):
                return attempt

    def fail(self, key: ManifestKey, failure: AttemptFailure) -> None:
        """Record once that an attempt ended without an outcome."""
        self._store.create(self._layout.attempt_failure(key, failure.number), failure.to_json())

    def outcome(self, key: ManifestKey) -> Commit | DeadLetter:
        """The valid outcome of a manifest: that of its latest generation.

        Raises:
            ObjectNotFound: It has none.
            RecordUnreadable: Its outcome cannot be read.
        """
        newest, generation = self._store.read(self._layout.outcome(key)), 1
        while (later := self._read(self._layout.outcome(key, generation + 1))) is not None:
            newest, generation = later, generation + 1
        return _outcome(newest, self._layout.outcome(key, generation))

    def recorded_outcome(self, key: ManifestKey, names: Collection[str]) -> Commit | DeadLetter | None:
        """As `outcome`, given the names of the records; None if there is no outcome."""
        generation = newest_generation(names)
        return None if generation is None else self.outcome_of(key, generation)

    def outcome_of(self, key: ManifestKey, generation: int) -> Commit | DeadLetter:
        """The outcome of one generation; see `outcome`."""
        uri = self._layout.outcome(key, generation)
        return _outcome(self._store.read(uri), uri)

    @overload
    def decide(self, change: Commit | DeadLetter) -> Commit | DeadLetter: ...

    @overload
    def decide(self, change: L) -> L: ...

    def decide(self, change: Commit | DeadLetter | L) -> Commit | DeadLetter | L:
        """Record a change, unless its place is taken. This is the commit point.

        Returns:
            The valid change: this one, or that of a faster process.

        Raises:
            RecordUnreadable: Another process's change cannot be read.
        """
        uri = place_of(self._layout, change)
        if self._store.create(uri, change.to_json()):
            return change
        if isinstance(change, LaterChange):
            return self.record(uri, type(change))
        return self.outcome(change.key)  # guard: the losing driver reads the valid outcome

    def finish(self, key: ManifestKey, generation: int = 1) -> datetime:
        """Record that everything is in its final place; return the time of the record."""
        done = Done(manifest_id=key.id, run_id=self.run_id, done_at=self._clock.now())
        self._store.create(self._layout.done(key, generation), done.to_json())
        return done.done_at

    def is_done(self, key: ManifestKey, generation: int = 1) -> bool:
        """Whether all files of a generation's outcome were in their final places."""
        return self._store.stat(self._layout.done(key, generation)) is not None

    def is_superseded(self, key: ManifestKey, generation: int) -> bool:
        """Whether a later generation is decided."""
        return self._store.stat(self._layout.outcome(key, generation + 1)) is not None

    def remember(self, commit: RecentCommit) -> None:
        """Replace the oldest summary in the ring of recent commits."""
        with self._slot_lock:
            if self._next_slot is None:
                self._next_slot = self._first_slot()
            slot, self._next_slot = self._next_slot, (self._next_slot + 1) % RECENT_SLOTS
        self._store.put(self._layout.recent(slot), commit.to_json())

    def _first_slot(self) -> int:
        """A free slot, or that of the oldest commit. `revise` rewrites slots, so their times are meaningless."""
        taken = {info.uri for info in self._store.list(self._layout.recent_folder)}
        free = (slot for slot in range(RECENT_SLOTS) if self._layout.recent(slot) not in taken)
        if (slot := next(free, None)) is not None:
            return slot
        known = {uri: commit.decided_at for uri, commit in self._recent()}
        return min(range(RECENT_SLOTS), key=lambda slot: known.get(self._layout.recent(slot), _LONG_AGO))

    def recent(self) -> list[RecentCommit]:
        """Summaries of recent commits, oldest first. A cache: they may be lost."""
        return sorted((commit for _, commit in self._recent()), key=lambda commit: commit.decided_at)

    def revise(self, manifest_ids: Container[str], revised: Callable[[RecentCommit, Commit], RecentCommit]) -> None:
        """Replace the summaries of rebuilt manifests that are still in the ring.

        It is a cache: a summary stays unchanged if its commit cannot be read or the store fails.
        """
        with suppress(TryAgainError, StuckError, ObjectNotFound):
            for uri, known in self._recent():
                if known.manifest_id in manifest_ids and isinstance(outcome := self.outcome(known.key), Commit):
                    self._store.put(uri, revised(known, outcome).to_json())

    def _recent(self) -> Iterator[tuple[str, RecentCommit]]:
        """The ring. A summary that was read before, and has the same version, is not read again."""
        infos = list(self._store.list(self._layout.recent_folder))
        kept = {info: self._ring[info] for info in infos if info in self._ring}
        unread = [info for info in infos if info not in kept]
        found = map_ordered(lambda info: (info, RecentCommit.find_readable(self._store, info.uri)), unread)
        kept |= {info: commit for info, commit in found if commit is not None}  # an unreadable one counts as lost
        self._ring = kept
        return iter([(info.uri, kept[info]) for info in infos if info in kept])

    def listed(self, date: str | None = None) -> Iterator[tuple[ManifestKey, dict[str, datetime]]]:
        """Every manifest on record, or those of one date, each with its records as `records` gives them."""
        infos = self._records(self._layout.ledger_folder_of(date) if date else self._layout.ledger_folder)
        for key, those in groupby(infos, key=lambda info: ManifestKey(*info.uri.split("/")[-3:-1])):
            yield key, {base_name(info.uri): info.modified_at for info in those}

    def manifests(self, date: str | None = None) -> Iterator[ManifestKey]:
        """Every manifest on record, or those of one date."""
        return (key for key, _ in self.listed(date))

    def dates(self) -> Iterator[str]:
        """The dates that have records, earliest first. Costs one request per date, however many records it has."""
        folder, after = self._layout.ledger_folder, None
        while (info := next(iter(self._store.list(folder, start_after=after)), None)) is not None:
            date = info.uri.removeprefix(folder).partition("/")[0]
            if is_date(date):
                yield date
            after = f"{folder}{date}0"  # sorts right after everything in that date's folder

    def record(self, uri: str, kind: "type[Record]") -> "Record":
        """Read one record.

        Raises:
            ObjectNotFound: It does not exist.
            RecordUnreadable: It is not a record of this kind.
        """
        return kind.read(self._store.read(uri), uri)

    def record_names(self, key: ManifestKey) -> frozenset[str]:
        """The names of all records of a manifest, such as `attempt-1.json`."""
        return frozenset(self.records(key))

    def records(self, key: ManifestKey) -> dict[str, datetime]:
        """The names of all records of a manifest, with the store's times."""
        return {base_name(info.uri): info.modified_at for info in self._records(self._layout.ledger_records(key))}

    def _records(self, folder: str) -> Iterator[ObjectInfo]:
        """The records in a folder, without the empty objects that mark folders in the S3 console."""
        return (info for info in self._store.list(folder) if info.uri.endswith(".json"))

    def verified_commit(self, key: ManifestKey, attempt: int) -> Commit | None:
        """The commit of a verified attempt, before it takes effect; None if the attempt ended earlier."""
        uri = self._layout.verified_commit(key.id, attempt)
        return Commit.find(self._store, uri, "a verified commit")

    def keep_verified(self, commit: Commit) -> None:
        """Save the commit of a verified attempt, so that any driver can decide it without repeating its work."""
        uri = self._layout.verified_commit(commit.manifest_id, commit.attempt, commit.generation)
        self._store.put(uri, commit.to_json())

    def _read(self, uri: str) -> bytes | None:
        try:
            return self._store.read(uri)
        except ObjectNotFound:
            return None


Record = TypeVar("Record", bound=Document)


def newest_generation(names: Iterable[str]) -> int | None:
    """The generation of the valid outcome, given the names of a manifest's records; None without an outcome."""
    return max(filter(None, map(outcome_generation, names)), default=None)


def is_done(outcome: Commit | DeadLetter | None, names: Collection[str]) -> bool:
    """Whether everything is in its final place, given the names of a manifest's records."""
    return done_name(outcome.generation if outcome else 1) in names


def _outcome(data: bytes, uri: str) -> Commit | DeadLetter:
    return parsed(OUTCOME.validate_json, data, uri, "a commit or a dead letter")


def _numbers(pattern: re.Pattern[str], names: Iterable[str]) -> list[int]:
    return sorted(int(found["number"]) for name in names if (found := pattern.fullmatch(name)))
