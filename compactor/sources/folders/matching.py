"""Decides what became of listed files by what manifests have of them: known, touched, renamed, replaced or new. No I/O.

A version of a file is its length and its time. Where the time moved, or the name, the digest of the bytes decides.
"""

from collections.abc import Callable, Collection, Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import cached_property, partial
from itertools import chain, takewhile
from typing import Protocol

from compactor.core.documents.manifest import FileRange, ManifestFile
from compactor.core.inputs.source_places import SourcePlace
from compactor.core.layout import canonical, is_within
from compactor.core.versions import AskedBeginnings, Beginning
from compactor.sources.file_search import Naming
from compactor.sources.plan import Replacement

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


DigestOf = Callable[[ManifestFile], str]
"""The digest of the bytes of a file now; empty if it was not read, or not to its end."""

NOTHING: Mapping[str, str] = {}

_NOT_DONE = frozenset({"in_work", "waiting"})
_EARLIEST = datetime.min.replace(tzinfo=UTC)


@dataclass(slots=True)
class Matches:
    """What became of files, by canonical URI. A file that is in none of these is new.

    Attributes:
        known: In a manifest, at this version.
        touched: In a manifest with the same bytes and another time.
        renamed: In a manifest under another name, which is gone; with that name.
        grown: Begin with all bytes of a version that has rows; with the whole lines that follow these.
        unfinished: Those of known or grown files, and of others that only begin a line, that end amid a line; with the
            byte where it begins.
        replaced: Rows of another version are there.
        undecided: A manifest that is not done may have it under another name, which is gone.
        passed: Versions that are gone, and that none of the files has or begins with.
    """

    known: set[str] = field(default_factory=set)
    touched: set[str] = field(default_factory=set)
    renamed: dict[str, str] = field(default_factory=dict)
    grown: dict[str, FileRange] = field(default_factory=dict)
    unfinished: dict[str, int] = field(default_factory=dict)
    replaced: dict[str, Replacement] = field(default_factory=dict)
    undecided: dict[str, Naming] = field(default_factory=dict)
    passed: list[Naming] = field(default_factory=list)

    def moved(self, uri: str, naming: Naming) -> None:
        """Add a file that was renamed, as far as that is decided."""
        if naming.digest:
            self.renamed[uri] = naming.uri
        else:
            self.undecided[uri] = naming

    def has(self, uri: str) -> bool:
        """Return whether a file is not to be taken with all its lines."""
        known = (self.known, self.touched, self.renamed, self.grown, self.unfinished, self.replaced, self.undecided)
        return any(uri in those for those in known)


def matches(
    files: Mapping[str, ManifestFile],
    namings: Iterable[Naming],
    *,
    digest_of: DigestOf,
    version_at: VersionAt,
    suspects: frozenset[str] = frozenset(),
    remembered: Mapping[str, str] = NOTHING,
    gone: Sequence[Naming] = (),
    beginnings_of: BeginningsOf = lambda uris, _: (set() for _ in uris),
    range_behind: RangeBehind = lambda _file, _version: "",
) -> Matches:
    """Decide what became of files.

    Args:
        files: The files by canonical URI.
        namings: The manifests that name them, or their versions under other names.
        digest_of: Reads a file.
        version_at: Tells what is at the place of another name.
        suspects: Files whose bytes may be others although length and time are the same.
        remembered: The versions that files had when they were last planned, by canonical URI.
        gone: Versions with rows that are at their places no more. A file that begins with one was renamed and grew.
        beginnings_of: Reads the beginnings of files.
        range_behind: Reads on behind them.
    """
    namings = list(namings)
    by_uri, by_version = _indexed(namings)
    found, left = Matches(), dict[str, list[Naming]]()
    used = set[Naming]()  # each version is that of one file: a second one is a copy
    others = set[str]()  # the suspects that have other bytes
    for uri, file in files.items():
        named = by_uri.get(uri) or _under_earlier_name(remembered.get(uri), file, by_version, version_at)
        rows = [each for each in named if each.may_have(each.etag)]
        # guard: the rewritten bytes of a file of the same length and time are noticed
        if uri in suspects and _is_other(file, rows, digest_of):
            others.add(uri)
            left[uri] = rows
        elif any(each.has_had(file.etag) for each in named):
            found.known.add(uri)
            if (end := _end_of_range(named, file)) is not None:
                found.unfinished[uri] = end
        elif (same := _of_same_bytes(file, rows, digest_of)) is not None:
            found.touched.add(uri)
            used.add(same)
        else:
            left[uri] = rows
    there = lambda name: None if name in others else version_at(name)  # noqa: E731
    own = {uri: rows for uri, rows in left.items() if uri not in others}
    for uri in sorted(own):
        if (naming := _moved(files[uri], by_version, used, digest_of, there)) is not None:
            used.add(naming)
            found.moved(uri, naming)
    asked = (each for each in chain(gone, *own.values()) if each.state == "compacted")
    _GrownFiles(
        found=found,
        files=files,
        left=own,
        gone=frozenset(gone),
        used=used,
        begun=Beginnings(asked, namings, beginnings_of),
        digest_of=digest_of,
        version_at=version_at,
        range_behind=range_behind,
        remembered=remembered,
    ).find()
    # guard: a log whose earlier lines went on under another name is no replaced file
    elsewhere = used | left_behind(namings)
    for uri, rows in left.items():
        # A version that moved away was replaced by nothing: log files are rotated so.
        is_there = uri in found.grown or uri in found.unfinished or uri in found.replaced or _has_moved(found, uri)
        if not is_there and rows and (rows[-1] not in elsewhere or uri in others):
            found.replaced[uri] = Replacement(files[uri], rows[-1], _hindrance(uri, rows, used))
    used.update(*({each.earlier, *left.get(uri, ())[-1:]} for uri, each in found.replaced.items()))
    found.passed = [each for each in gone if each not in used]
    return found


