"""Caches in a SQLite file the versions of local files when last seen. The cache may be lost."""

import fcntl
import hashlib
import os
import sqlite3
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass, field, replace
from itertools import chain
from pathlib import Path
from typing import Any

from compactor.adapters.local.durable import make_folders
from compactor.core.errors import AccessError, ObjectChanged, TryAgainError
from compactor.core.layout import Layout, ManifestKey, canonical, is_s3, is_text
from compactor.core.ports import ObjectInfo, ObjectStore
from compactor.core.versions import AskedBeginnings, Beginning
from compactor.ndjson.codecs import SNIFF_BYTES, decode, sniff
from compactor.ndjson.files.content_digest import ContentDigest, beginnings, digests_up_to
from compactor.ndjson.files.object_reading import whole
from compactor.sources.file_search import Naming
from compactor.sources.folders.history import Known, Shorter
from compactor.sources.folders.known_files import Version, WholeLines
from compactor.sources.folders.matching import uncompressed_name

_VARIABLE = "XDG_CACHE_HOME"


def seen_file(layout: Layout, environment: Mapping[str, str] = os.environ) -> str:
    """The SQLite file for local files: next to a local state, or in the user's cache folder [XDG Base Directory].

    Each state has its own file there. Without it the next call rereads records, with the same result, but does not
    notice a file that was rewritten with the same length and its time reset.

    Returns:
        Its path; empty if the user has no cache folder.
    """
    if not is_s3(layout.state):
        return layout.seen_file
    named = hashlib.blake2b(canonical(layout.state).encode(errors="surrogatepass"), digest_size=16).hexdigest()
    folder = _cache_folder(environment)
    return "" if folder is None else str(folder / "compactor" / f"{named}.sqlite")


def _cache_folder(environment: Mapping[str, str]) -> Path | None:
    given, home = (Path(environment.get(name, "")) for name in (_VARIABLE, "HOME"))
    if given.is_absolute():  # a relative one is to be ignored
        return given
    return home / ".cache" if home.is_absolute() else None


_OF_NAME = "SELECT date, id FROM named JOIN manifests ON number = manifest WHERE uri = ?"
_OF_VERSION = "SELECT date, id FROM named JOIN manifests ON number = manifest WHERE version = ?"
_SHORTER = "SELECT uri, etag, date, id FROM named JOIN manifests ON number = manifest WHERE left > 0 AND left <= ?"


@dataclass(frozen=True, slots=True)
class LocalSummarisedFiles:
    """A `compactor.sources.folders.history.SummarisedFiles`.

    Attributes:
        path: The SQLite file, the same as for `LocalSeenFiles`.
    """

    path: str

    def known(self) -> Known | None:
        if not Path(self.path).exists():
            return Known(0, "")  # a dry run creates no file
        with suppress(sqlite3.Error, OSError), seen_rows(self.path) as rows:
            found = rows.execute("SELECT place, fingerprint FROM reached").fetchone()
            return Known(0, "") if found is None else Known(*found)
        return None

    def forget(self) -> None:
        with suppress(sqlite3.Error, OSError), seen_rows(self.path) as rows:
            for table in ("named", "manifests", "reached"):
                rows.execute(f"DELETE FROM {table}")  # noqa: S608 - names of this module

    def add(self, namings: Sequence[Naming]) -> bool:
        with suppress(sqlite3.Error, OSError), seen_rows(self.path) as rows:
            for key in dict.fromkeys((each.date, each.manifest_id) for each in namings):
                rows.execute("INSERT OR IGNORE INTO manifests (date, id) VALUES (?, ?)", key)
            rows.executemany(
                "INSERT OR REPLACE INTO named SELECT :uri, :etag, number, :version, :size, CASE WHEN EXISTS "
                "(SELECT 1 FROM passed WHERE uri = :uri AND etag = :etag) THEN 0 ELSE :size END "
                "FROM manifests WHERE date = :date AND id = :id",
                chain.from_iterable(map(_rows, namings)),
            )
            return True
        return False

    def reach(self, known: Known) -> None:
        with suppress(sqlite3.Error, OSError), seen_rows(self.path) as rows:
            before = rows.execute("SELECT place FROM reached").fetchone() or (0,)
            if before[0] == known.place - 1:
                rows.execute("DELETE FROM reached")
                rows.execute("INSERT INTO reached VALUES (?, ?)", known)

    def naming(self, uris: Iterable[str], versions: Iterable[str]) -> set[ManifestKey] | None:
        if not Path(self.path).exists():
            return set()
        with suppress(sqlite3.Error, OSError), seen_rows(self.path) as rows:
            found = [rows.execute(_OF_NAME, (uri,)).fetchall() for uri in map(_kept, uris)]
            found += [rows.execute(_OF_VERSION, (_number(version),)).fetchall() for version in versions]
            return {ManifestKey(*key) for keys in found for key in keys}
        return None

    def shorter(self, size_bytes: int) -> Iterator[Shorter]:
        if not Path(self.path).exists():
            return
        try:
            with seen_rows(self.path) as rows:
                for uri, etag, date, manifest_id in rows.execute(_SHORTER, (size_bytes,)):
                    yield Shorter(uri, etag, ManifestKey(date, manifest_id))
        except (sqlite3.Error, OSError) as exc:
            raise LookupError(self.path) from exc


