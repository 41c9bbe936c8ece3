"""Reads the files of a task: opens the versions in the manifest, and reports files that cannot be read completely."""

from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack, closing
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import Any, Generic, Literal, Self, TypeVar

from compactor.core.documents.manifest import ManifestFile
from compactor.core.documents.records import FileReport, FileStatus
from compactor.core.errors import AccessError, FileError, LinkRefused, ObjectChanged, ObjectNotFound
from compactor.core.layout import is_local, is_s3
from compactor.core.logs.names import LogGap, is_log
from compactor.core.map_ordered import calls_ahead
from compactor.core.ports import ObjectStore
from compactor.ndjson.codecs import SNIFF_BYTES, decode, sniff
from compactor.ndjson.files.content_digest import ContentDigest
from compactor.ndjson.files.line_fields import PathValues
from compactor.ndjson.files.object_reading import (
    FILES_AHEAD,
    LOCAL_FILES_AHEAD,
    RANGE_BYTES,
    DiskWaits,
    Opened,
    PatientReads,
    open_file,
    read_ranges,
)
from compactor.ndjson.files.rejects import RejectSpool, RejectsWriter
from compactor.ndjson.files.scratch import Scratch, scratch_folder
from compactor.ndjson.grok import MatchingTime
from compactor.ndjson.kinds.formats import Formats
from compactor.ndjson.lines import Limits, LineCounts, Reject, Splitter, in_whole_file

OnChangedFile = Literal["skip", "read"]
"""What to do with a file that no longer has its manifest's version: report and skip it, or read it as it is."""

MAX_STARTS = 3
"""How often a file is restarted if it keeps being replaced."""

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class OpenedFile:
    """A file that is about to be read.

    Attributes:
        uri: The file, as spelled in the manifest.
        source_uri: The file that its lines come from: itself, unless it holds redriven lines.
        codec: One of `compactor.ndjson.codecs.CODECS`.
        path_values: The fields from its path, added to each line; None if there are none.
    """

    index: int
    uri: str
    source_uri: str
    opened: Opened
    codec: str
    path_values: PathValues | None = None


@dataclass(frozen=True, slots=True)
class WalkedFile(Generic[T]):
    """The outcome of one file.

    Attributes:
        found: The reader's result; None if the file is quarantined.
    """

    index: int
    report: FileReport
    found: T | None


ReadFile = Callable[[OpenedFile, Callable[[Reject], None]], tuple[LineCounts, T]]
"""Reads one file to its end and passes its rejects to the given function. May raise `FileError` and store errors."""


