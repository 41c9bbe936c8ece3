"""Files from a listing or an inventory that planning keeps outside memory."""

from collections.abc import Container, Iterable, Iterator, Sequence
from datetime import UTC, datetime, timedelta
from typing import NamedTuple, Protocol

from compactor.core.documents.manifest import ManifestFile
from compactor.core.inputs.dates import ARRIVAL
from compactor.core.layout import canonical
from compactor.core.ports import ObjectInfo
from compactor.sources.file_search import Naming

_EPOCH = datetime.fromtimestamp(0, UTC)


class SpilledFile(NamedTuple):
    """A file to plan.

    Attributes:
        modified_us: Time of its last write, in microseconds since 1970.
        rule: Which of `compactor.core.inputs.dates.RULES` gave its date.
        stamp: As in `ObjectInfo`.
    """

    date: str
    uri: str
    size_bytes: int
    etag: str
    modified_us: int
    rule: str
    stamp: str = ""

    @classmethod
    def of(cls, date: str, file: ManifestFile) -> "SpilledFile":
        """A file of a date, from a manifest entry without path columns."""
        modified_us = _microseconds(file.event_time or _EPOCH)
        rule = file.dated_by or ARRIVAL
        return cls(date, canonical(file.uri), file.size_bytes or 0, file.etag or "", modified_us, rule)

    @classmethod
    def listed(cls, date: str, info: ObjectInfo, rule: str) -> "SpilledFile":
        return cls(
            date, canonical(info.uri), info.size_bytes, info.etag, _microseconds(info.modified_at), rule, info.stamp
        )

    @property
    def info(self) -> ObjectInfo:
        modified_at = _EPOCH + timedelta(microseconds=self.modified_us)
        return ObjectInfo(self.uri, self.size_bytes, self.etag, modified_at, self.stamp)

    def as_named(self) -> ManifestFile:
        """The file as a manifest entry, without path columns."""
        return ManifestFile(
            uri=self.uri,
            size_bytes=self.size_bytes,
            etag=self.etag,
            event_time=_EPOCH + timedelta(microseconds=self.modified_us),
            dated_by=self.rule,
        )


class FileSpill(Container[str], Protocol):
    """Files outside memory, sorted by date and URI. `in` tests for a URI among the sorted ones."""

    def add(self, files: Iterable[SpilledFile]) -> None:
        """Add files, which count once they are sorted."""

    def sort(self) -> int:
        """Replace the sorted files with those added since; for duplicate URIs, keep the last written.

        Returns:
            How many duplicates were dropped.
        """

    def dates(self) -> list[tuple[str, int, int]]:
        """Each date in order, with the number and total size of its files."""

    def pages(self, files: int, date: str | None = None) -> Iterator[list[SpilledFile]]:
        """The files of a date, or all, ordered by date and URI, in pages of limited size."""

    def get(self, uri: str) -> SpilledFile | None:
        """The sorted file at a canonical URI."""

    def note(self, namings: Iterable[Naming]) -> None:
        """Record which manifests name files."""

    def noted(self, uris: Sequence[str]) -> Iterator[Naming]:
        """The recorded namings of some files."""

    def close(self) -> None:
        """Free the space."""


def _microseconds(moment: datetime) -> int:
    return (moment - _EPOCH) // timedelta(microseconds=1)
