"""Reads input files in ranges, pinned to one version, with read-ahead and with retries of refused reads."""

import time
from collections.abc import Callable, Generator, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from itertools import chain, islice
from threading import Lock
from typing import Protocol, TypeVar

from compactor.core.documents.manifest import FileRange, ManifestFile
from compactor.core.documents.records import FileStatus
from compactor.core.errors import (
    AccessError,
    CredentialsRefused,
    FileError,
    LinkRefused,
    ObjectChanged,
    ObjectNotFound,
    StoreUnavailable,
)
from compactor.core.layout import is_local
from compactor.core.map_ordered import calls_ahead
from compactor.core.ports import ObjectInfo, ObjectStore
from compactor.core.versions import described_version
from compactor.ndjson.codecs import MAX_PIECE_BYTES
from compactor.ndjson.files.content_digest import ContentDigest

# Retries refused reads of input for a short while: only a lasting refusal counts against a file.


PAUSES_SECONDS = (0.2, 0.4, 0.8)
"""The pauses between the attempts of one call."""

MOST_PAUSED_SECONDS = 8.0
"""The maximum total pause per task. After that each refusal is final, so that other files are not delayed."""

T = TypeVar("T")


@dataclass(slots=True)
class PatientReads:
    """The store's read calls for input. A refused call is retried. Safe to share between threads."""

    store: ObjectStore
    _paused_seconds: float = 0.0
    _lock: Lock = field(default_factory=Lock)

    def stat(self, uri: str) -> ObjectInfo | None:
        return self._patiently(lambda: self.store.stat(uri))

    def read_range(self, uri: str, start: int, length: int, *, etag: str | None = None) -> bytes:
        return self._patiently(lambda: self.store.read_range(uri, start, length, etag=etag))

    def _patiently(self, call: Callable[[], T]) -> T:
        for pause_seconds in PAUSES_SECONDS:
            try:
                return _of_this_object(call)
            except LinkRefused:
                raise
            except AccessError:
                if not self._may_pause(pause_seconds):
                    raise
            time.sleep(pause_seconds)
        return _of_this_object(call)

    def _may_pause(self, seconds: float) -> bool:
        with self._lock:
            self._paused_seconds += seconds
            return self._paused_seconds <= MOST_PAUSED_SECONDS


def _of_this_object(call: Callable[[], T]) -> T:
    try:
        return call()
    except CredentialsRefused as exc:  # cannot be the fault of any object
        raise StoreUnavailable(str(exc)) from exc


# Measures whether reads spend their time waiting, as on a disk, or find their data in memory.


_WAITING_SHARE = 0.25
"""The share of waiting in the time of a read that counts. Cached data causes none; a fast disk, half of the time."""


class DiskWaits:
    """Whether the last measured read waited for a disk; false before the first.

    A busy CPU looks like a slow disk: reading ahead then costs a little time.
    """

    def __init__(self) -> None:
        self._has_waited = False

    def has_waited(self) -> bool:
        """Whether to start the next reads early."""
        return self._has_waited

    def measured(self, read: Callable[[], T]) -> T:
        """Call `read`, and note whether it waited. Of concurrent calls, the last one to end counts."""
        began, worked = time.monotonic(), time.thread_time()
        try:
            return read()
        finally:
            took = time.monotonic() - began
            self._has_waited = took - (time.thread_time() - worked) > _WAITING_SHARE * took


RANGE_BYTES = 8 * 1024 * 1024
"""The length of one request to S3. Most files are a single range."""

LOCAL_RANGE_BYTES = MAX_PIECE_BYTES
"""The length of one read from a disk. A longer read would be cut into pieces, which are copies."""

FILES_AHEAD = 8  # hides an S3 round trip of 100 ms with files of 3.5 MB at 300 MB/s; takes up to 64 MiB
LOCAL_FILES_AHEAD = 3  # only while the disk keeps reads waiting; takes up to 16 MiB
RANGES_AHEAD = 3  # within a large file; takes up to 24 MiB


class InputStore(Protocol):
    """The methods of `ObjectStore` that reading needs."""

    def stat(self, uri: str) -> ObjectInfo | None:
        """See `ObjectStore.stat`."""

    def read_range(self, uri: str, start: int, length: int, *, etag: str | None = None) -> bytes:
        """See `ObjectStore.read_range`."""


@dataclass(frozen=True, slots=True)
class Opened:
    """A file pinned to the bytes that will be read: by its version, or, since it may grow, by their digest.

    Attributes:
        size_bytes: Its stored length, or that of the range.
        etag: The version in the manifest.
        first: The first bytes.
        start: The first byte to read.
        digest: The digest of the last read; None on S3, where ETags identify content, and for a range.
        expected: The digest that a range must have; empty for a file that is pinned by its version.
        is_part: Whether some bytes of the file are not read.
    """

    uri: str
    size_bytes: int
    etag: str
    first: bytes
    start: int = 0
    digest: ContentDigest | None = None
    expected: str = ""
    is_part: bool = False


def range_bytes(uri: str) -> int:
    """The length of one read."""
    return LOCAL_RANGE_BYTES if is_local(uri) else RANGE_BYTES


