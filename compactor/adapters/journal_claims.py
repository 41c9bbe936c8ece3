"""Claims as a journal of objects: for a state on S3 without a table. Exact for any number of concurrent planners.

Each entry is a create-only object with the next number, so all planners agree on the order of entries. A planner whose
number is taken reads that entry and tries the next number. Entries never change and are never deleted, and a planner
reads all of them. The journal is meant for back-fills, where one entry claims a whole manifest.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from threading import Lock

from compactor.core.errors import RecordUnreadable
from compactor.core.layout import base_name
from compactor.core.map_ordered import map_ordered
from compactor.core.ports import Claim, ObjectStore
from compactor.core.records import ClaimsEntry, read_record

_NAME = re.compile(r"(\d{12})\.json")


@dataclass(slots=True)
class JournalClaims:
    """`compactor.core.ports.ClaimTable` in a folder of objects, which ends with `/`."""

    store: ObjectStore
    folder: str
    _claims: dict[str, Claim] = field(default_factory=dict)
    _entries: int = 0
    _lock: Lock = field(default_factory=Lock)

    def claim(self, keys: Sequence[str], holder: str, *, now: datetime, lease_seconds: float) -> dict[str, Claim]:
        lease_until = now + timedelta(seconds=lease_seconds)
        with self._lock:
            self._catch_up()
            while free := [key for key in dict.fromkeys(keys) if key not in self._claims]:
                self._append(ClaimsEntry(keys=free, holder=holder, lease_until=lease_until))
            return {key: self._claims[key] for key in keys}

    def take_over(
        self, keys: Sequence[str], *, from_holder: str, to_holder: str, now: datetime, lease_seconds: float
    ) -> set[str]:
        until = now + timedelta(seconds=lease_seconds)
        with self._lock:
            self._catch_up()
            while left := [key for key in dict.fromkeys(keys) if self._holder(key) == from_holder != to_holder]:
                self._append(ClaimsEntry(keys=left, holder=to_holder, lease_until=until))
            return {key for key in keys if self._holder(key) == to_holder}

    def get_many(self, keys: Sequence[str]) -> dict[str, Claim]:
        with self._lock:
            self._catch_up()
            return {key: self._claims[key] for key in keys if key in self._claims}

    def _holder(self, key: str) -> str | None:
        claim = self._claims.get(key)
        return None if claim is None else claim.holder

    def _append(self, entry: ClaimsEntry) -> None:
        """Write an entry after the last known one, or read the entry that another planner wrote there."""
        if self.store.create(self._uri(self._entries + 1), entry.model_dump_json().encode()):
            self._apply(entry)
        else:
            self._catch_up()

    def _catch_up(self) -> None:
        last = self._uri(self._entries) if self._entries else None
        listed = (base_name(info.uri) for info in self.store.list(self.folder, start_after=last))
        for number, entry in map_ordered(self._read, (name for name in listed if _NAME.fullmatch(name))):
            if number != self._entries + 1:
                missing = self._uri(self._entries + 1)
                raise RecordUnreadable(
                    f"{missing}: missing, although later entries exist; expected every entry of the journal"
                )
            self._apply(entry)

    def _read(self, name: str) -> tuple[int, ClaimsEntry]:
        uri, expected = self.folder + name, "an entry of the journal of claims"
        data = self.store.read(uri)
        entry = read_record(ClaimsEntry.model_validate_json, data, uri, kind="ClaimsEntry", expected=expected)
        return int(name.removesuffix(".json")), entry

    def _apply(self, entry: ClaimsEntry) -> None:
        self._claims.update(dict.fromkeys(entry.keys, Claim(entry.holder, entry.lease_until)))
        self._entries += 1

    def _uri(self, number: int) -> str:
        return f"{self.folder}{number:012d}.json"
