"""What a plan of sources keeps of their listing outside of memory."""

from collections.abc import Iterable, Iterator
from typing import NamedTuple, Protocol

from compactor.core.documents.manifest import ManifestFile
from compactor.core.ports import ObjectInfo

PAGE_FILES = 20_000
"""How many listed files are in memory at once: each takes about 2 kB."""


class ListedInfo(NamedTuple):
    """A listed file, its date, and which of `compactor.core.inputs.dates.RULES` gave it."""

    info: ObjectInfo
    date: str
    rule: str


class Listed(NamedTuple):
    """A listed file, as manifests name it, and its date."""

    info: ObjectInfo
    file: ManifestFile
    date: str


class ListedFiles(Protocol):
    """The files of one listing by canonical URI, in the order in which they were added. Any thread may ask it."""

    def add(self, files: Iterable[ListedInfo]) -> None:
        """Add files; one whose URI is there takes its place."""

    def get(self, uri: str) -> ObjectInfo | None:
        """The file at a canonical URI."""

    def pages(self) -> Iterator[list[ListedInfo]]:
        """All of them, `PAGE_FILES` at a time."""

    def close(self) -> None:
        """Give the space back."""
