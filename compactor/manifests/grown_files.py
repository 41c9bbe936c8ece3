"""Finds files that were renamed and then appended to: each begins with all bytes of an earlier one. No I/O."""

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


def grown(files: Mapping[str, ManifestFile], gone: Iterable[Naming], beginnings_of: BeginningsOf) -> dict[str, Naming]:
    """The longest version that each file begins with, by canonical URI; each version for one file."""
    by_content = {(each.size_bytes, each.digest): each for each in gone}
    lengths = sorted({length for length, _ in by_content}, reverse=True)
    asked = {uri: file for uri, file in sorted(files.items()) if lengths and (file.size_bytes or 0) > lengths[-1]}
    found: dict[str, Naming] = {}
    for uri, beginnings in zip(asked, beginnings_of(list(asked.values()), lengths), strict=True):
        versions = (by_content.get((length, beginnings.get(length, ""))) for length in lengths)
        if (longest := next(filter(None, versions), None)) is not None:
            found[uri] = by_content.pop((longest.size_bytes, longest.digest))
    return found
