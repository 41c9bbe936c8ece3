"""Reads input files from the store in ranges, pinned to one version and with read-ahead."""

from collections.abc import Generator, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import dataclass
from itertools import chain, islice
from typing import Protocol

from compactor.core.documents.manifest import FileRange, ManifestFile
from compactor.core.documents.records import FileStatus
from compactor.core.errors import FileError, ObjectChanged, ObjectNotFound
from compactor.core.layout import is_local
from compactor.core.map_ordered import calls_ahead
from compactor.core.ports import ObjectInfo
from compactor.core.versions import described_version
from compactor.ndjson.codecs import MAX_PIECE_BYTES
from compactor.ndjson.files.content_digest import ContentDigest, beginnings

RANGE_BYTES = 8 * 1024 * 1024
"""The length of one request to S3. Most files are a single range."""

LOCAL_RANGE_BYTES = MAX_PIECE_BYTES
"""The length of one read of a disk: a longer one would be cut into pieces, which are copies."""

FILES_AHEAD = 8  # hides an S3 round trip of 100 ms with files of 3.5 MB at 300 MB/s; takes up to 64 MiB
LOCAL_FILES_AHEAD = 3  # only while the disk keeps reads waiting; takes up to 16 MiB
RANGES_AHEAD = 3  # within a large file; takes up to 24 MiB


class InputStore(Protocol):
    """What reading needs of `ObjectStore`."""

    def stat(self, uri: str) -> ObjectInfo | None:
        """Describe an object."""

    def read_range(self, uri: str, start: int, length: int, *, etag: str | None = None) -> bytes:
        """Read a part of an object."""


@dataclass(frozen=True, slots=True)
class Opened:
    """A file pinned to the version that will be read.

    Attributes:
        size_bytes: Its length as stored; of a file that grew that of the range.
        etag: The version that was asked for.
        first: The first bytes that are read.
        start: The byte from which on it is read.
        etag_now: The version that is read, if it is a later one that begins with all bytes of the one asked for.
        digest: Of what was last read of it; None on S3, whose ETags tell contents apart.
        read: None; see `OpenedRange`.
    """

    uri: str
    size_bytes: int
    etag: str
    first: bytes
    start: int = 0
    etag_now: str = ""
    digest: ContentDigest | None = None
    read: None = None

    @property
    def is_part(self) -> bool:
        """Whether the file has other bytes beside those that are read."""
        return bool(self.start) or bool(self.etag_now and self.etag_now != self.etag)

    def pieces(self, store: InputStore, pool: ThreadPoolExecutor) -> Generator[bytes, None, None]:
        """Read all of its bytes; see `read_ranges`."""
        return read_ranges(store, self, pool)


def range_bytes(uri: str) -> int:
    """The length of one read of a file."""
    return LOCAL_RANGE_BYTES if is_local(uri) else RANGE_BYTES


def open_file(store: InputStore, file: ManifestFile, *, any_version: bool, again: bool = False) -> Opened:
    """Read the first range of the version that a manifest names.

    Args:
        store: Holds the file.
        file: The manifest identifies the version by ETag, else by size, else only by URI.
        any_version: Take the current version if that one is gone. Not of a file that grew: other lines may be there.
        again: The lines were read before: take a later version that begins with all bytes of that one, too.

    Raises:
        FileError: `missing`, or `changed`: the object has another version.
        ObjectChanged: The file was replaced between two requests.
    """
    try:
        if file.range is not None and (ranged := _open_range(store, file, file.range, again=again)) is not None:
            return ranged
        if file.etag is not None and not file.grown:
            opened = _open_named(store, file.uri, file.etag)
            if opened is not None:
                return opened
        found = _stat(store, file.uri)
        if not any_version or file.grown:
            _check_version(file, found)
        return _open_found(store, found)
    except ObjectNotFound as exc:
        raise FileError(
            FileStatus.MISSING, "there is no such object; expected the file that the manifest names"
        ) from exc


def _open_named(store: InputStore, uri: str, etag: str) -> Opened | None:
    """The version with this ETag, with one request if the file is short; None if the object has another version."""
    try:
        first = store.read_range(uri, 0, range_bytes(uri), etag=etag)
    except ObjectChanged:
        return None
    if len(first) < range_bytes(uri):
        return Opened(uri, len(first), etag, first)
    found = _stat(store, uri)
    return Opened(uri, found.size_bytes, etag, first) if found.etag == etag else None


def _open_range(store: InputStore, file: ManifestFile, part: FileRange, *, again: bool) -> Opened | None:
    """The lines of a file that grew; None if it does not begin with all bytes up to their end."""
    found = _stat(store, file.uri)
    is_named = found.etag == (file.etag or "")
    end = (part.to_byte, part.digest)
    if not is_named and not (again and end in beginnings(whole(store, found), {end[0]: {end[1]}})):
        return None
    first = store.read_range(file.uri, part.from_byte, min(range_bytes(file.uri), part.size_bytes), etag=found.etag)
    return Opened(file.uri, part.size_bytes, file.etag or "", first, part.from_byte, found.etag)


def whole(store: InputStore, info: ObjectInfo) -> Iterator[bytes]:
    """All bytes of a version of a file.

    Raises:
        ObjectChanged: It has another version by now.
    """
    for start in range(0, info.size_bytes, LOCAL_RANGE_BYTES):
        piece = store.read_range(info.uri, start, LOCAL_RANGE_BYTES, etag=info.etag)
        if not piece:
            raise ObjectChanged(f"{info.uri}: ends before byte {start}; expected {info.size_bytes} bytes")
        yield piece


def _open_found(store: InputStore, found: ObjectInfo) -> Opened:
    first = store.read_range(found.uri, 0, range_bytes(found.uri), etag=found.etag) if found.size_bytes else b""
    return Opened(found.uri, found.size_bytes, found.etag, first)


def _stat(store: InputStore, uri: str) -> ObjectInfo:
    found = store.stat(uri)
    if found is None:
        raise ObjectNotFound(f"{uri}: there is no such object")
    return found


def _check_version(file: ManifestFile, found: ObjectInfo) -> None:
    if file.etag is not None:
        if found.etag != file.etag:
            now, listed = (described_version(file.uri, etag) for etag in (found.etag, file.etag))
            raise FileError(FileStatus.CHANGED, f"found {now}, expected {listed}")
    elif file.size_bytes is not None and found.size_bytes != file.size_bytes:
        raise FileError(FileStatus.CHANGED, f"found {found.size_bytes} bytes, expected {file.size_bytes}")


def read_ranges(store: InputStore, opened: Opened, pool: ThreadPoolExecutor) -> Generator[bytes, None, None]:
    """Read all bytes of an opened file, or of its range. May be called again for a second pass.

    Raises:
        ObjectChanged: The file is no longer the version that was opened.
        ObjectNotFound: The file is gone.
    """
    step = range_bytes(opened.uri)
    end = opened.start + opened.size_bytes
    starts = range(opened.start + step, end, step)

    def read(start: int) -> bytes:
        length = min(step, end - start)
        data = store.read_range(opened.uri, start, length, etag=opened.etag_now or opened.etag)
        if len(data) != length:
            raise ObjectChanged(f"{opened.uri}: {len(data)} bytes from byte {start}, expected {length}")
        return data

    with closing(calls_ahead(pool, read, starts, depth=RANGES_AHEAD)) as reads:
        # On S3, that would be requests for nothing where the first range shows a file to be of another kind.
        begun = list(islice(reads, 1)) if is_local(opened.uri) else []
        if opened.first:
            yield opened.first
        for reading in chain(begun, reads):
            yield reading.result()
