"""Tells which files begin with all bytes of an earlier version: those that were appended to, perhaps under another name."""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Protocol

from compactor.core.layout import is_within
from compactor.core.manifest import ManifestFile
from compactor.core.source_places import SourcePlace
from compactor.core.versions import is_same_version
from compactor.manifests.file_search import Naming

VersionAt = Callable[[str], str | None]
"""The version that is at a URI now; None if there is no file."""


class BeginningsOf(Protocol):
    """Reads the beginnings of files."""

    def __call__(self, files: Sequence[ManifestFile], lengths: Collection[int]) -> Iterable[Mapping[int, str]]:
        """For each file, the digests of its first bytes, by their number; without those that cannot be read."""


def is_of(sources: Sequence[SourcePlace], uri: str) -> bool:
    """Return whether a file is in one of the sources."""
    return any(is_within(uri, source.folder) and source.takes(uri) for source in sources)


def gone_versions(namings: Iterable[Naming], sources: Sequence[SourcePlace], version_at: VersionAt) -> list[Naming]:
    """The versions with rows that are at their places no more.

    Args:
        namings: What manifests have, of any names.
        sources: Where to look; a version of a file that is in none of them may be anywhere.
        version_at: Tells what is at the place of a version.
    """
    return [
        each
        for each in namings
        if each.state == "compacted"
        and is_of(sources, each.uri)
        and not is_same_version(version_at(each.uri) or "", each.etag or "")
    ]


class Beginnings:
    """Which versions files begin with. Reads each file once.

    Args:
        files: By canonical URI.
        versions: All that are asked for.
        beginnings_of: Reads.
    """

    def __init__(
        self, files: Mapping[str, ManifestFile], versions: Iterable[Naming], beginnings_of: BeginningsOf
    ) -> None:
        self._files = files
        self._lengths = sorted({each.size_bytes for each in versions}, reverse=True)
        self._beginnings_of = beginnings_of
        self._found: dict[str, Mapping[int, str]] = {}

    def read(self, uris: Iterable[str]) -> None:
        """Read those of some files that were not read."""
        unread = sorted(set(uris) - self._found.keys())
        found = self._beginnings_of([self._files[uri] for uri in unread], self._lengths)
        self._found.update(zip(unread, found, strict=True))

    def may_have(self, uri: str, version: Naming) -> bool:
        """Return whether a file is longer than a version."""
        return (self._files[uri].size_bytes or 0) > version.size_bytes

    def have(self, uri: str, version: Naming) -> bool:
        """Return whether a file begins with all bytes of a version."""
        if not self.may_have(uri, version):
            return False
        self.read([uri])
        return self._found[uri].get(version.size_bytes, "") == version.digest
