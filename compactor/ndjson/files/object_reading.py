"""Reads input files from the store in ranges, pinned to one version and with read-ahead."""

from collections.abc import Generator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import dataclass
from itertools import chain, islice
from typing import Protocol

from compactor.core.documents.manifest import ManifestFile
from compactor.core.documents.records import FileStatus
from compactor.core.errors import FileError, ObjectChanged, ObjectNotFound
from compactor.core.layout import is_local
from compactor.core.map_ordered import calls_ahead
from compactor.core.ports import ObjectInfo
from compactor.core.versions import described_version, is_same_version
from compactor.ndjson.codecs import MAX_PIECE_BYTES
from compactor.ndjson.files.content_digest import ContentDigest

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
        size_bytes: Its length as stored.
        etag: The version.
        first: The bytes of its first range.
        digest: Of what was last read of it; None on S3, whose ETags tell contents apart.
        read: None; see `OpenedRange`.
    """

    uri: str
    size_bytes: int
    etag: str
    first: bytes
    digest: ContentDigest | None = None
    read: None = None

    def pieces(self, store: InputStore, pool: ThreadPoolExecutor) -> Generator[bytes, None, None]:
        """Read all of its bytes; see `read_ranges`."""
        return read_ranges(store, self, pool)


def range_bytes(uri: str) -> int:
    """The length of one read of a file."""
    return LOCAL_RANGE_BYTES if is_local(uri) else RANGE_BYTES


def open_file(store: InputStore, file: ManifestFile, *, any_version: bool) -> Opened:
    """Read the first range of the version that a manifest names.

    Args:
        store: Holds the file.
        file: The manifest identifies the version by ETag, else by size, else only by URI.
        any_version: Take the current version if that one is gone.

    Raises:
        FileError: `missing`, or `changed`: the object has another version.
        ObjectChanged: The file was replaced between two requests.
    """
    try:
        if file.etag is not None:
            opened = _open_named(store, file.uri, file.etag)
            if opened is not None:
                return opened
        found = _stat(store, file.uri)
        if not any_version:
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
    return Opened(uri, found.size_bytes, etag, first) if is_same_version(found.etag, etag) else None


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
        if not is_same_version(found.etag, file.etag):
            now, listed = (described_version(file.uri, etag) for etag in (found.etag, file.etag))
            raise FileError(FileStatus.CHANGED, f"found {now}, expected {listed}")
    elif file.size_bytes is not None and found.size_bytes != file.size_bytes:
        raise FileError(FileStatus.CHANGED, f"found {found.size_bytes} bytes, expected {file.size_bytes}")


def read_ranges(store: InputStore, opened: Opened, pool: ThreadPoolExecutor) -> Generator[bytes, None, None]:
    """Read all bytes of an opened file. May be called again for a second pass.

    Raises:
        ObjectChanged: The file is no longer the version that was opened.
        ObjectNotFound: The file is gone.
    """
    step = range_bytes(opened.uri)
    starts = range(step, opened.size_bytes, step)

    def read(start: int) -> bytes:
        length = min(step, opened.size_bytes - start)
        data = store.read_range(opened.uri, start, length, etag=opened.etag)
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
