"""Finds the manifests that name a file, in the records of a date or in the watched prefix."""

from collections.abc import Callable, Collection, Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from itertools import chain
from typing import Literal

from compactor.core.documents.manifest import FileRange, ManifestFile
from compactor.core.documents.records import FileReport, FileStatus
from compactor.core.errors import ManifestError, ObjectNotFound, RecordUnreadable, StuckError
from compactor.core.layout import ManifestKey, canonical, is_delivery
from compactor.core.map_ordered import map_ordered
from compactor.core.ports import ObjectInfo
from compactor.ledger.accounts.reading import Listed, Scope, listed, read_listed
from compactor.ledger.backlog import read_waiting_manifest
from compactor.ledger.state import State

MANIFESTS_AT_ONCE = 8
"""Fewer threads than for other records: a manifest may name 20,000 files, which take 20 MB."""

FileState = Literal["compacted", "quarantined", "dead_lettered", "in_work", "waiting"]
"""The state of a file in a manifest that names it."""


@dataclass(frozen=True, slots=True)
class Naming:
    """A manifest that names a file.

    Attributes:
        etag: The version that it names or has read; None if unknown.
        state: The file's state in that manifest.
        date: The manifest's date; empty if it waits.
        size_bytes: The version's length, or the end of a range; 0 if unknown.
        lines: How many lines these bytes contain.
        is_text: Whether lines may be appended: it is neither compressed nor JSON documents.
        range: The manifest's range of a grown file.
        follows: The manifest with the last lines of the log that had its name before; empty if there was none.
        named_at: When the manifest was decided, else when it was created; None if unknown.
    """

    manifest_id: str
    uri: str
    etag: str | None
    state: FileState
    date: str = ""
    size_bytes: int = 0
    digest: str = ""
    lines: int = 0
    is_text: bool = False
    range: FileRange | None = None
    follows: str = ""
    named_at: datetime | None = None

    def may_have(self, etag: str | None) -> bool:
        """Whether this manifest made rows from a version of the file, or still may."""
        return self._is_version(etag) and self.state in {"compacted", "in_work", "waiting"}

    def has_had(self, etag: str | None) -> bool:
        """Whether this manifest covers a version of the file, with any result."""
        was_there = self.state != "quarantined" or self.etag is not None
        return was_there and self._is_version(etag)

    def _is_version(self, etag: str | None) -> bool:
        return etag is None or self.etag is None or self.etag == etag


