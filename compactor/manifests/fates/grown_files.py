"""Tells which files begin with all bytes of an earlier version, perhaps of another name: they were appended to."""

from collections.abc import Callable, Container, Iterable, Mapping, Sequence
from itertools import groupby
from typing import Protocol

from compactor.core.documents.manifest import ManifestFile
from compactor.core.inputs.source_places import SourcePlace
from compactor.core.layout import is_within
from compactor.core.versions import AskedBeginnings, Beginning, is_same_version
from compactor.manifests.file_search import Naming

VersionAt = Callable[[str], str | None]
"""The version that is at a URI now; None if there is no file."""


class BeginningsOf(Protocol):
    """Reads the beginnings of files."""

    def __call__(self, files: Sequence[ManifestFile], asked: AskedBeginnings) -> Iterable[set[Beginning]]:
        """For each file, those of some beginnings that it has; none of a file that cannot be read."""


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
        versions: All that are asked for, with their digests.
        beginnings_of: Reads.
    """

    def __init__(
        self, files: Mapping[str, ManifestFile], versions: Iterable[Naming], beginnings_of: BeginningsOf
    ) -> None:
        self._files = files
        self._beginnings_of = beginnings_of
        self._versions: dict[Beginning, list[Naming]] = {}
        for each in versions:
            self._versions.setdefault((each.size_bytes, each.digest), []).append(each)
        self._asked: dict[int, set[str]] = {}
        for length, digest in self._versions:
            self._asked.setdefault(length, set()).add(digest)
        self._read: dict[str, set[Beginning]] = {}

    def read(self, uris: Iterable[str]) -> None:
        """Read those of some files that were not read."""
        unread = sorted(set(uris) - self._read.keys())
        found = self._beginnings_of([self._files[uri] for uri in unread], self._asked)
        self._read.update(zip(unread, found, strict=True))

    def of_another_name(self, uri: str, used: Container[Naming], is_in_place: Callable[[str], bool]) -> Naming | None:
        """The longest version that a file begins with; None if it is one of its own name, or there is none.

        Args:
            uri: The file, which was read.
            used: Versions that are those of other files.
            is_in_place: Tells whether a file is there that was not moved to its name from another one. If it begins
                with the version of its name, this one began as a copy of it.
        """
        by_length = sorted(self._read[uri], reverse=True)
        for _, beginnings in groupby(by_length, key=lambda beginning: beginning[0]):
            # There are two where some versions have digests of an earlier release.
            same = [each for beginning in beginnings for each in self._versions[beginning] if each not in used]
            if any(each.uri == uri for each in same):
                return None
            for each in same:
                if not (is_in_place(each.uri) and self._has(each.uri, each)):
                    return each
        return None

    def _has(self, uri: str, version: Naming) -> bool:
        if (self._files[uri].size_bytes or 0) <= version.size_bytes:
            return False
        self.read([uri])
        return (version.size_bytes, version.digest) in self._read[uri]
