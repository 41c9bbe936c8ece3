"""The trail of redrives: create-only records, beside those of the first manifest, of all that was put back from it."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from compactor.core.layout import Layout, redrive_number, redriven_id, root_id
from compactor.core.manifest_key import ManifestKey
from compactor.core.ports import ObjectStore
from compactor.core.records import Redrive
from compactor.ledger.ledger import Ledger

Fate = Literal["accepted", "waiting", "unwritten", "revoked"]
"""What became of a redrive's manifest: `unwritten` can be healed, `revoked` never takes effect."""


@dataclass(frozen=True, slots=True)
class Lineage:
    """A manifest with all that was redriven from it, and from that again.

    Attributes:
        root: The first one; all redrives are recorded beside its records.
    """

    root: ManifestKey


@dataclass(frozen=True, slots=True)
class RedriveLogEntry:
    """One redrive, and what became of its manifest."""

    redrive: Redrive
    fate: Fate

    @property
    def in_effect(self) -> bool:
        """Whether what it took is taken; else its planner gave it up before it was written."""
        return self.fate != "revoked"


class RedriveLog:
    """Reads and writes the records of redrives.

    Args:
        store: Where the records and the manifests are.
        layout: Their places.
        ledger: Which manifests are known.
    """

    def __init__(self, store: ObjectStore, layout: Layout, ledger: Ledger) -> None:
        self._store = store
        self._layout = layout
        self._ledger = ledger

    def lineage_of(self, manifest_id: str) -> Lineage | None:
        """The family of a manifest; None if nothing is on record about it.

        An id that only looks like that of a redriven manifest is the root of a family of its own.
        """
        root = root_id(manifest_id)
        record = self._ledger.accepted(root)
        lineage = None if record is None else Lineage(record.key)
        if root == manifest_id:
            return lineage
        if lineage is not None and any(each.manifest.manifest_id == manifest_id for each in self._redrives(lineage)):
            return lineage
        own = self._ledger.accepted(manifest_id)
        return None if own is None else Lineage(own.key)

    def entries(self, lineage: Lineage) -> list[RedriveLogEntry]:
        """All redrives of a family, in their order."""
        return [RedriveLogEntry(each, self._fate(each.manifest.manifest_id)) for each in self._redrives(lineage)]

    def entries_about(self, manifest_id: str) -> list[RedriveLogEntry]:
        """All redrives of a manifest's family; none if nothing is on record about it."""
        lineage = self.lineage_of(manifest_id)
        return [] if lineage is None else self.entries(lineage)

    def next_number(self, lineage: Lineage, entries: Sequence[RedriveLogEntry]) -> int | None:
        """The number for another redrive; None if there are others than these by now, so that they must be read again.

        A number whose id is used is left out: by a manifest that came from elsewhere, or because it is void.
        """
        newest = max((entry.redrive.number for entry in entries), default=0)
        number = newest + 1
        while self._ledger.accepted(redriven_id(lineage.root.id, number)) is not None:
            number += 1
        # An id is only accepted after its redrive is on record, so whoever got ahead can be seen here.
        if number > newest + 1 and len(self._numbers(lineage)) != len(entries):
            return None
        return number

    def record(self, lineage: Lineage, redrive: Redrive) -> bool:
        """Put a redrive on record, unless another one got its number. From here on it takes effect."""
        uri = self._layout.redrive(lineage.root, redrive.number)
        return self._store.create(uri, redrive.model_dump_json().encode())

    def deliver(self, redrive: Redrive) -> None:
        """Write the manifest of a redrive on record. The same bytes each time."""
        self._store.create(self._layout.manifest(redrive.manifest.manifest_id), redrive.manifest.to_json())

    def _redrives(self, lineage: Lineage) -> list[Redrive]:
        places = (self._layout.redrive(lineage.root, number) for number in self._numbers(lineage))
        return [self._ledger.record(uri, Redrive) for uri in places]

    def _numbers(self, lineage: Lineage) -> list[int]:
        names = self._ledger.record_names(lineage.root)
        return sorted(number for name in names if (number := redrive_number(name)) is not None)

    def _fate(self, manifest_id: str) -> Fate:
        record = self._ledger.accepted(manifest_id)
        if record is not None:
            return "revoked" if record.kind == "revoked" else "accepted"
        return "unwritten" if self._store.stat(self._layout.manifest(manifest_id)) is None else "waiting"


def taken_from(manifest_id: str, entries: Sequence[RedriveLogEntry]) -> list[Redrive]:
    """What was put back of a manifest, as far as it is in effect."""
    return [each.redrive for each in entries if each.in_effect and each.redrive.source == manifest_id]


def was_redriven(manifest_id: str, entries: Sequence[RedriveLogEntry]) -> bool:
    """Whether a dead letter was redriven."""
    return any(each.kind == "manifests" for each in taken_from(manifest_id, entries))