def open_file(store: InputStore, file: ManifestFile, *, any_version: bool) -> Opened:
    """Read the first range of the version in a manifest.

    Args:
        store: Holds the file.
        file: Identified by ETag, else by size, else only by URI.
        any_version: Accept the current version if that one no longer exists; not for a grown file, whose lines would
            differ.

    Raises:
        FileError: `missing`, or `changed`: the object has a different version.
        ObjectChanged: The file was replaced between two requests.
    """
    try:
        if file.range is not None and (ranged := _open_range(store, file, file.range)) is not None:
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
        raise FileError(FileStatus.MISSING, "no such object; expected the file from the manifest") from exc


def _open_named(store: InputStore, uri: str, etag: str) -> Opened | None:
    """Open the version with this ETag, in one request if it is short; None if the object has a different version."""
    try:
        first = store.read_range(uri, 0, range_bytes(uri), etag=etag)
    except ObjectChanged:
        return None
    if len(first) < range_bytes(uri):
        return Opened(uri, len(first), etag, first)
    found = _stat(store, uri)
    return Opened(uri, found.size_bytes, etag, first) if found.etag == etag else None


def _open_range(store: InputStore, file: ManifestFile, part: FileRange) -> Opened | None:
    """Open some bytes of a local file, which may be longer by now; None if it is shorter."""
    found = _stat(store, file.uri)
    if found.size_bytes < part.to_byte:
        return None
    first = store.read_range(file.uri, part.from_byte, min(range_bytes(file.uri), part.size_bytes))
    is_part = bool(part.from_byte) or found.etag != file.etag
    etag, expected = file.etag or "", part.digest_within
    return Opened(file.uri, part.size_bytes, etag, first, part.from_byte, expected=expected, is_part=is_part)


def whole(store: InputStore, info: ObjectInfo) -> Iterator[bytes]:
    """Yield all bytes of a file version; without an ETag, those up to its length, of any version.

    Raises:
        ObjectChanged: The file no longer has this version, or is shorter.
    """
    for start in range(0, info.size_bytes, LOCAL_RANGE_BYTES):
        length = min(LOCAL_RANGE_BYTES, info.size_bytes - start)
        piece = store.read_range(info.uri, start, length, etag=info.etag or None)
        if len(piece) != length:
            raise ObjectChanged(f"{info.uri}: ends before byte {start + length}; expected {info.size_bytes} bytes")
        yield piece


def _open_found(store: InputStore, found: ObjectInfo) -> Opened:
    first = store.read_range(found.uri, 0, range_bytes(found.uri), etag=found.etag) if found.size_bytes else b""
    return Opened(found.uri, found.size_bytes, found.etag, first)


def _stat(store: InputStore, uri: str) -> ObjectInfo:
    found = store.stat(uri)
    if found is None:
        raise ObjectNotFound(f"{uri}: no such object")
    return found


def _check_version(file: ManifestFile, found: ObjectInfo) -> None:
    if file.etag is not None:
        # guard: a file with a different ETag is not read
        if found.etag not in {file.etag, *(file.other_etags or ())}:
            now, listed = (described_version(file.uri, etag) for etag in (found.etag, file.etag))
            raise FileError(FileStatus.CHANGED, f"found {now}, expected {listed}")
    # guard: a file with a different size is not read
    elif file.size_bytes is not None and found.size_bytes != file.size_bytes:
        raise FileError(FileStatus.CHANGED, f"found {found.size_bytes} bytes, expected {file.size_bytes}")


def read_ranges(store: InputStore, opened: Opened, pool: ThreadPoolExecutor) -> Generator[bytes, None, None]:
    """Read all bytes of an opened file, or of its range. Repeatable for a second pass.

    Raises:
        ObjectChanged: The file no longer has the opened version, or, behind the last byte, these were other bytes.
        ObjectNotFound: The file was deleted.
    """
    with closing(_pieces(store, opened, pool)) as pieces:
        if not opened.expected:
            yield from pieces
            return
        digest = ContentDigest(pool)
        yield from digest.passing(pieces)
        # guard: bytes of a file that may grow are those that were planned
        if digest.of_whole(opened.size_bytes) != opened.expected:
            raise ObjectChanged(f"{opened.uri}: bytes from {opened.start} on changed; expected those of the manifest")


def _pieces(store: InputStore, opened: Opened, pool: ThreadPoolExecutor) -> Generator[bytes, None, None]:
    step = range_bytes(opened.uri)
    end = opened.start + opened.size_bytes
    starts = range(opened.start + step, end, step)

    def read(start: int) -> bytes:
        length = min(step, end - start)
        # guard: all ranges of a file are of one version
        data = store.read_range(opened.uri, start, length, etag=None if opened.expected else opened.etag)
        if len(data) != length:
            raise ObjectChanged(f"{opened.uri}: {len(data)} bytes from byte {start}, expected {length}")
        return data

    with closing(calls_ahead(pool, read, starts, depth=RANGES_AHEAD)) as reads:
        # On S3, such requests would be wasted if the first range shows a different kind of file.
        begun = list(islice(reads, 1)) if is_local(opened.uri) else []
        if opened.first:
            yield opened.first
        for reading in chain(begun, reads):
            yield reading.result()


@contextmanager
def reading(store: InputStore, opened: Opened) -> Iterator[Iterator[bytes]]:
    """The bytes as in `read_ranges`, read in threads that end with the block."""
    with ThreadPoolExecutor(RANGES_AHEAD) as pool, closing(read_ranges(store, opened, pool)) as pieces:
        yield pieces
