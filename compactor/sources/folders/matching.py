"""Classifies listed files by their manifests: known, touched, renamed, replaced or new. No I/O.

A file's version is its length and time. If the time or the name changed, the digest of its bytes decides.
"""

import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from itertools import chain
from typing import Protocol

from compactor.core.documents.manifest import FileRange, ManifestFile
from compactor.core.inputs.source_places import SourcePlace
from compactor.core.layout import canonical, is_s3, is_within
from compactor.core.versions import AskedBeginnings, Beginning
from compactor.sources.file_search import Naming
from compactor.sources.plan import Replacement

NOTHING: Mapping[str, str] = {}

_NOT_DONE = frozenset({"in_work", "waiting"})
_End = tuple[str, int, str, str]
"""The name, length and digest of a version, and what its log follows: ranges continue it."""

_EARLIEST = datetime.min.replace(tzinfo=UTC)


class FilesNow(Protocol):
    """The current files at given places."""

    def digest_of(self, file: ManifestFile) -> str:
        """The digest of a file's bytes; empty if it was not read completely."""

    def version_at(self, uri: str) -> str | None:
        """The version at a place; None if there is no file."""

    def names_of(self, version: Naming) -> Mapping[str, str]:
        """The names under which the bytes of a version were last seen, each with the version that it had then."""

    def content_of(self, file: ManifestFile, most_bytes: int) -> Beginning | None:
        """The length and digest of a compressed file's content; None if it is not compressed, or cannot be read.

        A content longer than this has an unknown digest.
        """

    def beginnings_of(self, uris: Sequence[str], asked: AskedBeginnings) -> Iterable[set[Beginning]]:
        """The given beginnings that each file's content has; none for an unreadable file."""

    def ranges_after(self, uris: Collection[str]) -> Iterable[Naming]:
        """The manifests with ranges that continue versions of files, by canonical URI."""

    def range_behind(self, file: ManifestFile, version: Naming) -> FileRange | str:
        """The complete lines after a version's bytes in a file that begins with it, or a fault."""


_COMPRESSED = re.compile(r"\.(?:gz|bz2|xz|zst)$")
_ROTATED = re.compile(r"[.-][0-9-]+$")  # what logrotate appends: a number or a date


def uncompressed_name(uri: str) -> str:
    """A file's name without the ending that a compressor appends."""
    return _COMPRESSED.sub("", uri)


def rotated_name(uri: str) -> str:
    """The name of a log without what its rotation appends: a number or a date, and the ending of a compressor."""
    return _ROTATED.sub("", uncompressed_name(uri))


def is_of(sources: Sequence[SourcePlace], uri: str) -> bool:
    """Whether a file is in one of the sources."""
    return any(is_within(uri, source.folder) and source.takes(uri) for source in sources)


@dataclass(slots=True)
class Matches:
    """The classification of files, by canonical URI. A file in none but `follows` is new.

    Attributes:
        known: In a manifest, at this version.
        touched: In a manifest with the same bytes and a different time.
        renamed: In a manifest under an earlier name that no longer exists; with that name.
        grown: Begin with all bytes of a version with rows; with the complete lines after these.
        unfinished: Known, grown or one-line files that end inside a line; with the offset of that line.
        replaced: Rows of a different version exist.
        compressed: Compressed files that begin with all bytes of a version with rows, and go on.
        follows: Of new and grown files, the manifest with the last lines of the log that had the name before; empty if
            there was none.
        undecided: An unfinished manifest may have it under an earlier name that no longer exists.
        present: Versions that files have or begin with, at any time and under any name.
        passed: Versions that no longer exist, and are not present.
    """

    known: set[str] = field(default_factory=set)
    touched: set[str] = field(default_factory=set)
    renamed: dict[str, str] = field(default_factory=dict)
    grown: dict[str, FileRange] = field(default_factory=dict)
    unfinished: dict[str, int] = field(default_factory=dict)
    replaced: dict[str, Replacement] = field(default_factory=dict)
    compressed: dict[str, Naming] = field(default_factory=dict)
    follows: dict[str, str] = field(default_factory=dict)
    undecided: dict[str, Naming] = field(default_factory=dict)
    present: set[Naming] = field(default_factory=set)
    passed: list[Naming] = field(default_factory=list)

    def has(self, uri: str) -> bool:
        """Whether a file should not be taken with all its lines."""
        return uri in self.known or uri in self.touched or self.has_moved(uri) or self.has_begun(uri)

    def has_moved(self, uri: str) -> bool:
        """Whether a file may be in a manifest under an earlier name."""
        return uri in self.renamed or uri in self.undecided

    def has_begun(self, uri: str) -> bool:
        """Whether rows of a different version of a file exist."""
        return uri in self.grown or uri in self.unfinished or uri in self.replaced or uri in self.compressed