class FileWalk:
    """Reads the files of one task. A context manager.

    Args:
        limits: How many rejects, scratch bytes and decoded bytes are allowed.
        counted_bytes: The increment of `stored_bytes_read`.

    Attributes:
        folder: A local folder for scratch files, which exists while the context is open.
        stored_bytes_read: Stored bytes of the files read so far.
    """

    folder: Path

    def __init__(
        self,
        store: ObjectStore,
        manifest_id: str,
        on_changed_file: OnChangedFile,
        limits: Limits,
        formats: Formats,
        *,
        counted_bytes: int = RANGE_BYTES,
    ) -> None:
        self._store = store
        self._input = PatientReads(store)
        self._manifest_id = manifest_id
        self._any_version = on_changed_file == "read"
        self._limits = limits
        self._formats = replace(formats, matching=MatchingTime())
        self.scratch = Scratch(limits.max_scratch_bytes)
        self._stack = ExitStack()
        self._counted_bytes = counted_bytes
        self._disk = DiskWaits()
        self.stored_bytes_read = 0
        self._decoded_bytes = 0

    def __enter__(self) -> Self:
        self.folder = self._stack.enter_context(scratch_folder())
        self._rejects = self._stack.enter_context(RejectsWriter(self.folder / "rejects.parquet"))
        self._pool = self._stack.enter_context(ThreadPoolExecutor(FILES_AHEAD, thread_name_prefix="read-ahead"))
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._stack.__exit__(kind, error, traceback)

    def files(self, files: Sequence[tuple[int, ManifestFile]], read: ReadFile[T]) -> Iterator[WalkedFile[T]]:
        """Read files one after the other, and open the next ones meanwhile, unless the disk responds at once.

        Keeps the rejects of files that were read completely, and samples of the rejects of files with too many. Files
        that are not begun because earlier ones cost too much are deferred; the first one is always read.

        Raises:
            StoreUnavailable: The store failed temporarily.
        """
        items = [file for _, file in files]
        if all(is_local(file.uri) for file in items):
            waits = self._disk.has_waited
            opened = calls_ahead(self._pool, self._open, items, depth=LOCAL_FILES_AHEAD, waits=waits)
        else:
            opened = calls_ahead(self._pool, self._open, items, depth=FILES_AHEAD)
        with closing(opened) as openings:
            for index, file in files:
                deferred = self._deferred(file)
                yield WalkedFile(index, deferred, None) if deferred else self._walk(index, file, next(openings), read)

    def stage_rejects(self, uri: str) -> str | None:
        """Upload the rejects of all files; return the URI, or None if there are no rejects."""
        self._rejects.finish()
        if not self._rejects.rows:
            return None
        self._store.upload(uri, self._rejects.path)
        return uri

    def decoded(self, file: OpenedFile) -> Generator[bytes, None, None]:
        """Decode a file. May be called again for a second pass."""
        digest = file.opened.digest
        with closing(read_ranges(self._input, file.opened, self._pool)) as stored:
            try:
                for piece in decode(file.codec, self._counted(digest.passing(stored) if digest else stored)):
                    self._decoded_bytes += len(piece)
                    yield piece
            except AccessError as exc:  # concerns this file, not one of the job's places
                raise FileError(FileStatus.FORBIDDEN, str(exc)) from exc

    def splitter(self, file: OpenedFile) -> Splitter:
        """The splitter for a file. Raises a `FileError` if this kind of file is not accepted."""
        if file.opened.start:  # past the first lines of a file, which identify its kind
            return self._formats.lines
        return self._formats.splitter(file.uri)

    def _deferred(self, file: ManifestFile) -> FileReport | None:
        """The report on a file that is left to a later manifest; None if it may be read."""
        limits, spent = self._limits, self._decoded_bytes
        if limits.task_bytes is None:
            return None
        allowed = limits.task_ratio * self.stored_bytes_read + limits.task_bytes
        # guard: a task whose files decode to far more than they should leaves the rest to a later manifest
        if spent > allowed:
            found = f"files before it in its manifest decoded to {spent:,} bytes; expected at most {allowed:,}"
        # guard: a task whose lines take far longer to match than they should leaves the rest to a later manifest
        elif excess := self._formats.matching.excess:
            found = f"matching the lines of files before it in its manifest {excess}"
        else:
            return None
        return _quarantined(file, FileError(FileStatus.DEFERRED, found), etag=file.etag or "")

    def _counted(self, stored: Iterable[bytes]) -> Iterator[bytes]:
        for piece in stored:
            for at in range(0, len(piece), self._counted_bytes):
                part = piece[at : at + self._counted_bytes]
                # Counted as half read while its lines are processed, so that the count errs equally in both directions.
                half = len(part) // 2
                self.stored_bytes_read += half
                yield part
                self.stored_bytes_read += len(part) - half

    def _open(self, file: ManifestFile) -> Opened:
        if is_log(file.uri):
            gap = LogGap.parse(file.uri)
            cause = "retention removed" if gap.offsets else "retention may have removed records"
            raise FileError(FileStatus.MISSING, f"{cause} {gap.words}")
        try:
            read = partial(open_file, self._input, file, any_version=self._any_version)
            if is_s3(file.uri):
                return read()
            opened, digest = self._disk.measured(read), ContentDigest(self._pool)
            if opened.expected:  # its range has the digest
                return opened
            digest.begin(opened.first)
            return replace(opened, digest=digest)
        except AccessError as exc:
            # A single object may have a different owner or key; the caller decides whether all access is refused.
            raise FileError(FileStatus.FORBIDDEN, str(exc)) from exc

    def _walk(self, index: int, file: ManifestFile, opening: Future[Opened], read: ReadFile[T]) -> WalkedFile[T]:
        change = ""
        for start in range(MAX_STARTS if self._any_version else 1):
            try:
                opened = self._open(file) if start else opening.result()
                return self._read(index, file, opened, read)
            except ObjectChanged as exc:
                change = f"replaced while being read: {exc}"
            except ObjectNotFound as exc:
                error = FileError(FileStatus.MISSING, f"deleted while being read: {exc}")
                return WalkedFile(index, _quarantined(file, error), None)
            except LinkRefused as exc:
                return WalkedFile(index, _quarantined(file, FileError(FileStatus.FORBIDDEN, str(exc))), None)
            except FileError as exc:
                return WalkedFile(index, _quarantined(file, exc), None)
        return WalkedFile(index, _quarantined(file, FileError(FileStatus.CHANGED, change)), None)

    def _read(self, index: int, file: ManifestFile, opened: Opened, read: ReadFile[T]) -> WalkedFile[T]:
        codec = "none" if file.grown else sniff(opened.first[:SNIFF_BYTES])
        spool = RejectSpool(self._manifest_id, file.origin_uri, self._limits.rejects, self.scratch)
        try:
            path_values = PathValues(file.path_columns) if file.path_columns else None
            opened_file = OpenedFile(index, file.uri, file.origin_uri, opened, codec, path_values)
            counts, found = read(opened_file, in_whole_file(file.grown, spool.add))
            self._check_kind(file, counts, spool)
            spool.move_to(self._rejects)
        except FileError as exc:
            samples = spool.move_samples_to(self._rejects) if exc.status == FileStatus.TOO_MANY_REJECTS else 0
            report = _quarantined(
                file, exc, size_bytes=opened.size_bytes, etag=opened.etag, codec=codec, reject_rows=samples
            )
            walked: WalkedFile[T] = WalkedFile(index, report, None)
        else:
            walked = WalkedFile(index, _compacted(file, opened, codec, counts, spool), found)
        finally:
            spool.close()
        self.scratch.kept_bytes = self._rejects.size_bytes
        return walked

    def _check_kind(self, file: ManifestFile, counts: LineCounts, spool: RejectSpool) -> None:
        """Quarantine a file without records if its rejects show that it is of a different kind.

        Redriven lines are known to be lines, and lines on which the parsers disagree are records to one parser.
        """
        has_lines = counts.records or "parsers_disagree" in counts.rejects or file.source_uri
        if not has_lines and self._formats.recognises and spool.kind is not None:
            raise FileError(FileStatus.NOT_NDJSON, f"no line is a record; the first reject {spool.kind.words}")


