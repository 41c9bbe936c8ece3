"""The records of what expired: written before anything is deleted, and read where something is gone."""

from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass, field
from functools import cached_property, lru_cache

from compactor.core.documents.expired import TAKES, Expired, Expiry, Part, expired_in
from compactor.core.errors import ObjectNotFound, RecordUnreadable
from compactor.core.layout import ManifestKey, is_date
from compactor.core.ports import ObjectInfo
from compactor.ledger.state import State

_DATES_HELD = 64


@dataclass(frozen=True, slots=True)
class ExpiredLog:
    """Reads and writes the records of what expired."""

    state: State

    def begin(self, record: Expired) -> None:
        """Put the intention on record, so that the next run carries it out if this one dies."""
        self.state.store.create(self._begun(record), record.to_json())

    def record(self, record: Expired) -> Expired:
        """Put on record what expires.

        Returns:
            The record that is valid from now on: this one, or an equal one that another process was faster with.

        Raises:
            RecordUnreadable: There is such a record, and it cannot be read.
        """
        uri = self.state.layout.expired(record.kind, record.date, record.name)
        if self.state.store.create(uri, record.to_json()):
            return record
        return self.state.ledger.record(uri, Expired)

    def finish(self, record: Expired) -> None:
        """Forget the intention: everything under the record is deleted."""
        self.state.store.delete([self._begun(record)])

    def unfinished(self, kinds: Collection[Expiry]) -> Iterator[Expired]:
        """The records of some kinds whose deletion is not finished.

        Raises:
            RecordUnreadable: One of them cannot be read.
        """
        for info in self.state.store.list(self.state.layout.expiring_folder):
            if info.uri.removeprefix(self.state.layout.expiring_folder).partition("~")[0] in set(kinds):
                try:
                    yield self.state.ledger.record(info.uri, Expired)
                except ObjectNotFound:  # another process finished it
                    continue

    def names(self, kind: Expiry) -> Iterator[tuple[str, str]]:
        """The date and the name of each record of a kind, by a listing alone."""
        folder = f"{self.state.layout.expired_folder}{kind}/"
        for info in self.state.store.list(folder):
            date, _, name = info.uri.removeprefix(folder).partition("/")
            if is_date(date) and name.endswith(".json"):
                yield date, name.removesuffix(".json")

    def of_date(self, kind: Expiry, date: str) -> list[Expired]:
        """The records of a kind and a date.

        Raises:
            RecordUnreadable: One of them cannot be read.
        """
        return [self.state.ledger.record(info.uri, Expired) for info in self.listed(kind, date)]

    def listed(self, kind: Expiry, date: str) -> Iterator[ObjectInfo]:
        """The objects of the records of a kind and a date."""
        listed = self.state.store.list(f"{self.state.layout.expired_folder}{kind}/{date}/")
        return (info for info in listed if info.uri.endswith(".json"))

    def _begun(self, record: Expired) -> str:
        return self.state.layout.expiring(record.kind, record.date, record.name)


@dataclass(frozen=True)
class ExpiredParts:
    """Tells what expired. Records of a date are read once, so make a new one for each call. Safe for many threads.

    Attributes:
        faults: What is wrong with records that cannot be read, by their URIs. Nothing is under these.
    """

    state: State
    faults: dict[str, str] = field(default_factory=dict)
    _asked_dates: set[str] = field(default_factory=set, init=False)

    def of(self, part: Part, key: ManifestKey, generation: int = 1) -> Expired | None:
        """The record that a part of a manifest expired by; None if it has to be there."""
        kinds = [kind for kind in Expiry if part in TAKES[kind]]
        may_be_old = key.date in self._asked_dates
        self._asked_dates.add(key.date)
        held = [record for kind in kinds for record in self._records(kind, key.date)]
        found = expired_in(held, part, key, generation)
        if found is not None or not may_be_old:
            return found
        # It may have expired since. What is deleted is on record before that, so another reading tells.
        now = [record for kind in kinds for record in self._read(kind, key.date)]
        return expired_in(now, part, key, generation)

    @cached_property
    def _records(self) -> Callable[[Expiry, str], tuple[Expired, ...]]:
        return lru_cache(maxsize=_DATES_HELD)(self._read)

    def _read(self, kind: Expiry, date: str) -> tuple[Expired, ...]:
        log, found = ExpiredLog(self.state), list[Expired]()
        for info in log.listed(kind, date):
            try:
                found.append(self.state.ledger.record(info.uri, Expired))
            except RecordUnreadable as exc:
                self.faults[info.uri] = str(exc).removeprefix(f"{info.uri}: ")
        return tuple(found)