class Matching:
    """Classifies files.

    Args:
        files: The files by canonical URI.
        namings: The manifests that name them, or their versions under other names.
        now: The current files.
        suspects: Files whose bytes may differ although length and time are the same.
        released: Files whose claims a redrive took and released, so that a manifest without rows no longer has them.
        remembered: The files' versions when they were last planned, by canonical URI.
        gone: Versions that may have left their places. A file that begins with one was renamed and grew.
    """

    def __init__(
        self,
        files: Mapping[str, ManifestFile],
        namings: Iterable[Naming],
        now: FilesNow,
        *,
        suspects: frozenset[str] = frozenset(),
        released: frozenset[str] = frozenset(),
        remembered: Mapping[str, str] = NOTHING,
        gone: Iterable[Naming] = (),
    ) -> None:
        self._files, self._now, self._remembered = files, now, remembered
        self._suspects, self._released = suspects, released
        self._namings = sorted(namings, key=lambda each: each.named_at or _EARLIEST)
        self._gone = {each: None for each in gone if self._has_left(each)}
        self._found = Matches()
        self._left: dict[str, list[Naming]] = {}  # the versions with rows for each undecided file
        self._used = self._found.present  # each version belongs to one file: a second file is a copy
        self._others = set[str]()  # the suspects with different bytes
        self._by_uri: dict[str, list[Naming]] = {}
        self._by_version: dict[str, list[Naming]] = {}
        for each in self._namings:
            self._by_uri.setdefault(each.uri, []).append(each)
            if (each.state == "compacted" and each.digest) or each.state in _NOT_DONE:
                self._by_version.setdefault(each.etag or "", []).append(each)
        self._followers: dict[_End, list[Naming]] = {}
        self._add_followers(self._namings)
        self._beginnings: dict[Beginning, list[Naming]] = {}
        self._of_length: dict[int, list[Naming]] = {}
        self._begins_with: dict[str, set[Beginning]] = {}
        self._contents: dict[str, Beginning | None] = {}
        self._longest_text = max((each.size_bytes for each in self._gone if each.is_text), default=0)

    def matches(self) -> Matches:
        found = self._found
        for uri, file in self._files.items():
            self._by_own_name(uri, file)
        own = {uri: rows for uri, rows in self._left.items() if uri not in self._others}
        for uri in sorted(own):
            self._by_version_elsewhere(uri)
        self._by_beginnings(own)
        # guard: a rotated log is not a replaced file
        elsewhere = self._used | {each for each in self._namings if self._went_on(each)}
        for uri, rows in self._left.items():
            # A version that moved to a new name was not replaced: log rotation does this.
            is_there = found.has_begun(uri) or found.has_moved(uri)
            if not is_there and rows and (rows[-1] not in elsewhere or uri in self._others):
                found.replaced[uri] = Replacement(self._files[uri], rows[-1], self._hindrance(uri, rows))
            elif not is_there and rows:
                found.follows[uri] = rows[-1].manifest_id
        kept = self._used.union(*(self._left[uri][-1:] for uri in found.replaced))
        found.passed = [each for each in self._gone if each not in kept]
        return found

    def _by_own_name(self, uri: str, file: ManifestFile) -> None:
        """Classify by the manifests under a file's current or earlier name."""
        found, named = self._found, self._by_uri.get(uri) or self._under_earlier_name(uri, file)
        rows = [each for each in named if each.may_have(each.etag)]
        # guard: rewritten bytes of the same length and time are noticed
        if uri in self._suspects and self._is_other(file, rows):
            self._others.add(uri)
            self._left[uri] = rows
        elif any(each.has_had(file.etag) for each in (rows if uri in self._released else named)):
            ranges = (each for each in named if each.range and each.state == "compacted" and each.has_had(file.etag))
            if max((each.size_bytes for each in ranges), default=self._size(uri)) < self._size(uri):
                self._left[uri] = rows  # its last line may be taken by now
            else:
                found.known.add(uri)
        elif (same := next((each for each in self._ends(rows) if self._has_bytes_of(file, each)), None)) is not None:
            found.touched.add(uri)
            self._used.add(same)
        else:
            self._left[uri] = rows

    def _ends(self, rows: Sequence[Naming]) -> Iterator[Naming]:
        """The versions that were not continued, the latest first."""
        # guard: a log that begins like the one before was not just touched
        return (each for each in reversed(rows) if not self._is_continued(each))

    def _add_followers(self, namings: Iterable[Naming]) -> None:
        for each in namings:
            if (part := each.range) is not None and part.size_bytes and each.may_have(None):
                end = part.continues, part.from_byte, part.digest_before, each.follows
                self._followers.setdefault(end, []).append(each)

    def _is_continued(self, version: Naming) -> bool:
        """Whether a range begins where a version ends. A longer file without that range has lost lines."""
        return _end(version) in self._followers

    def _went_on(self, version: Naming) -> bool:
        """Whether a log went on under another name after a version."""
        return any(each.uri != version.uri for each in self._followers.get(_end(version), ()))

    def _is_elsewhere(self, version: Naming) -> bool:
        """Whether the log that went on after a version is there under another name."""
        ends = [version]
        while ends:
            followers = self._followers.get(_end(ends.pop()), [])
            if any(each in self._used or not self._has_left(each) for each in followers):
                return True
            ends += followers
        return False

    def _under_earlier_name(self, uri: str, file: ManifestFile) -> list[Naming]:
        """The namings of a version that a file had under an earlier name, where that version is no longer found.

        A file that was renamed after it was compacted has no manifest under its current name.
        """
        etag = self._remembered.get(uri)
        if etag is None or etag == file.etag:
            return []
        return [each for each in self._by_version.get(etag, ()) if each.digest and self._has_left(each)]

    def _by_version_elsewhere(self, uri: str) -> None:
        """Find the version under a different name that a file is, if that name no longer has it."""
        file = self._files[uri]
        for each in self._by_version.get(file.etag or "", ()):
            # guard: a version under two names is that of one file
            if each in self._used or each.uri == canonical(file.uri):
                continue
            there = None if each.uri in self._others else self._now.version_at(each.uri)
            # guard: a file that is there under its old name was not renamed
            is_gone = there is None or there != (each.etag or "")
            if is_gone and (not each.digest or self._has_bytes_of(file, each)):
                self._used.add(each)
                if each.digest:
                    self._found.renamed[uri] = each.uri
                else:
                    self._found.undecided[uri] = each
                return

    def _by_beginnings(self, left: Mapping[str, Collection[Naming]]) -> None:
        """Find the files that begin with a version no longer found under its own name.

        A file that begins with a version of its own name is that file, unless that one was continued under another
        name, or the file begins with a longer version of another name.
        """
        asked = {*self._gone, *chain(*left.values())}
        for each in reversed(self._namings):
            if each in asked and each.state == "compacted" and each.digest and each.size_bytes:
                self._beginnings.setdefault((each.size_bytes, each.digest), []).append(each)
                self._of_length.setdefault(each.size_bytes, []).append(each)
        done = (uri for uri, rows in left.items() if not any(each.state in _NOT_DONE for each in rows))
        uris = [uri for uri in sorted(done) if not self._found.has_moved(uri)]
        shortest_first = sorted(self._beginnings)
        asked_of: dict[int, set[str]] = {}
        for length, digest in shortest_first:
            asked_of.setdefault(length, set()).add(digest)
        unread = [uri for uri in uris if self._may_begin(uri, shortest_first, left[uri])]
        self._begins_with.update(zip(unread, self._now.beginnings_of(unread, asked_of), strict=True))
        begun = {uri: found for uri in uris if (found := [*self._same(uri), *self._begun(uri)])}
        others = {each.uri for uri, found in begun.items() for each in found if each not in left[uri]}
        # guard: the lines after a version may be in a file that is known
        self._add_followers(self._now.ranges_after(others))
        for turn in range(3):
            for uri, found in begun.items():
                # guard: a file that begins with a version of a deleted file is not new
                version = None if self._found.has(uri) else self._version(uri, found, left[uri], turn)
                if version is not None:
                    self._add_begun(uri, version, left[uri])

    def _version(self, uri: str, begun: Iterable[Naming], own: Collection[Naming], turn: int) -> Naming | None:
        """The longest version that says what a file is, if this is its turn: its own, or one that left its name."""
        for each in begun:
            may_be = each not in self._used and (each in own or (each.uri != uri and each in self._gone))
            if may_be and (decided := self._turn(uri, each, own)) is not None:
                return each if decided == turn else None
        return None

    def _turn(self, uri: str, version: Naming, own: Collection[Naming]) -> int | None:
        """When to decide that a file begins with a version; None if it is a new log that begins like an earlier one.

        First come logs that go on under their names, then those of other names, and last those that lack lines.
        """
        # guard: a log that went on under another name may go on from there
        if not self._is_continued(version):
            return 0 if version in own else 1
        # guard: a log that begins like the one before is new
        return 2 if version.size_bytes < self._length(uri) and not self._is_elsewhere(version) else None

    def _may_begin(self, uri: str, shortest_first: Sequence[Beginning], own: Collection[Naming]) -> bool:
        """Whether a file may begin with one of the versions."""
        if not shortest_first:
            return False
        length = self._length(uri)
        for beginning in shortest_first:
            if beginning[0] >= length:
                return False
            for each in self._beginnings[beginning]:
                if each not in self._used and (each in own or (each.uri != uri and each in self._gone)):
                    return True
        return False

    def _begun(self, uri: str) -> Iterator[Naming]:
        """The versions that are a proper beginning of a file, the longest first, and of these those of its name."""
        for beginning in sorted(self._begins_with.get(uri, ()), reverse=True):
            if beginning[0] < self._length(uri):
                yield from sorted(self._beginnings[beginning], key=lambda each: each.uri != uri)

    def _same(self, uri: str) -> Iterator[Naming]:
        """The versions with a file's bytes. If the other file was removed, this may still be a new one."""
        file = self._files[uri]
        if (content := self._content(uri)) is not None:
            # An earlier call matched it with that version, which it still is.
            is_matched = self._remembered.get(uri) == (file.etag or "")
            texts = (each for each in self._beginnings.get(content, ()) if each.is_text)
            # guard: a log compressed after its rotation is not a new file
            yield from (each for each in texts if is_matched or self._was(uri, each))
            return
        for version in self._of_length.get(self._size(uri), ()):
            if self._was(uri, version) and self._now.digest_of(file) == version.digest:
                yield version

    def _was(self, uri: str, version: Naming) -> bool:
        """Whether a file with a version's bytes is not just a new one like it."""
        seen = {version.uri: version.etag or "", **self._now.names_of(version)}
        # guard: a file with the bytes of one that was removed is a new one
        is_cut = any(self._now.version_at(name) not in {None, etag} for name, etag in seen.items() if name != uri)
        # It was touched before or after it was renamed.
        is_touched = uri in seen or self._files[uri].etag in seen.values()
        is_rotated = uri not in seen and rotated_name(uri) in map(rotated_name, seen)
        return is_cut or is_touched or is_rotated

    def _add_begun(self, uri: str, version: Naming, own: Collection[Naming]) -> None:
        """Add a file that is a version, or begins with it."""
        found, file = self._found, self._files[uri]
        hindrance = self._hindrance(uri, list(own) if version in own else [version])
        is_continued = self._is_continued(version)
        self._used.add(version)
        if version.size_bytes == self._length(uri):
            found.renamed[uri] = version.uri
            return
        behind: FileRange | str
        if version.uri != uri and self._now.version_at(version.uri) is None and version not in own:
            behind = "no other file has taken that name yet"
        elif is_continued:  # guard: a version that was continued is not continued again
            behind = "the lines after the earlier ones are missing"
        elif self._content(uri) is not None:
            found.compressed[uri] = version
            return
        else:
            behind = self._now.range_behind(file, version)
        if isinstance(behind, str):
            went_on = "another manifest has the lines after the earlier ones" if is_continued else ""
            found.replaced[uri] = Replacement(file, version, went_on or hindrance, behind)
            return
        if behind.size_bytes:
            found.grown[uri] = behind
            found.follows[uri] = version.follows
        if behind.to_byte < self._size(uri):
            found.unfinished[uri] = behind.to_byte

    def _size(self, uri: str) -> int:
        return self._files[uri].size_bytes or 0

    def _content(self, uri: str) -> Beginning | None:
        """A compressed file's content, if a version of a log that is gone may be in it."""
        if uri not in self._contents:
            is_asked = self._longest_text and not is_s3(uri)
            self._contents[uri] = self._now.content_of(self._files[uri], self._longest_text) if is_asked else None
        return self._contents[uri]

    def _length(self, uri: str) -> int:
        """The length of a file's content."""
        content = self._content(uri)
        return content[0] if content is not None else self._size(uri)

    def _has_left(self, version: Naming) -> bool:
        return (self._now.version_at(version.uri) or "") != (version.etag or "")

    def _has_bytes_of(self, file: ManifestFile, naming: Naming) -> bool:
        may_have = bool(naming.digest) and naming.size_bytes == file.size_bytes
        # guard: a renamed file has the bytes of the earlier one
        return may_have and self._now.digest_of(file) == naming.digest

    def _is_other(self, file: ManifestFile, rows: Sequence[Naming]) -> bool:
        """Whether a file with the same length and time is known to have different bytes."""
        same = [each for each in rows if each.etag and each.etag == (file.etag or "") and each.digest]
        return bool(same) and all(self._now.digest_of(file) not in {"", each.digest} for each in same)

    def _hindrance(self, uri: str, rows: Sequence[Naming]) -> str:
        """Why a file's rows cannot be rebuilt; empty if they can."""
        if len({each.manifest_id for each in rows}) > 1:
            return "several manifests have rows of it, so none can be rebuilt alone"
        if rows[-1].uri != uri:
            return f"it was {rows[-1].uri} then, and its rows can only be rebuilt under that name"
        return "its earlier version exists under a different name" if rows[-1] in self._used else ""


def _end(version: Naming) -> _End:
    return version.uri, version.size_bytes, version.digest, version.follows
