"""What a search of closed dates asks of a memory of the files that their manifests name."""

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple, Protocol

from compactor.core.layout import ManifestKey
from compactor.manifests.file_search import Naming


class Known(NamedTuple):
    """How far the log of closed dates is remembered.

    Attributes:
        place: The place of the last summary whose files are; 0 if none is.
        fingerprint: What that summary was, so that another log in its place is noticed.
    """

    place: int
    fingerprint: str


class Shorter(NamedTuple):
    """A version with rows whose bytes another file may begin with."""

    uri: str
    etag: str
    key: ManifestKey


class SummarisedFiles(Protocol):
    """Remembers, place by place in the log, which manifests name which files. A cache, which may be lost."""

    def known(self) -> Known | None:
        """How far it reaches; None if it cannot be used."""

    def forget(self) -> None:
        """Forget everything."""

    def add(self, namings: Sequence[Naming]) -> bool:
        """Remember files, also those that are remembered already; False if they cannot be."""

    def reach(self, known: Known) -> None:
        """Declare that all files of a summary were added. Does nothing if those of the one before it are forgotten."""

    def naming(self, uris: Iterable[str], versions: Iterable[str]) -> set[ManifestKey] | None:
        """The manifests that name one of these files, or one of these versions; None if it cannot be used."""

    def shorter(self, size_bytes: int) -> Iterator[Shorter]:
        """The versions that are no longer and were not passed over; see `SeenFiles.pass_over`.

        Raises:
            LookupError: It cannot be used.
        """


class NothingSummarised:
    """Remembers nothing, as where the state is not on a local disk. A `SummarisedFiles`."""

    def known(self) -> Known | None:
        return None

    def forget(self) -> None:
        """Nothing to do."""

    def add(self, namings: Sequence[Naming]) -> bool:  # noqa: ARG002 - of the port
        return False

    def reach(self, known: Known) -> None:
        """Nothing to do."""

    def naming(self, uris: Iterable[str], versions: Iterable[str]) -> set[ManifestKey] | None:  # noqa: ARG002 - of the port
        return None

    def shorter(self, size_bytes: int) -> Iterator[Shorter]:
        raise LookupError(size_bytes)