def _rows(naming: Naming) -> Iterator[dict[str, object]]:
    """Yield a file's row; for a range also one under the name of the continued version."""
    has_rows = naming.state == "compacted" and naming.digest
    etag = naming.etag or ""
    row = {
        "uri": _kept(naming.uri),
        "etag": etag,
        "version": _number(etag),
        "size": naming.size_bytes if has_rows else 0,
        "date": naming.date,
        "id": naming.manifest_id,
    }
    yield row
    if naming.range is not None and naming.range.continues != naming.uri:
        yield {**row, "uri": _kept(naming.range.continues), "size": 0}


def _kept(uri: str) -> str:
    """A name as SQLite stores it. Local names that are not UTF-8 are not valid text in Python."""
    return uri if is_text(uri) else uri.encode(errors="surrogatepass").decode("latin-1")


def _number(version: str) -> int:
    """A version's hash for the index; two versions may share it."""
    return int.from_bytes(hashlib.blake2b(version.encode(), digest_size=8).digest(), "big", signed=True)


_NAMES = """
    SELECT uri, etag FROM seen WHERE etag = ?
    UNION SELECT uri, etag FROM digests JOIN seen USING (uri, etag) WHERE digest = ?
"""
_WAIT_SECONDS = 10.0
_TAIL_BYTES = 1024 * 1024  # read at once when searching the end of the last complete line
_LOOK_BYTES = 256 * 1024  # compared at the end of a file that is being written
_TABLES = (
    "CREATE TABLE IF NOT EXISTS seen (uri TEXT PRIMARY KEY, etag TEXT, stamp TEXT) WITHOUT ROWID",
    "CREATE TABLE IF NOT EXISTS digests (uri TEXT PRIMARY KEY, etag TEXT, stamp TEXT, digest TEXT) WITHOUT ROWID",
    "CREATE INDEX IF NOT EXISTS digests_same ON digests (digest)",
    "CREATE TABLE IF NOT EXISTS passed (uri TEXT, etag TEXT, PRIMARY KEY (uri, etag)) WITHOUT ROWID",
    "CREATE TABLE IF NOT EXISTS manifests (number INTEGER PRIMARY KEY, date TEXT, id TEXT, UNIQUE (date, id))",
    """CREATE TABLE IF NOT EXISTS named (
        uri TEXT, etag TEXT, manifest INTEGER, version INTEGER, size INTEGER, left INTEGER,
        PRIMARY KEY (uri, etag, manifest)
    ) WITHOUT ROWID""",
    "CREATE INDEX IF NOT EXISTS named_versions ON named (version)",
    "CREATE INDEX IF NOT EXISTS named_left ON named (left) WHERE left > 0",
    "CREATE TABLE IF NOT EXISTS reached (place INTEGER, fingerprint TEXT)",
)


