"""Goes through files of a manifest: opens the versions that are named, and reports what cannot be read whole."""

from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack, closing
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Generic, Literal, Self, TypeVar

from compactor.core.errors import AccessError, FileError, ObjectChanged, ObjectNotFound
from compactor.core.manifest import ManifestFile
from compactor.core.map_ordered import calls_ahead
from compactor.core.ports import ObjectStore
from compactor.core.records import FileReport, FileStatus
from compactor.ndjson.codecs import SNIFF_BYTES, decode, sniff
from compactor.ndjson.lines import LineCounts, Reject
from compactor.ndjson.object_reading import FILES_AHEAD, RANGE_BYTES, Opened, open_file, read_ranges
from compactor.ndjson.rejects import RejectSpool, RejectsWriter

OnChangedFile = Literal["skip", "read"]
"""What to do with a file that is not the version its manifest names: report it, or read what is there now."""

MAX_STARTS = 3
"""How often a file that is replaced while it is read is begun."""

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class OpenedFile:
    """A file that is about to be read.

    Attributes:
        index: In the manifest.
        uri: As the manifest names it.
        codec: What it is encoded with: one of `compactor.ndjson.codecs.CODECS`.
    """

    index: int
    uri: str
    opened: Opened
    codec: str


@dataclass(frozen=True, slots=True)
class WalkedFile(Generic[T]):
    """What became of one file.

    Attributes:
        index: In the manifest.
        report: Its audit.
        found: What the reader made of it; None if it was set aside.
    """

    index: int
    report: FileReport
    found: T | None


ReadFile = Callable[[OpenedFile, Callable[[Reject], None]], tuple[LineCounts, T]]
"""Reads one file to its end, with a place for its rejects. May raise `FileError` and what stores raise."""


class FileWalk:
    """Everything that the files of one task share. To be used as a context.

    Args:
        store: Where the files are.
        manifest_id: The manifest that names them.
        on_changed_file: What to do with another version than the manifest names.
        counted_bytes: How finely `stored_bytes_read` is counted.

    Attributes:
        scratch: A folder on the local disk for as long as the context is open.
        stored_bytes_read: How much of the files was read so far, as stored.
    """

    scratch: Path

    def __init__(
        self,
        store: ObjectStore,
        manifest_id: str,
        on_changed_file: OnChangedFile,
        *,
        counted_bytes: int = RANGE_BYTES,
    ) -> None:
        self._store = store
        self._manifest_id = manifest_id
        self._any_version = on_changed_file == "read"
        self._stack = ExitStack()
        self._counted_bytes = counted_bytes
        self.stored_bytes_read = 0

    def __enter__(self) -> Self:
        self.scratch = Path(self._stack.enter_context(TemporaryDirectory(prefix="compactor-")))
        self._pool = self._stack.enter_context(ThreadPoolExecutor(FILES_AHEAD, thread_name_prefix="read-ahead"))
        return self

    def __exit__(self, *exception: object) -> None:
        self._stack.close()

    def files(
        self, files: Sequence[tuple[int, ManifestFile]], rejects: RejectsWriter, read: ReadFile[T]
    ) -> Iterator[WalkedFile[T]]:
        """Go through files, with the next ones being opened meanwhile.

        Args:
            files: Index in the manifest, and file.
            rejects: Gets the rejects of files that are read to their end.
            read: What to do with each.

        Raises:
            StoreUnavailable: Passing trouble of the store.
            AccessError: The store refused access in the midst of a file.
        """
        with closing(calls_ahead(self._pool, self._open, [file for _, file in files], depth=FILES_AHEAD)) as openings:
            for (index, file), opening in zip(files, openings, strict=True):
                yield self._walk(index, file, opening, rejects, read)

    def decoded(self, file: OpenedFile) -> Generator[bytes, None, None]:
        """The decoded bytes of a file. Can be called again for a second pass."""
        with closing(read_ranges(self._store, file.opened, self._pool)) as stored:
            yield from decode(file.codec, self._counted(stored))

    def _counted(self, stored: Iterable[bytes]) -> Iterator[bytes]:
        for piece in stored:
            for at in range(0, len(piece), self._counted_bytes):
                part = piece[at : at + self._counted_bytes]
                self.stored_bytes_read += len(part)
                yield part

    def _open(self, file: ManifestFile) -> Opened:
        try:
            return open_file(self._store, file, any_version=self._any_version)
        except AccessError as exc:
            # One object may have an owner or a key of its own; whether all are closed is for the caller to tell.
            raise FileError(FileStatus.FORBIDDEN, str(exc)) from exc

    def _walk(
        self, index: int, file: ManifestFile, opening: Future[Opened], rejects: RejectsWriter, read: ReadFile[T]
    ) -> WalkedFile[T]:
        change = ""
        for start in range(MAX_STARTS if self._any_version else 1):
            try:
                opened = self._open(file) if start else opening.result()
                return self._read(index, file, opened, rejects, read)
            except ObjectChanged as exc:
                change = f"replaced while it was read: {exc}"
            except ObjectNotFound as exc:
                return _set_aside(index, file, FileError(FileStatus.MISSING, f"deleted while it was read: {exc}"))
            except FileError as exc:
                return _set_aside(index, file, exc)
        return _set_aside(index, file, FileError(FileStatus.CHANGED, change))

    def _read(
        self, index: int, file: ManifestFile, opened: Opened, rejects: RejectsWriter, read: ReadFile[T]
    ) -> WalkedFile[T]:
        codec = sniff(opened.first[:SNIFF_BYTES])
        spool = RejectSpool(self._manifest_id, file.uri)
        try:
            counts, found = read(OpenedFile(index, file.uri, opened, codec), spool.add)
            spool.move_to(rejects)
        except FileError as exc:
            return _set_aside(index, file, exc, size_bytes=opened.size_bytes, etag=opened.etag, codec=codec)
        finally:
            spool.close()
        return WalkedFile(index, _report(file, opened, codec, counts), found)


def _report(file: ManifestFile, opened: Opened, codec: str, counts: LineCounts) -> FileReport:
    return FileReport(
        uri=file.uri,
        status=FileStatus.COMPACTED,
        size_bytes=opened.size_bytes,
        etag=opened.etag,
        codec=codec,
        decoded_bytes=counts.decoded_bytes,
        lines=counts.lines,
        blank_lines=counts.blank_lines,
        records=counts.records,
        rejected_lines=counts.rejected_lines,
        rejects=counts.rejects,
        reject_rows=counts.reject_rows,
    )


def _set_aside(
    index: int, file: ManifestFile, error: FileError, *, size_bytes: int = 0, etag: str = "", codec: str = "none"
) -> WalkedFile[T]:
    """The outcome of a file that could not be read to its end."""
    report = FileReport(
        uri=file.uri,
        status=FileStatus(error.status),
        detail=error.message,
        size_bytes=size_bytes,
        etag=etag,
        codec=codec,
    )
    return WalkedFile(index, report, None)
