"""What planning keeps of the files of an inventory outside of memory."""

from collections.abc import Container, Iterable, Iterator, Sequence
from typing import NamedTuple, Protocol

from compactor.manifests.file_search import Naming


class SpilledFile(NamedTuple):
    """A file to plan.

    Attributes:
        uri: In its canonical spelling.
        modified_ms: Time of its last write, in milliseconds since 1970.
        rule: Which of `compactor.core.named_dates.RULES` gave its date.
    """

    date: str
    uri: str
    size_bytes: int
    etag: str
    modified_ms: int
    rule: str


class FileSpill(Container[str], Protocol):
    """Files outside of memory, sorted by date and URI. `in` tells whether a URI is among the sorted ones."""

    def add(self, files: Iterable[SpilledFile]) -> None:
        """Add files, which count once they are sorted."""

    def sort(self) -> int:
        """Replace the sorted files by those that were added since; of several at one URI, keep the last written.

        Returns:
            How many were dropped, because their URIs were there more than once.
        """

    def dates(self) -> list[tuple[str, int, int]]:
        """Each date in order, with the number of its files, and with their size in bytes."""

    def pages(self, date: str, files: int) -> Iterator[list[SpilledFile]]:
        """The files of a date in order of their URIs, up to so many at a time."""

    def note(self, namings: Iterable[Naming]) -> None:
        """Keep which manifests name files."""

    def noted(self, uris: Sequence[str]) -> Iterator[Naming]:
        """What was noted of some files."""

    def close(self) -> None:
        """Give the space back."""