@dataclass
class LocalSeenFiles:
    """A `compactor.sources.folders.known_files.SeenFiles`.

    Attributes:
        path: The SQLite file; empty to remember nothing.
        has_lines: Whether a file that begins with some bytes holds lines.
    """

    store: ObjectStore
    path: str
    has_lines: Callable[[bytes], bool] = lambda _: False
    _fresh: dict[str, tuple[str, str, str, str]] = field(default_factory=dict, init=False)

    def rewritten(self, files: Sequence[ObjectInfo]) -> set[str]:
        there = {canonical(info.uri): info for info in files if info.stamp}
        found = ((there[uri], etag, stamp) for uri, etag, stamp in self._seen(there))
        return {canonical(info.uri) for info, etag, stamp in found if etag == info.etag and stamp != info.stamp}

    def remembered(self, uris: Iterable[str]) -> dict[str, str]:
        return {uri: etag for uri, etag, _ in self._seen(uris)}

    def names(self, etag: str, digest: str) -> dict[str, str]:
        return dict(self._found(_NAMES, [(etag, digest)]))

    def digest(self, file: ObjectInfo) -> str:
        if is_s3(file.uri):
            return ""
        found = self._noted(file)
        return self._note(file, self._read(file)) if found is None else found

    def content(self, file: ObjectInfo, most_bytes: int) -> Beginning | None:
        codec = self._codec(file)
        if codec == "none":
            return None
        named = replace(file, uri=f"{file.uri}#content")  # a row of its own in the cache
        found = self._noted(named)
        if found is None:
            length, digest = 0, ContentDigest()
            for piece in digest.passing(decode(codec, whole(self.store, file))):
                length += len(piece)
                if length > most_bytes:
                    return length, ""
            found = self._note(named, f"{length} {digest.of_whole(length)}")
        length_text, _, of_all = found.partition(" ")
        return int(length_text), of_all

    def beginnings(self, file: ObjectInfo, asked: AskedBeginnings) -> set[Beginning]:
        if is_s3(file.uri):
            return set()
        return beginnings(decode(self._codec(file), whole(self.store, file)), asked)

    def _codec(self, file: ObjectInfo) -> str:
        """The codec of a file whose name says that it is compressed; `none` for any other one."""
        if uncompressed_name(file.uri) == file.uri:
            return "none"
        return sniff(self.store.read_range(file.uri, 0, SNIFF_BYTES, etag=file.etag))

    def _noted(self, file: ObjectInfo) -> str | None:
        """What was noted of this version of a file."""
        known = self._fresh.get(file.uri) or self._known(file) if file.etag else None
        return known[-1] if known is not None and known[1:3] == (file.etag, file.stamp) else None

    def _note(self, file: ObjectInfo, value: str) -> str:
        if file.etag:
            self._fresh[file.uri] = (file.uri, file.etag, file.stamp, value)
        return value

    @contextmanager
    def alone(self) -> Iterator[bool]:
        if not self.path:
            yield True
            return
        folder, handle, is_alone = str(Path(self.path).parent), None, False
        with suppress(OSError):  # this disk has no such folder, or no locks
            make_folders(folder)
            handle = os.open(folder, os.O_RDONLY | os.O_CLOEXEC)
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            is_alone = True
        try:
            yield is_alone
        finally:
            if handle is not None:
                os.close(handle)

    def whole_lines(self, file: ObjectInfo, start: int, *, with_rest: bool = False) -> WholeLines | None:
        before = self._bytes(file, start - 1, 2) if start else b"\n"
        if b"\n" not in before:  # guard: a line that continues is not split
            return None
        end, at = file.size_bytes, -1
        while at < 0 and end > start:
            end, first = max(start, end - _TAIL_BYTES), end
            at = self._bytes(file, end, first - end).rfind(b"\n")
        end += at + 1
        if with_rest and self.has_lines(self._bytes(file, end, _LOOK_BYTES)):
            end = file.size_bytes
        pieces = whole(self.store, file)
        digests = digests_up_to(pieces if file.etag else _without_holes(pieces), start, end)
        return WholeLines(end, *digests, ends_line=not before.startswith(b"\n"))

    def _bytes(self, file: ObjectInfo, start: int, length: int) -> bytes:
        return self.store.read_range(file.uri, start, length, etag=file.etag or None)

    def last_line_end(self, file: ObjectInfo, upto: int | None = None) -> Beginning | None:
        now = replace(file, etag="")
        with suppress(TryAgainError, AccessError):
            head = self._bytes(now, 0, SNIFF_BYTES)
            if not self.has_lines(head):
                return None
            end = file.size_bytes if upto is None else upto
            start = max(end - _LOOK_BYTES, 0)
            tail = head[:end] if end <= len(head) else self._bytes(now, start, end - start)
            lines = tail[: tail.rfind(b"\n") + 1]
            return (start + len(lines), hashlib.blake2b(lines, digest_size=16).hexdigest()) if lines else None
        return None

    def torn_line(self, file: ObjectInfo) -> Beginning | None:
        with suppress(TryAgainError, AccessError):
            if self._bytes(file, file.size_bytes - 1, 1) != b"\n":
                end = self.last_line_end(file)
                start = end[0] if end is not None else 0
                rest = self._bytes(file, start, _LOOK_BYTES)
                is_first = file.size_bytes <= _LOOK_BYTES and rest.startswith(b"{") and b"\n" not in rest
                if not self.has_lines(rest) and (end is not None or is_first):
                    return end or (0, "")
        return None

    def passed(self, versions: Iterable[Version]) -> set[Version]:
        known = (each for each in versions if is_text(each[0]))
        return set(self._found("SELECT uri, etag FROM passed WHERE uri = ? AND etag = ?", known))

    def pass_over(self, versions: Iterable[Version]) -> None:
        passed = [each for each in versions if is_text(each[0])]
        if self.path and passed:
            with suppress(sqlite3.Error, OSError), seen_rows(self.path) as rows:
                rows.executemany("INSERT OR REPLACE INTO passed VALUES (?, ?)", passed)
                rows.executemany("UPDATE named SET left = 0 WHERE uri = ? AND etag = ?", passed)

    def remember(self, files: Sequence[ObjectInfo], versions: Sequence[Version] = ()) -> None:
        named = [(canonical(info.uri), info) for info in files if is_text(info.uri)]
        seen = [(uri, info.etag, info.stamp) for uri, info in named if info.stamp]
        there = [*((uri, info.etag) for uri, info in named), *(each for each in versions if is_text(each[0]))]
        if not self.path or not (seen or versions or self._fresh):
            return
        with suppress(sqlite3.Error, OSError), seen_rows(self.path) as rows:
            rows.executemany("INSERT OR REPLACE INTO seen VALUES (?, ?, ?)", seen)
            if rows.execute("SELECT 1 FROM passed LIMIT 1").fetchone() is not None:
                rows.executemany("UPDATE named SET left = size WHERE uri = ? AND etag = ? AND left = 0", there)
                rows.executemany("DELETE FROM passed WHERE uri = ? AND etag = ?", there)
            rows.executemany("INSERT OR REPLACE INTO digests VALUES (?, ?, ?, ?)", list(self._fresh.values()))

    def _seen(self, uris: Iterable[str]) -> list[tuple[str, str, str]]:
        return self._found("SELECT uri, etag, stamp FROM seen WHERE uri = ?", ((uri,) for uri in filter(is_text, uris)))

    def _known(self, file: ObjectInfo) -> tuple[str, str, str, str] | None:
        return next(iter(self._found("SELECT * FROM digests WHERE uri = ?", [(file.uri,)])), None)

    def _found(self, query: str, asked: Iterable[tuple[str, ...]]) -> list[Any]:
        """The rows for each of some values, as far as they can be read. A missing file is not created."""
        found = list[Any]()
        if self.path and Path(self.path).exists():
            with suppress(sqlite3.Error, OSError), seen_rows(self.path) as rows:
                for values in asked:
                    found += rows.execute(query, values)
        return found

    def _read(self, file: ObjectInfo) -> str:
        digest = ContentDigest()
        for _ in digest.passing(whole(self.store, file)):
            pass
        return digest.of_whole(file.size_bytes)


def _without_holes(pieces: Iterable[bytes]) -> Iterator[bytes]:
    """Refuse a file that is not written from start to end. A log that was copied and truncated may begin with NULs."""
    has_begun = False
    for piece in pieces:
        text = piece if has_begun else piece.lstrip(b"\0")
        # guard: a file with holes is not read while it is written
        if b"\0" in text:
            raise ObjectChanged("NUL bytes between lines; expected none while it is written")
        has_begun = has_begun or bool(text)
        yield piece


@contextmanager
def seen_rows(path: str) -> Iterator[sqlite3.Connection]:
    """A connection with a transaction. Callers ignore its errors: without the cache, files are reread."""
    make_folders(str(Path(path).parent))
    with closing(sqlite3.connect(path, timeout=_WAIT_SECONDS, isolation_level=None)) as connection:
        connection.execute("BEGIN IMMEDIATE")
        for table in _TABLES:
            connection.execute(table)
        yield connection
        connection.execute("COMMIT")
