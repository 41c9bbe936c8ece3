"""What plans of sources ask of the memory of files of a local disk."""

from collections.abc import Iterable, Sequence
from typing import Protocol

from compactor.core.ports import ObjectInfo
from compactor.core.versions import AskedBeginnings, Beginning

Version = tuple[str, str]
"""The canonical URI of a file, and an etag."""


class SeenFiles(Protocol):
    """Remembers files of a local disk: what their bytes were, and whether they were written without another time."""

    def rewritten(self, files: Sequence[ObjectInfo]) -> set[str]:
        """The URIs of files that were written since they were remembered, although length and time are the same."""

    def remembered(self, uris: Iterable[str]) -> dict[str, str]:
        """The versions of files as they were remembered, by canonical URI."""

    def digest(self, file: ObjectInfo) -> str:
        """The digest of the bytes of a file, as `FileReport.digest`; empty where the store has other means.

        Args:
            file: As it was listed.

        Raises:
            TryAgainError: The file changed meanwhile, or the store failed.
            AccessError: The file may not be read.
        """

    def beginnings(self, file: ObjectInfo, asked: AskedBeginnings) -> set[Beginning]:
        """Those of some beginnings that a file has; none where the store has other means.

        Raises:
            TryAgainError: As `digest`.
            AccessError: As `digest`.
        """

    def whole_lines(self, file: ObjectInfo, start: int) -> Beginning | None:
        """The beginning of a file up to the end of its last whole line; None if no line begins at a byte.

        Args:
            file: As it was listed.
            start: The byte; the beginning ends there if no line does behind it.

        Raises:
            TryAgainError: As `digest`.
            AccessError: As `digest`.
        """

    def passed(self, versions: Iterable[Version]) -> set[Version]:
        """Those of some versions that `pass_over` was called with since they were there last."""

    def pass_over(self, versions: Iterable[Version]) -> None:
        """Remember versions that are gone, and that no file begins with which is there now."""

    def remember(self, files: Sequence[ObjectInfo]) -> None:
        """Remember the files as they are now."""