def _report(file: ManifestFile, status: FileStatus, **found: Any) -> FileReport:
    return FileReport(
        uri=file.uri,
        status=status,
        source_uri=file.source_uri or "",
        rejected_as=file.rejected_as or "",
        path_columns=file.path_columns or {},
        range=file.grown,
        follows=file.follows or "",
        superseded=len(file.other_etags or ()),
        **found,
    )


def _compacted(file: ManifestFile, opened: Opened, codec: str, counts: LineCounts, spool: RejectSpool) -> FileReport:
    digest = file.range.digest if file.range else ""
    # A blank line is never rejected, so blank redriven lines stand for other lines of their source file.
    padding = counts.blank_lines if file.source_uri else 0
    return _report(
        file,
        FileStatus.COMPACTED,
        size_bytes=opened.size_bytes,
        etag=opened.etag,
        digest=opened.digest.of_whole(opened.size_bytes) if opened.digest else digest,
        codec=codec,
        format=counts.format,
        record_path=counts.place.path if counts.place else "",
        kept_keys=counts.place.keep if counts.place else (),
        decoded_bytes=counts.decoded_bytes - padding,
        hole_bytes=counts.hole_bytes,
        lines=counts.lines - padding,
        blank_lines=counts.blank_lines - padding,
        records=counts.records,
        rejected_lines=counts.rejected_lines,
        rejects=counts.rejects,
        unkept_rejects=dict(spool.unkept),
        reject_rows=spool.kept_rows,
    )


def _quarantined(file: ManifestFile, error: FileError, *, etag: str = "", **found: Any) -> FileReport:
    """The report on a file that cannot be read completely."""
    etag = etag or (file.grown and file.etag) or ""
    return _report(file, FileStatus(error.status), detail=error.message, etag=etag, **found)
