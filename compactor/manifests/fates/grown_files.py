"""Tells which files begin with all bytes of an earlier version, perhaps of another name: they were appended to."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cached_property
from itertools import takewhile
from typing import Protocol

from compactor.core.documents.manifest import FileRange, ManifestFile
from compactor.core.inputs.source_places import SourcePlace
from compactor.core.layout import is_within
from compactor.core.versions import AskedBeginnings, Beginning
from compactor.manifests.file_search import Naming

VersionAt = Callable[[str], str | None]
"""The version that is at a URI now; None if there is no file."""

RangeBehind = Callable[[ManifestFile, Naming], FileRange | str]
"""The whole lines that follow the bytes of a version in a file, which begins with these; or why there can be none."""


class BeginningsOf(Protocol):
    """Reads the beginnings of files."""

    def __call__(self, uris: Sequence[str], asked: AskedBeginnings) -> Iterable[set[Beginning]]:
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
        if each.state == "compacted" and is_of(sources, each.uri) and (version_at(each.uri) or "") != (each.etag or "")
    ]


def _continued(namings: Iterable[Naming], is_meant: Callable[[Naming, FileRange], bool]) -> set[Naming]:
    """The versions that ranges continue which have rows, or may still get some."""
    namings = list(namings)
    ranges = ((each, each.range) for each in namings if each.range is not None and each.may_have(None))
    ends = {(part.continues, part.from_byte, part.digest_before) for each, part in ranges if is_meant(each, part)}
    return {each for each in namings if (each.uri, each.size_bytes, each.digest) in ends}


def left_behind(namings: Iterable[Naming]) -> set[Naming]:
    """The versions that files of other names continue: they have left their own names."""
    return _continued(namings, lambda each, part: each.uri != part.continues)


class Beginnings:
    """Which versions files begin with. Reads each file once.

    Args:
        versions: All that are asked for.
        namings: All that is known; those of ranges tell which versions were continued before.
        beginnings_of: Reads.

    Attributes:
        continued: The versions that ranges continue. A longer file that begins with such a one, and not with its range,
            has lost lines.
    """

    def __init__(self, versions: Iterable[Naming], namings: Iterable[Naming], beginnings_of: BeginningsOf) -> None:
        self._beginnings_of = beginnings_of
        self.continued = _continued(namings, lambda _each, _part: True)
        self._versions: dict[Beginning, list[Naming]] = {}
        for each in dict.fromkeys(versions):
            if each.digest and each.size_bytes:
                self._versions.setdefault((each.size_bytes, each.digest), []).append(each)
        self._asked: dict[int, set[str]] = {}
        for length, digest in self._versions:
            self._asked.setdefault(length, set()).add(digest)
        self._read: dict[str, set[Beginning]] = {}

    def read(self, uris: Iterable[str]) -> None:
        """Read those of some files that were not read."""
        unread = sorted(set(uris) - self._read.keys())
        self._read.update(zip(unread, self._beginnings_of(unread, self._asked), strict=True))

    def may_be(self, size_bytes: int, is_asked: Callable[[Naming], bool]) -> bool:
        """Return whether a file of some length may begin with one of the versions that are asked for."""
        shorter = takewhile(lambda beginning: beginning[0] < size_bytes, self._shortest_first)
        return any(is_asked(each) for beginning in shorter for each in self._versions[beginning])

    @cached_property
    def _shortest_first(self) -> list[Beginning]:
        return sorted(self._versions)

    def has(self, uri: str, version: Naming) -> bool:
        """Return whether what is at a place begins with a version, and is longer."""
        self.read([uri])
        return (version.size_bytes, version.digest) in self._read[uri]

    def of(self, uri: str) -> Iterator[Naming]:
        """The versions that a file that was read begins with, and is longer than, the longest first."""
        for beginning in sorted(self._read.get(uri, ()), reverse=True):
            yield from self._versions[beginning]

    def of_length(self, size_bytes: int) -> Iterator[Naming]:
        """The versions of a length."""
        for digest in self._asked.get(size_bytes, ()):
            yield from self._versions[size_bytes, digest]