@dataclass(frozen=True, slots=True, kw_only=True)
class _GrownFiles:
    """Finds the files that begin with a version that is at its place no more, among those that are left.

    Attributes:
        left: The versions with rows that files have under their own names, by canonical URI.
        used: Versions that are those of files.
        begun: Tells what files begin with.
    """

    found: Matches
    files: Mapping[str, ManifestFile]
    left: Mapping[str, Sequence[Naming]]
    gone: Collection[Naming]
    used: set[Naming]
    begun: Beginnings
    digest_of: DigestOf
    version_at: VersionAt
    range_behind: RangeBehind
    remembered: Mapping[str, str]

    def find(self) -> None:
        """Add them. A file that begins with a version of its own name is that file, whatever other names had."""
        done = (uri for uri, rows in self.left.items() if not any(each.state in _NOT_DONE for each in rows))
        asked = [uri for uri in sorted(done) if not _has_moved(self.found, uri)]
        self.begun.read(uri for uri in asked if self.begun.may_be(self._size(uri), partial(self._is_asked, uri)))
        for uri in asked:
            own = (each for each in self.begun.of(uri) if each in self.left[uri] and each not in self.used)
            if (version := next(own, None)) is not None:
                self._add(uri, version)
        for uri in asked:
            # guard: a file that begins with a version that is gone is no new one
            if not self._is_found(uri) and (version := self._of_another_name(uri)) is not None:
                self._add(uri, version)

    def _size(self, uri: str) -> int:
        return self.files[uri].size_bytes or 0

    def _is_asked(self, uri: str, version: Naming) -> bool:
        is_other = version.uri != uri and version in self.gone
        return version not in self.used and (is_other or version in self.left[uri])

    def _is_found(self, uri: str) -> bool:
        return any(uri in those for those in (self.found.grown, self.found.unfinished, self.found.replaced))

    def _of_another_name(self, uri: str) -> Naming | None:
        """The version of another name that a file is or begins with, if that name has it no more."""
        for version in (*self._same(uri), *self.begun.of(uri)):
            is_free = version in self.gone and version not in self.used and version.uri != uri
            # guard: a version whose file grew in its place is not that of a copy
            if is_free and not self.begun.has(version.uri, version):
                return version
        return None

    def _same(self, uri: str) -> Iterator[Naming]:
        """The versions that a file is. One with the bytes of a file that was removed may be another file."""
        etag = self.files[uri].etag or ""
        for version in self.begun.of_length(self._size(uri)):
            # guard: a file with the bytes of one that was removed is a new one
            is_cut = self.version_at(version.uri) is not None
            # It was touched and then renamed; or it was found to be that version before, and is as it was then.
            was_it = etag in {self.remembered.get(version.uri), self.remembered.get(uri)}
            if (is_cut or was_it) and self.digest_of(self.files[uri]) == version.digest:
                yield version

    def _add(self, uri: str, version: Naming) -> None:
        found, file = self.found, self.files[uri]
        self.used.add(version)
        if version.size_bytes == file.size_bytes:
            found.renamed[uri] = version.uri
            return
        if version.uri != uri and self.version_at(version.uri) is None and version not in self.left[uri]:
            behind: FileRange | str = "another file has not taken that name yet"
        elif version in self.begun.continued:  # guard: a version that was continued is not continued again
            behind = "the lines that followed these are missing"
        else:
            behind = self.range_behind(file, version)
        if isinstance(behind, str):
            went_on = "another manifest has the lines that followed" if version in self.begun.continued else ""
            hindrance = went_on or _hindrance(uri, [version], self.used)
            found.replaced[uri] = Replacement(file, version, hindrance, behind)
            return
        if behind.size_bytes:
            found.grown[uri] = behind
        if behind.to_byte < self._size(uri):
            found.unfinished[uri] = behind.to_byte


