"""Which manifests name a file? Looks through the records of days and through the watched prefix."""

from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Literal

from compactor.core.errors import ManifestError, ObjectNotFound, RecordUnreadable
from compactor.core.layout import Layout, canonical, is_delivery
from compactor.core.manifest import MAX_MANIFEST_BYTES, ManifestFile
from compactor.core.manifest_key import ManifestKey
from compactor.core.map_ordered import map_ordered
from compactor.core.ports import ObjectInfo, ObjectStore
from compactor.core.records import Commit, DeadLetter, FileReport, FileStatus
from compactor.ledger.ledger import Ledger
from compactor.ledger.waiting_manifests import read_waiting_manifest

FileState = Literal["compacted", "quarantined", "dead_lettered", "in_work", "waiting"]
"""How a file stands in a manifest that names it."""


@dataclass(frozen=True, slots=True)
class Naming:
    """A manifest that names a file.

    Attributes:
        manifest_id: The manifest.
        uri: The file, in its canonical spelling.
        etag: The version it names or read; None if it does not say.
        state: What became of the file there.
    """

    manifest_id: str
    uri: str
    etag: str | None
    state: FileState

    def may_have(self, etag: str | None) -> bool:
        """Whether a version of the file has rows by this manifest, or may come to have some."""
        return self._is_version(etag) and self.state in {"compacted", "in_work", "waiting"}

    def has_had(self, etag: str | None) -> bool:
        """Whether a version of the file was this manifest's to deal with, whatever became of it there."""
        was_there = self.state != "quarantined" or self.etag is not None
        return was_there and self._is_version(etag)

    def _is_version(self, etag: str | None) -> bool:
        return etag is None or self.etag is None or self.etag == etag


class FileSearch:
    """Searches manifests for the files that they name.

    Args:
        store: Where the watched prefix is.
        layout: The places.
        ledger: The records.
        allowed_prefixes: Folders that input may be in.
        skip_unreadable: Go on where a record cannot be read, as whoever only looks for something may.
    """

    def __init__(
        self,
        store: ObjectStore,
        layout: Layout,
        ledger: Ledger,
        *,
        allowed_prefixes: Collection[str],
        skip_unreadable: bool = False,
    ) -> None:
        self._store = store
        self._layout = layout
        self._ledger = ledger
        self._allowed_prefixes = tuple(allowed_prefixes)
        self._skip_unreadable = skip_unreadable

    def on_date(self, date: str, uris: Collection[str]) -> Iterator[Naming]:
        """What the manifests of a date, the last ones first, say of files in their canonical spelling."""
        manifests = list(self._ledger.manifests(date))
        for found in map_ordered(partial(self._on_record, uris=uris), reversed(manifests)):
            yield from found

    def waiting(self, uris: Collection[str]) -> Iterator[Naming]:
        """What the manifests of the watched prefix say of files in their canonical spelling."""
        listed = (info for info in self._store.list(self._layout.manifests_folder) if is_delivery(info.uri))
        for found in map_ordered(partial(self._delivered, uris=uris), listed):
            yield from found

    def _on_record(self, key: ManifestKey, *, uris: Collection[str]) -> list[Naming]:
        try:
            return self._recorded(key, uris)
        except RecordUnreadable:
            if self._skip_unreadable:
                return []
            raise

    def _recorded(self, key: ManifestKey, uris: Collection[str]) -> list[Naming]:
        outcome: Commit | DeadLetter | None
        try:
            outcome = self._ledger.outcome(key)
        except ObjectNotFound:
            outcome = None
        if isinstance(outcome, Commit):
            return list(_namings(key.id, outcome.files, uris, "compacted"))
        accepted = self._ledger.accepted(key.id)
        files = accepted.manifest.files if accepted is not None and accepted.manifest is not None else ()
        return list(_namings(key.id, files, uris, "in_work" if outcome is None else "dead_lettered"))

    def _delivered(self, info: ObjectInfo, *, uris: Collection[str]) -> list[Naming]:
        if info.size_bytes > MAX_MANIFEST_BYTES:
            return []
        try:
            manifest = read_waiting_manifest(self._store, self._layout, info, allowed_prefixes=self._allowed_prefixes)
        except (ObjectNotFound, ManifestError):
            return []
        found = list(_namings(manifest.manifest_id, manifest.files, uris, "waiting"))
        accepted = self._ledger.accepted(manifest.manifest_id) if found else None
        # What is on record already says more than what still lies in the prefix.
        return found if accepted is None else self._on_record(accepted.key, uris=uris)


def _namings(
    manifest_id: str, files: Iterable[ManifestFile | FileReport], uris: Collection[str], state: FileState
) -> Iterator[Naming]:
    for file in files:
        uri = canonical(file.uri)
        if uri in uris:
            is_quarantined = isinstance(file, FileReport) and file.status is not FileStatus.COMPACTED
            yield Naming(manifest_id, uri, file.etag or None, "quarantined" if is_quarantined else state)
