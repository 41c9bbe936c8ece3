"""Claims as a journal of objects, for a state on S3 without a table. Exact for any number of concurrent planners.

Each entry is a create-only object with the next number, so all planners agree on the order of entries. A planner whose
number is taken reads that entry and tries the next number. Entries never change and are never deleted. The journal is
meant for back-fills, where one entry claims a whole manifest.

An index, built block by block, lists the entries that claim a key. So a planner reads only its keys' entries, and those
after the last indexed block.
"""

import re
from collections import deque
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from itertools import islice
from threading import Lock

from compactor.core.documents.records import ClaimsEntry
from compactor.core.errors import AccessError, ObjectNotFound, RecordUnreadable, TryAgainError
from compactor.core.inputs.source_places import of_stream
from compactor.core.layout import base_name, index_folder
from compactor.core.map_ordered import map_ordered
from compactor.core.ports import Claim, ClaimTable, ObjectStore
from compactor.ledger.history.run_levels import RunLevels, digest_of


@dataclass(frozen=True, slots=True)
class StreamClaims:
    """A `ClaimTable` for one stream. Streams share all keys, so that a file belongs to one of them.

    Holders in this stream are plain ids. Holders in other streams have the form of `of_stream`, including those from
    before the settings had streams, whose stream name is empty.
    """

    claims: ClaimTable
    stream: str

    def claim(self, keys: Sequence[str], holder: str, *, now: datetime, lease_seconds: float) -> dict[str, Claim]:
        found = self.claims.claim(keys, self._kept(holder), now=now, lease_seconds=lease_seconds)
        return self._seen(found)

    def take_over(
        self, keys: Sequence[str], *, from_holder: str, to_holder: str, now: datetime, lease_seconds: float
    ) -> set[str]:
        before, after = self._kept(from_holder), self._kept(to_holder)
        return self.claims.take_over(keys, from_holder=before, to_holder=after, now=now, lease_seconds=lease_seconds)

    def get_many(self, keys: Sequence[str]) -> dict[str, Claim]:
        return self._seen(self.claims.get_many(keys))

    def _kept(self, holder: str) -> str:
        """The holder as the table stores it."""
        stream, separator, plain = holder.rpartition(":")
        if not separator:
            return of_stream(self.stream, holder)
        return of_stream(stream, plain) if stream else plain

    def _seen(self, claims: dict[str, Claim]) -> dict[str, Claim]:
        own = of_stream(self.stream, "")

        def holder(kept: str) -> str:
            return kept.removeprefix(own) if kept.startswith(own) else kept if ":" in kept else of_stream("", kept)

        return {key: Claim(holder(claim.holder), claim.lease_until) for key, claim in claims.items()}


BLOCK_ENTRIES = 16

_NAME = re.compile(r"(\d{12})\.json")


