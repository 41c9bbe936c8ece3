"""The log of redrives: create-only records of all redrives in a lineage, stored with the records of its first manifest.

A lineage is a manifest with its redrives, their redrives, and so on. Its name is its root, the first manifest.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from compactor.core.crash_points import OnCrashPoint, RedriveCrashPoint
from compactor.core.documents.records import Redrive
from compactor.core.layout import ManifestKey, number_of_redrive, redrive_number, redriven_id, root_id
from compactor.ledger.history.closed_dates import ClosedDates
from compactor.ledger.state import State
from compactor.telemetry.logs import log_event

Fate = Literal["accepted", "waiting", "unwritten", "revoked"]
"""The state of a redrive's manifest: the next redrive writes an `unwritten` one; `revoked` has no effect."""


@dataclass(frozen=True, slots=True)
class RedriveLogEntry:
    """One redrive, and the state of its manifest."""

    redrive: Redrive
    fate: Fate

    @property
    def in_effect(self) -> bool:
        """Whether it counts: its id was not revoked before its manifest was written."""
        return self.fate != "revoked"


@dataclass(frozen=True, kw_only=True)
class RedriveLog:
    """Reads and writes redrive records."""

    state: State

    def root_of(self, manifest_id: str) -> ManifestKey | None:
        """The root of a manifest's lineage; None if the manifest has no record.

        An id that only looks like that of a redrive is the root of its own lineage.
        """
        root = root_id(manifest_id)
        record, number = self.state.ledger.accepted(root), number_of_redrive(manifest_id, root)
        if number and (record is None or self.at(record.key, number) is None):
            record = self.state.ledger.accepted(manifest_id)
        return None if record is None else record.key

    def entries(self, root: ManifestKey) -> list[RedriveLogEntry]:
        """All redrives of a lineage, in order."""
        return [RedriveLogEntry(each, self._fate(each.manifest.manifest_id)) for each in self._redrives(root)]

    def entries_about(self, manifest_id: str) -> list[RedriveLogEntry]:
        """All redrives in a manifest's lineage; none if the manifest has no record."""
        root = self.root_of(manifest_id)
        return [] if root is None else self.entries(root)

    def planned(self, root: ManifestKey) -> list[RedriveLogEntry]:
        """The effective redrives of the planned manifest of a root whose id belongs to a different manifest."""
        return [each for each in self.entries(root) if each.in_effect and each.redrive.kind == "planned"]

    def at(self, root: ManifestKey, number: int) -> Redrive | None:
        """The redrive with a number; None if there is no record."""
        return Redrive.find(self.state.store, self.state.layout.redrive(root, number))

    def next_number(self, root: ManifestKey, entries: Sequence[RedriveLogEntry]) -> int | None:
        """The number of the next redrive; None if entries were added, so that they must be read again.

        A number is skipped if its id is revoked, or belongs to a manifest from elsewhere.
        """
        newest = max((entry.redrive.number for entry in entries), default=0)
        number = newest + 1
        while self.state.ledger.accepted(redriven_id(root.id, number)) is not None:
            number += 1
        # A redrive's id is accepted after its record is created, so a faster redrive shows here.
        if number > newest + 1 and len(self._numbers(root)) != len(entries):
            return None
        return number

    def record(self, root: ManifestKey, redrive: Redrive) -> bool:
        """Record a redrive, which puts it into effect; False if its number is taken."""
        uri = self.state.layout.redrive(root, redrive.number)
        dates = ClosedDates(self.state.store, self.state.layout)
        dates.mark_date(root.date, self.state.ledger.run_id)  # the closed date has a new record
        is_new = self.state.store.create(uri, redrive.to_json())
        dates.mark_date(root.date, self.state.ledger.run_id)  # a closing may have removed the mark in between
        return is_new

    def write(self, root: ManifestKey, redrive: Redrive, on_crash_point: OnCrashPoint) -> bool:
        """Record a redrive, and write its manifest; False if its number is taken."""
        new_id = redrive.manifest.manifest_id
        if not self.record(root, redrive):
            return False
        on_crash_point(RedriveCrashPoint.RECORDED, new_id)
        self.deliver(redrive)
        on_crash_point(RedriveCrashPoint.DELIVERED, new_id)
        log_event(
            "manifest.redriven", source=redrive.source, manifest_id=new_id, kind=redrive.kind, counts=redrive.counts
        )
        return True

    def deliver(self, redrive: Redrive) -> None:
        """Write the manifest of a recorded redrive, with the same bytes each time."""
        self.state.store.create(self.state.layout.manifest(redrive.manifest.manifest_id), redrive.manifest.to_json())

    def _redrives(self, root: ManifestKey) -> list[Redrive]:
        places = (self.state.layout.redrive(root, number) for number in self._numbers(root))
        return [self.state.ledger.record(uri, Redrive) for uri in places]

    def _numbers(self, root: ManifestKey) -> list[int]:
        names = self.state.ledger.record_names(root)
        return sorted(number for name in names if (number := redrive_number(name)) is not None)

    def _fate(self, manifest_id: str) -> Fate:
        record = self.state.ledger.accepted(manifest_id)
        if record is not None:
            return "revoked" if record.kind == "revoked" else "accepted"
        return "unwritten" if self.state.store.stat(self.state.layout.manifest(manifest_id)) is None else "waiting"


def effective_redrives_of(manifest_id: str, entries: Sequence[RedriveLogEntry]) -> list[Redrive]:
    """A manifest's redrives that are in effect."""
    return [each.redrive for each in entries if each.in_effect and each.redrive.source == manifest_id]