def _has_moved(found: Matches, uri: str) -> bool:
    return uri in found.renamed or uri in found.undecided


def _under_earlier_name(
    etag: str | None, file: ManifestFile, by_version: Mapping[str, Sequence[Naming]], version_at: VersionAt
) -> list[Naming]:
    """The namings of a version that a file had, by the name that it had before; that name has it no more.

    A file that was renamed since it was compacted has no manifest under its name.
    """
    if etag is None or etag == file.etag:
        return []
    same = (each for each in by_version.get(etag, ()) if each.digest)
    return [each for each in same if (version_at(each.uri) or "") != (each.etag or "")]


def _indexed(namings: Iterable[Naming]) -> tuple[dict[str, list[Naming]], dict[str, list[Naming]]]:
    """The namings by URI, the earliest first, and those that a renamed file may be, by version."""
    by_uri: dict[str, list[Naming]] = {}
    by_version: dict[str, list[Naming]] = {}
    for naming in sorted(namings, key=lambda each: each.named_at or _EARLIEST):
        by_uri.setdefault(naming.uri, []).append(naming)
        if (naming.state == "compacted" and naming.digest) or naming.state in _NOT_DONE:
            by_version.setdefault(naming.etag or "", []).append(naming)
    return by_uri, by_version


def _hindrance(uri: str, rows: Sequence[Naming], used: Container[Naming]) -> str:
    if len({each.manifest_id for each in rows}) > 1:
        return "several manifests have rows of it, so none can be made again alone"
    if rows[-1].uri != uri:
        return f"it was {rows[-1].uri} then, and its rows can only be made again under that name"
    return "its earlier version is there under another name" if rows[-1] in used else ""


def _of_same_bytes(file: ManifestFile, rows: Sequence[Naming], digest_of: DigestOf) -> Naming | None:
    """An earlier version that has rows and the same bytes."""
    return next((each for each in reversed(rows) if _has_bytes_of(file, each, digest_of)), None)


def _is_other(file: ManifestFile, rows: Sequence[Naming], digest_of: DigestOf) -> bool:
    """Whether a file of the same length and time is known to have other bytes."""
    same = [each for each in rows if each.etag and each.etag == (file.etag or "") and each.digest]
    if not same:
        return False
    return all(digest_of(file) not in {"", each.digest} for each in same)


def _end_of_range(own: Sequence[Naming], file: ManifestFile) -> int | None:
    """Where the range of a known file ends, if an unfinished line follows; else None."""
    ranges = (each for each in own if each.range and each.state == "compacted" and each.has_had(file.etag))
    return next((each.size_bytes for each in ranges if each.size_bytes < (file.size_bytes or 0)), None)


def _has_bytes_of(file: ManifestFile, naming: Naming, digest_of: DigestOf) -> bool:
    may_have = bool(naming.digest) and naming.size_bytes == file.size_bytes
    # guard: a renamed file has the bytes of the earlier one
    return may_have and digest_of(file) == naming.digest


def _moved(
    file: ManifestFile,
    by_version: Mapping[str, Sequence[Naming]],
    used: Container[Naming],
    digest_of: DigestOf,
    version_at: VersionAt,
) -> Naming | None:
    """The version of another name that a file is, if that name has it no more."""
    for naming in by_version.get(file.etag or "", ()):
        if naming in used or naming.uri == canonical(file.uri):  # guard: a version under two names is that of one file
            continue
        there = version_at(naming.uri)
        # guard: a file that is there under its old name was not renamed
        is_gone = there is None or there != (naming.etag or "")
        if is_gone and (not naming.digest or _has_bytes_of(file, naming, digest_of)):
            return naming
    return None