@dataclass(slots=True)
class JournalClaims:
    """A `compactor.core.ports.ClaimTable` in a folder of objects. The folder ends with `/`."""

    store: ObjectStore
    folder: str
    _index: RunLevels = field(init=False)
    _late: "deque[tuple[int, ClaimsEntry]]" = field(default_factory=deque)
    """The entries after the index, by number."""
    _late_claims: dict[str, tuple[int, Claim]] = field(default_factory=dict)
    """Their claims, each with its entry's number."""
    _free: set[str] = field(default_factory=set)
    """Keys that were looked up in the index and are not claimed by any entry."""
    _entries: int | None = None
    _lock: Lock = field(default_factory=Lock)

    def __post_init__(self) -> None:
        self._index = RunLevels(self.store, index_folder(self.folder))

    def claim(self, keys: Sequence[str], holder: str, *, now: datetime, lease_seconds: float) -> dict[str, Claim]:
        lease_until = now + timedelta(seconds=lease_seconds)
        with self._lock:
            self._catch_up()
            indexed = self._indexed(keys)
            while free := [key for key in dict.fromkeys(keys) if self._claim(key, indexed) is None]:
                self._append(ClaimsEntry(keys=free, holder=holder, lease_until=lease_until))
            found = {key: claim for key in keys if (claim := self._claim(key, indexed)) is not None}
            self._extend_index()
            return found

    def take_over(
        self, keys: Sequence[str], *, from_holder: str, to_holder: str, now: datetime, lease_seconds: float
    ) -> set[str]:
        until = now + timedelta(seconds=lease_seconds)
        with self._lock:
            self._catch_up()
            indexed = self._indexed(keys)

            def held_by(asked: str) -> list[str]:
                claims = ((key, self._claim(key, indexed)) for key in dict.fromkeys(keys))
                return [key for key, claim in claims if claim is not None and claim.holder == asked]

            while from_holder != to_holder and (left := held_by(from_holder)):
                self._append(ClaimsEntry(keys=left, holder=to_holder, lease_until=until))
            found = set(held_by(to_holder))
            self._extend_index()
            return found

    def get_many(self, keys: Sequence[str]) -> dict[str, Claim]:
        with self._lock:
            self._catch_up()
            indexed = self._indexed(keys)
            return {key: claim for key in keys if (claim := self._claim(key, indexed)) is not None}

    def _claim(self, key: str, indexed: Mapping[str, Claim]) -> Claim | None:
        """A key's claim in the entries after the index, else in the index."""
        late = self._late_claims.get(key)
        return late[1] if late is not None else indexed.get(key)

    def _append(self, entry: ClaimsEntry) -> None:
        """Write an entry after the last known one, or read the entry that another planner wrote there."""
        number = (self._entries or 0) + 1
        if self.store.create(self._uri(number), entry.to_json()):
            self._apply(number, entry)
        else:
            self._catch_up()

    def _catch_up(self) -> None:
        """Read the entries after the last known one; at first, those after the index."""
        if self._entries is None:
            self._entries = self._indexed_entries()
        last = self._uri(self._entries) if self._entries else None
        listed = (base_name(info.uri) for info in self.store.list(self.folder, start_after=last))
        for number, entry in map_ordered(self._read, (name for name in listed if _NAME.fullmatch(name))):
            if number != self._entries + 1:  # guard: claims are not read from a journal with a gap
                raise _missing(self._uri(self._entries + 1), "later entries exist")
            self._apply(number, entry)

    def _indexed_entries(self) -> int:
        """How many entries the index covers. The index of a deleted journal is deleted."""
        number = self._index.upto * BLOCK_ENTRIES
        if number:
            try:
                _, last = self._read(base_name(self._uri(number)))
                if last.holder == self._index.note:
                    return number
            except ObjectNotFound:
                pass
            self._index.forget()
        return 0

    def _indexed(self, keys: Sequence[str]) -> dict[str, Claim]:
        """The indexed claims of keys that later entries do not claim."""
        asked = {key for key in keys if key not in self._free and key not in self._late_claims}
        if not asked:
            return {}
        numbers = sorted({number for _, number in self._index.find(sorted(map(digest_of, asked)))})
        found: dict[str, Claim] = {}
        for _, entry in map_ordered(self._read_indexed, (base_name(self._uri(number)) for number in numbers)):
            claim = Claim(entry.holder, entry.lease_until)
            found.update({key: claim for key in entry.keys if key in asked})
        self._free |= asked - found.keys()  # only now: unreadable keys must not count as free
        return found

    def _extend_index(self) -> None:
        """Add full blocks of entries to the index. A later call repeats what fails here."""
        with suppress(TryAgainError, AccessError):
            while len(self._late) >= BLOCK_ENTRIES:
                block = list(islice(self._late, BLOCK_ENTRIES))
                rows = sorted((digest_of(key), number) for number, entry in block for key in entry.keys)
                last, entry = block[-1]
                self._index.add(last // BLOCK_ENTRIES, rows, entry.holder)
                for number, entry in block:
                    self._late.popleft()
                    self._settle(number, entry)

    def _settle(self, number: int, entry: ClaimsEntry) -> None:
        """Drop the claims of an entry that is now indexed."""
        # guard: a key in an indexed block of claims is not free
        self._free.difference_update(entry.keys)
        for key in entry.keys:
            if key in self._late_claims and self._late_claims[key][0] == number:
                del self._late_claims[key]

    def _read(self, name: str) -> tuple[int, ClaimsEntry]:
        uri, expected = self.folder + name, "an entry of the claims journal"
        data = self.store.read(uri)
        entry = ClaimsEntry.read(data, uri, expected)
        return int(name.removesuffix(".json")), entry

    def _read_indexed(self, name: str) -> tuple[int, ClaimsEntry]:
        try:
            return self._read(name)
        except ObjectNotFound as exc:
            raise _missing(self.folder + name, "it is in the journal's index") from exc

    def _apply(self, number: int, entry: ClaimsEntry) -> None:
        self._late.append((number, entry))
        claim = Claim(entry.holder, entry.lease_until)
        self._late_claims.update(dict.fromkeys(entry.keys, (number, claim)))
        self._entries = number

    def _uri(self, number: int) -> str:
        return f"{self.folder}{number:012d}.json"


def _missing(uri: str, although: str) -> RecordUnreadable:
    return RecordUnreadable(f"{uri}: missing, although {although}; expected every entry of the journal")