@dataclass(frozen=True, slots=True, kw_only=True)
class FileSearch:
    """Searches manifests for files.

    Attributes:
        skip_unreadable: Skip unreadable records and manifests. Only safe where missing one does no harm.
        versions: Versions of local files to find under any name.
        continued: Files of which ranges are to be found under any name.
        also: Returns whether a file of a commit is wanted, whatever its name and version.
        passed: URIs of waiting manifests, and ids on record, to skip; the search adds those that it reads. None to skip
            nothing.
    """

    state: State
    allowed_prefixes: Sequence[str]
    skip_unreadable: bool = False
    versions: Collection[str] = ()
    continued: Container[str] = ()
    also: Callable[[FileReport], bool] = lambda _: False
    passed: set[str] | None = None

    def on_dates(self, uris_by_date: Mapping[str, Container[str]]) -> Iterator[Naming]:
        """Yield the manifests of dates that name a file wanted for their date, the greatest ids first.

        Args:
            uris_by_date: The files, canonical.
        """
        by_date = map_ordered(lambda date: list(listed(self.state, Scope(date=date))), uris_by_date)
        manifests = (each for of_date in by_date for each in reversed(of_date) if self._is_new(each.key.id))
        for found in map_ordered(
            lambda each: self._on_record(each, uris=uris_by_date[each.key.date]), manifests, threads=MANIFESTS_AT_ONCE
        ):
            yield from found

    def on_record(self, uris: Container[str]) -> Iterator[Naming]:
        """Yield all manifests on record that name one of the files or versions."""
        yield from self.on_dates(dict.fromkeys(self.state.ledger.dates(), uris))

    def of_manifests(self, keys: Iterable[ManifestKey], uris: Container[str]) -> Iterator[Naming]:
        """Yield the given manifests that name one of the files or versions."""
        for found in map_ordered(partial(self._on_record, uris=uris), map(Listed, keys), threads=MANIFESTS_AT_ONCE):
            yield from found

    def waiting(self, uris: Container[str]) -> Iterator[Naming]:
        """Yield the manifests in the watched prefix that name one of the files; `uris` are canonical."""
        infos = self.state.store.list(self.state.layout.manifests_folder)
        new = (info for info in infos if is_delivery(info.uri) and self._is_new(info.uri))
        for found in map_ordered(partial(self._delivered, uris=uris), new, threads=MANIFESTS_AT_ONCE):
            yield from found

    def _is_new(self, place: str) -> bool:
        if self.passed is None:
            return True
        is_new = place not in self.passed
        self.passed.add(place)
        return is_new

    def _on_record(self, found: Listed, *, uris: Container[str]) -> list[Naming]:
        try:
            account = read_listed(self.state, found).checked()
            commit = account.commit
            if commit is not None:
                return self._namings(found.key, commit.files, uris, "compacted", commit.decided_at)
            accepted = self.state.ledger.accepted(account.id)
        except RecordUnreadable:
            if self.skip_unreadable:
                return []
            raise
        manifest = accepted.manifest if accepted is not None else None
        if manifest is None:
            return []
        state: FileState = "in_work" if account.outcome is None else "dead_lettered"
        return self._namings(found.key, manifest.files, uris, state, manifest.created_at)

    def _delivered(self, info: ObjectInfo, *, uris: Container[str]) -> list[Naming]:
        try:
            manifest = read_waiting_manifest(self.state, info, allowed_prefixes=self.allowed_prefixes)
        except (ObjectNotFound, ManifestError):
            return []
        except StuckError:
            if self.skip_unreadable:
                return []
            raise
        found = self._namings(manifest.key, manifest.files, uris, "waiting", manifest.created_at)
        accepted = self.state.ledger.accepted(manifest.manifest_id) if found else None
        # The records are more complete than the object that is still in the prefix.
        return found if accepted is None else self._on_record(Listed(accepted.key), uris=uris)

    def _namings(
        self,
        key: ManifestKey,
        files: Iterable[ManifestFile | FileReport],
        uris: Container[str],
        state: FileState,
        named_at: datetime,
    ) -> list[Naming]:
        wanted = (file for file in files if canonical(file.uri) in uris or self._is_wanted(file))
        versions: Iterator[ManifestFile | FileReport] = chain.from_iterable(
            file.versions if isinstance(file, ManifestFile) else (file,) for file in wanted
        )
        return [_naming(key, each, state, named_at) for each in versions]

    def _is_wanted(self, file: ManifestFile | FileReport) -> bool:
        is_version = bool(file.etag) and file.etag in self.versions
        is_next = file.range is not None and file.range.continues in self.continued
        return is_version or is_next or (isinstance(file, FileReport) and self.also(file))


def _naming(key: ManifestKey, file: ManifestFile | FileReport, state: FileState, named_at: datetime) -> Naming:
    part = file.range
    size_bytes, digest, lines, is_text = part.to_byte if part else file.size_bytes or 0, "", 0, False
    if isinstance(file, FileReport):
        state = state if file.status is FileStatus.COMPACTED else "quarantined"
        digest, lines = file.digest, file.lines + (part.lines_before if part else 0)
        is_text = file.codec == "none" and file.format == "ndjson"
    return Naming(
        key.id,
        canonical(file.uri),
        file.etag or None,
        state,
        key.date,
        size_bytes,
        digest,
        lines,
        is_text,
        range=part,
        follows=file.follows or "",
        named_at=named_at,
    )
