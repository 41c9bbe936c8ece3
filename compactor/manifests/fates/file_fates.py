"""Decides what became of listed files by what manifests have of them: known, touched, renamed, replaced or new. No I/O.

A version of a file is its length and its time. Where the time moved, or the name, the digest of the bytes decides.
"""

from collections.abc import Callable, Container, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime

from compactor.core.documents.manifest import ManifestFile
from compactor.core.layout import canonical
from compactor.core.versions import described_version, is_same_version, version_of
from compactor.manifests.fates.grown_files import Beginnings, BeginningsOf, VersionAt
from compactor.manifests.file_search import Naming

DigestOf = Callable[[ManifestFile, str], str]
"""The digest of the bytes of a file now, of the kind of a given one; empty if it was not read, or not to its end."""

_NOT_DONE = frozenset({"in_work", "waiting"})
_EARLIEST = datetime.min.replace(tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class Replacement:
    """A file whose earlier version has rows.

    Attributes:
        file: Its version of now.
        earlier: The manifest that has the last version of it.
        hindrance: Why its rows cannot be made again; empty if they may be.
    """

    file: ManifestFile
    earlier: Naming
    hindrance: str = ""

    @property
    def detail(self) -> str:
        """Both versions in words."""
        was, now = (described_version(self.file.uri, each.etag) for each in (self.earlier, self.file))
        others = " with other contents" if was == now else ""
        did = "compacted" if self.earlier.state == "compacted" else "planned"
        name = "" if self.earlier.uri == canonical(self.file.uri) else f" as {self.earlier.uri}, which is gone"
        return f"manifest {self.earlier.manifest_id} has {did} {was}{name}; now it is {now}{others}"


@dataclass(slots=True)
class Fates:
    """What became of files, by canonical URI. A file that is in none of these is new.

    Attributes:
        known: In a manifest, at this version.
        touched: In a manifest with the same bytes and another time.
        renamed: In a manifest under another name, which is gone; with that name.
        replaced: Rows of another version are there.
        undecided: A manifest that is not done may have it under another name, which is gone.
        passed: Versions that are gone, and that none of the files has or begins with.
    """

    known: set[str] = field(default_factory=set)
    touched: set[str] = field(default_factory=set)
    renamed: dict[str, str] = field(default_factory=dict)
    replaced: dict[str, Replacement] = field(default_factory=dict)
    undecided: dict[str, Naming] = field(default_factory=dict)
    passed: list[Naming] = field(default_factory=list)

    def has(self, uri: str) -> bool:
        """Return whether a file is not new."""
        return any(uri in those for those in (self.known, self.touched, self.renamed, self.replaced, self.undecided))


def fates(
    files: Mapping[str, ManifestFile],
    namings: Iterable[Naming],
    *,
    digest_of: DigestOf,
    version_at: VersionAt,
    suspects: frozenset[str] = frozenset(),
    earlier: Mapping[str, str] | None = None,
    gone: Sequence[Naming] = (),
    beginnings_of: BeginningsOf = lambda files, _: (set() for _ in files),
) -> Fates:
    """Decide what became of files.

    Args:
        files: The files by canonical URI.
        namings: The manifests that name them, or their versions under other names.
        digest_of: Reads a file.
        version_at: Tells what is at the place of another name.
        suspects: Files whose bytes may be others although length and time are the same.
        earlier: The versions that files had when they were last planned, by canonical URI, where they are others now. A
            file that was renamed since it was compacted has no manifest under its name.
        gone: Versions with rows that are at their places no more. A file that begins with one was renamed and grew.
        beginnings_of: Reads the beginnings of files.
    """
    by_uri, by_version = _indexed(namings)
    found = Fates()
    used: set[Naming] = set()  # each version is that of one file: a second one is a copy
    others: set[str] = set()  # the suspects that have other bytes
    left: dict[str, list[Naming]] = {}
    for uri, file in files.items():
        own = by_uri.get(uri) or _under_earlier_name((earlier or {}).get(uri), by_version, version_at)
        rows = [each for each in own if each.may_have(each.etag)]
        if uri in suspects and _is_other(file, rows, digest_of):
            others.add(uri)
            left[uri] = rows
        elif any(each.has_had(file.etag) for each in own):
            found.known.add(uri)
        elif (same := _of_same_bytes(file, rows, digest_of)) is not None:
            found.touched.add(uri)
            used.add(same)
        else:
            left[uri] = rows
    there = lambda name: None if name in others else version_at(name)  # noqa: E731
    for uri in sorted(left.keys() - others):
        if (naming := _moved(files[uri], by_version, used, digest_of, there)) is not None:
            used.add(naming)
            if naming.digest:
                found.renamed[uri] = naming.uri
            else:
                found.undecided[uri] = naming
    _find_grown(found, files, left, gone, used, others, beginnings_of)
    for uri, rows in left.items():
        # A version that moved away was replaced by nothing: log files are rotated so.
        is_there = uri not in found.replaced and not _has_moved(found, uri)
        if is_there and rows and (rows[-1] not in used or uri in others):
            found.replaced[uri] = Replacement(files[uri], rows[-1], _hindrance(uri, rows, used))
    used.update(each.earlier for each in found.replaced.values())
    used.update(rows[-1] for uri, rows in left.items() if rows and uri in found.replaced)
    found.passed = [each for each in gone if each not in used]
    return found


def _find_grown(
    found: Fates,
    files: Mapping[str, ManifestFile],
    left: Mapping[str, Sequence[Naming]],
    gone: Sequence[Naming],
    used: set[Naming],
    others: Container[str],
    beginnings_of: BeginningsOf,
) -> None:
    """Add files that begin with a version of another name, which is gone, to those that are replaced.

    Without these, they would be new, or a rebuild would take them for a later version of the file that they replaced.
    A version that is found so may have left its name to another file, which is new by that: so it is asked again.
    """
    begun = Beginnings(files, gone, beginnings_of)

    def is_asked(uri: str, free: Iterable[Naming]) -> bool:
        """Whether a file is longer than one of the free versions, the shortest of which come first."""
        rows, length = left[uri], files[uri].size_bytes or 0
        is_rotated = bool(rows) and rows[-1] in used and uri not in others
        is_new = not rows or is_rotated
        shortest = next((each.size_bytes for each in free if is_new or each.uri != uri), length)
        return shortest < length and not _has_moved(found, uri)

    def asked_now() -> set[str]:
        free = sorted((each for each in gone if each not in used), key=lambda each: each.size_bytes)
        return {uri for uri in left.keys() - asked if is_asked(uri, free)}

    asked: set[str] = set()
    while new := asked_now():
        asked |= new
        begun.read(new)
        for uri in sorted(new):
            version = begun.of_another_name(uri, used, lambda name: name in left and not _has_moved(found, name))
            if version is not None:
                used.add(version)
                found.replaced[uri] = Replacement(files[uri], version, _hindrance(uri, [version], used))


def _has_moved(found: Fates, uri: str) -> bool:
    return uri in found.renamed or uri in found.undecided


def _under_earlier_name(
    etag: str | None, by_version: Mapping[str, Sequence[Naming]], version_at: VersionAt
) -> list[Naming]:
    """The namings of a version that a file had, by the name that it had before; that name has it no more."""
    if etag is None:
        return []
    same = (each for each in by_version.get(version_of(etag), ()) if each.digest)
    return [each for each in same if not is_same_version(version_at(each.uri) or "", each.etag or "")]


def _indexed(namings: Iterable[Naming]) -> tuple[dict[str, list[Naming]], dict[str, list[Naming]]]:
    """The namings by URI, the earliest first, and those that a renamed file may be, by version."""
    by_uri: dict[str, list[Naming]] = {}
    by_version: dict[str, list[Naming]] = {}
    for naming in sorted(namings, key=lambda each: each.named_at or _EARLIEST):
        by_uri.setdefault(naming.uri, []).append(naming)
        if (naming.state == "compacted" and naming.digest) or naming.state in _NOT_DONE:
            by_version.setdefault(version_of(naming.etag or ""), []).append(naming)
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
    same = [each for each in rows if each.etag and is_same_version(each.etag, file.etag or "") and each.digest]
    if not same:
        return False
    return all(digest_of(file, each.digest) not in {"", each.digest} for each in same)


def _has_bytes_of(file: ManifestFile, naming: Naming, digest_of: DigestOf) -> bool:
    may_have = bool(naming.digest) and naming.size_bytes == file.size_bytes
    return may_have and digest_of(file, naming.digest) == naming.digest


def _moved(
    file: ManifestFile,
    by_version: Mapping[str, Sequence[Naming]],
    used: Container[Naming],
    digest_of: DigestOf,
    version_at: VersionAt,
) -> Naming | None:
    """The version of another name that a file is, if that name has it no more."""
    for naming in by_version.get(version_of(file.etag or ""), ()):
        if naming in used or naming.uri == canonical(file.uri):
            continue
        there = version_at(naming.uri)
        is_gone = there is None or not is_same_version(there, naming.etag or "")
        if is_gone and (not naming.digest or _has_bytes_of(file, naming, digest_of)):
            return naming
    return None
