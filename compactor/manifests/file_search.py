"""Finds the manifests that name a file, in the records of a date or in the watched prefix."""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Literal

from compactor.core.errors import ManifestError, ObjectNotFound, RecordUnreadable, StuckError
from compactor.core.layout import canonical, is_delivery
from compactor.core.manifest import ManifestFile
from compactor.core.manifest_key import ManifestKey
from compactor.core.map_ordered import map_ordered
from compactor.core.ports import ObjectInfo
from compactor.core.records import Commit, DeadLetter, FileReport, FileStatus
from compactor.ledger.state import State
from compactor.ledger.waiting_manifests import read_waiting_manifest

FileState = Literal["compacted", "quarantined", "dead_lettered", "in_work", "waiting"]
"""What became of a file in a manifest that names it."""


@dataclass(frozen=True, slots=True)
class Naming:
    """A manifest that names a file.

    Attributes:
        manifest_id: The manifest.
        uri: The file, in its canonical spelling.
        etag: The version that it names or has read; None if unknown.
        state: The file's state in that manifest.
    """

    manifest_id: str
    uri: str
    etag: str | None
    state: FileState

    def may_have(self, etag: str | None) -> bool:
        """Return whether this manifest made rows of a version of the file, or still may."""
        return self._is_version(etag) and self.state in {"compacted", "in_work", "waiting"}

    def has_had(self, etag: str | None) -> bool:
        """Return whether this manifest covers a version of the file, with any result."""
        was_there = self.state != "quarantined" or self.etag is not None
        return was_there and self._is_version(etag)

    def _is_version(self, etag: str | None) -> bool:
        return etag is None or self.etag is None or self.etag == etag


@dataclass(frozen=True, slots=True, kw_only=True)
class FileSearch:
    """Searches manifests for the files that they name.

    Attributes:
        allowed_prefixes: Folders that input may be in.
        skip_unreadable: Pass over records and manifests that cannot be read. Only safe where a missed one does no harm.
    """

    state: State
    allowed_prefixes: Sequence[str]
    skip_unreadable: bool = False

    def on_date(self, date: str, uris: Collection[str]) -> Iterator[Naming]:
        """Yield the manifests of a date that name one of the files, the last ones first; `uris` are canonical."""
        manifests = list(self.state.ledger.manifests(date))
        for found in map_ordered(partial(self._on_record, uris=uris), reversed(manifests)):
            yield from found

    def on_dates(self, uris_by_date: Mapping[str, Collection[str]]) -> Iterator[Naming]:
        """Yield the manifests of several dates that name one of the files that are wanted of their date."""
        listed = map_ordered(lambda date: list(self.state.ledger.manifests(date)), uris_by_date)
        manifests = (key for of_date in listed for key in of_date)
        for found in map_ordered(lambda key: self._on_record(key, uris=uris_by_date[key.date]), manifests):
            yield from found

    def waiting(self, uris: Collection[str]) -> Iterator[Naming]:
        """Yield the manifests of the watched prefix that name one of the files; `uris` are canonical."""
        listed = (info for info in self.state.store.list(self.state.layout.manifests_folder) if is_delivery(info.uri))
        for found in map_ordered(partial(self._delivered, uris=uris), listed):
            yield from found

    def _on_record(self, key: ManifestKey, *, uris: Collection[str]) -> list[Naming]:
        try:
            return self._recorded(key, uris)
        except RecordUnreadable:
            if self.skip_unreadable:
                return []
            raise

    def _recorded(self, key: ManifestKey, uris: Collection[str]) -> list[Naming]:
        outcome: Commit | DeadLetter | None
        try:
            outcome = self.state.ledger.outcome(key)
        except ObjectNotFound:
            outcome = None
        if isinstance(outcome, Commit):
            return list(_namings(key.id, outcome.files, uris, "compacted"))
        accepted = self.state.ledger.accepted(key.id)
        files = accepted.manifest.files if accepted is not None and accepted.manifest is not None else ()
        return list(_namings(key.id, files, uris, "in_work" if outcome is None else "dead_lettered"))

    def _delivered(self, info: ObjectInfo, *, uris: Collection[str]) -> list[Naming]:
        try:
            manifest = read_waiting_manifest(self.state, info, allowed_prefixes=self.allowed_prefixes)
        except (ObjectNotFound, ManifestError):
            return []
        except StuckError:
            if self.skip_unreadable:
                return []
            raise
        found = list(_namings(manifest.manifest_id, manifest.files, uris, "waiting"))
        accepted = self.state.ledger.accepted(manifest.manifest_id) if found else None
        # The records know more than the object that is still in the prefix.
        return found if accepted is None else self._on_record(accepted.key, uris=uris)


def _namings(
    manifest_id: str, files: Iterable[ManifestFile | FileReport], uris: Collection[str], state: FileState
) -> Iterator[Naming]:
    for file in files:
        uri = canonical(file.uri)
        if uri in uris:
            is_quarantined = isinstance(file, FileReport) and file.status is not FileStatus.COMPACTED
            yield Naming(manifest_id, uri, file.etag or None, "quarantined" if is_quarantined else state)
