"""The inspect step: reads input files, stages their rejects, and repaired copies of those that Spark would misread."""

import tempfile
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack, closing
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from compactor.codecs import SNIFF_BYTES, decode, sniff
from compactor.errors import AccessError, FileError, ObjectChanged, ObjectNotFound, StoreUnavailable
from compactor.inspection import Discovery, Inspected, Limits, Reject, inspect_lines
from compactor.lookahead import calls_ahead
from compactor.manifest import ManifestFile
from compactor.object_reading import FILES_AHEAD, Opened, open_file, read_ranges
from compactor.ports import ObjectStore
from compactor.records import FileReport, FileStatus
from compactor.rejects import RejectSpool, RejectsWriter
from compactor.spark_names import spark_reads_as_is, spark_reads_name

OnChangedFile = Literal["skip", "read"]
"""What to do with a file that is not the version its manifest names: report it, or read what is there now."""

MAX_STARTS = 3
"""How often a file that is replaced while it is read is begun."""

_WRITE_BUFFER_BYTES = 1024 * 1024


@dataclass(frozen=True, slots=True)
class InspectTask:
    """What one executor task inspects.

    Attributes:
        manifest_id: The manifest that names the files.
        files: Index in the manifest, and file; in the manifest's order.
        staging: The folder of the attempt; it ends with `/`.
        limits: What is too long or too large.
        on_changed_file: What to do with another version than the manifest names.
        refused: By index: records, without white space around them, to be rejected as `parsers_disagree`. A file that
            is named here always gets a repaired copy.
        task_number: Tells the tasks of an attempt apart.
        discovery: How closely to look.
    """

    manifest_id: str
    files: tuple[tuple[int, ManifestFile], ...]
    staging: str
    limits: Limits
    on_changed_file: OnChangedFile
    refused: Mapping[int, frozenset[bytes]]
    task_number: int
    discovery: Discovery = "full"


@dataclass(frozen=True, slots=True)
class InspectedFile:
    """What became of one file.

    Attributes:
        index: In the manifest.
        report: Its audit.
        keys: Top-level keys of its records, as first seen.
        readable_uri: What Spark is to read: the original or its repaired copy; None if there is no record to read.
    """

    index: int
    report: FileReport
    keys: tuple[str, ...]
    readable_uri: str | None


@dataclass(frozen=True, slots=True)
class InspectTaskResult:
    """What became of the files of a task, in its order.

    Attributes:
        rejects_uri: The staged Parquet file of all their rejects, if there are any.
    """

    files: tuple[InspectedFile, ...]
    rejects_uri: str | None


def inspect_files(store: ObjectStore, task: InspectTask) -> InspectTaskResult:
    """Inspect some files of a manifest; repeating it writes the same names with the same content.

    A file that is missing, changed, unreadable or too large is reported as such and leaves nothing behind.

    Args:
        store: Where the files are, and where rejects and repaired copies are staged.
        task: What to do.

    Raises:
        StoreUnavailable: Passing trouble of the store, or of the local disk.
        AccessError: The store refused access.
    """
    try:
        return _inspect_files(store, task)
    except OSError as exc:  # stores have errors of their own, so it is the scratch folder: a full disk, say
        raise StoreUnavailable(f"scratch files in {tempfile.gettempdir()}: {exc}") from exc


def _inspect_files(store: ObjectStore, task: InspectTask) -> InspectTaskResult:
    with ExitStack() as stack:
        scratch = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="compactor-")))
        pool = stack.enter_context(ThreadPoolExecutor(FILES_AHEAD, thread_name_prefix="read-ahead"))
        path = scratch / "rejects.parquet"
        with RejectsWriter(path) as rejects:
            files = tuple(_Inspector(store, task, pool, scratch, rejects).run())
        if not rejects.rows:
            return InspectTaskResult(files, None)
        rejects_uri = f"{task.staging}rejects/{task.task_number:06d}.parquet"
        store.upload(rejects_uri, path)
        return InspectTaskResult(files, rejects_uri)


@dataclass(frozen=True, slots=True)
class _Inspector:
    """One run of a task: everything that its files share."""

    store: ObjectStore
    task: InspectTask
    pool: ThreadPoolExecutor
    scratch: Path
    rejects: RejectsWriter

    def run(self) -> Iterator[InspectedFile]:
        files = self.task.files
        with closing(calls_ahead(self.pool, self._open, [file for _, file in files], depth=FILES_AHEAD)) as openings:
            for (index, file), opening in zip(files, openings, strict=True):
                yield self._inspect_file(index, file, opening)

    def _open(self, file: ManifestFile) -> Opened:
        try:
            return open_file(self.store, file, any_version=self.task.on_changed_file == "read")
        except AccessError as exc:
            # One object may have an owner or a key of its own; whether all are closed is for the caller to tell.
            raise FileError(FileStatus.FORBIDDEN, str(exc)) from exc

    def _inspect_file(self, index: int, file: ManifestFile, opening: Future[Opened]) -> InspectedFile:
        change = ""
        for start in range(MAX_STARTS if self.task.on_changed_file == "read" else 1):
            try:
                opened = self._open(file) if start else opening.result()
                return self._read(index, file, opened)
            except ObjectChanged as exc:
                change = f"replaced while it was read: {exc}"
            except ObjectNotFound as exc:
                return _set_aside(index, file, FileError(FileStatus.MISSING, f"deleted while it was read: {exc}"))
            except FileError as exc:
                return _set_aside(index, file, exc)
        return _set_aside(index, file, FileError(FileStatus.CHANGED, change))

    def _read(self, index: int, file: ManifestFile, opened: Opened) -> InspectedFile:
        codec = sniff(opened.first[:SNIFF_BYTES])
        copy = self.scratch / f"{index:06d}.ndjson"
        spool = RejectSpool(self.task.manifest_id, file.uri)
        try:
            inspected, readable_uri = self._inspect(index, opened, codec, spool, copy)
            spool.move_to(self.rejects)
        except FileError as exc:
            return _set_aside(index, file, exc, size_bytes=opened.size_bytes, etag=opened.etag, codec=codec)
        finally:
            spool.close()
            copy.unlink(missing_ok=True)
        return InspectedFile(index, _report(file, opened, codec, inspected), inspected.keys, readable_uri)

    def _inspect(
        self, index: int, opened: Opened, codec: str, spool: RejectSpool, copy: Path
    ) -> tuple[Inspected, str | None]:
        """Look at every line; upload a copy if Spark needs one. Returns what was found and what Spark is to read."""
        refused = self.task.refused.get(index)
        copied = refused is not None or not spark_reads_name(opened.uri, codec)
        inspected = self._pass(opened, codec, refused, spool.add, copy if copied else None)
        if not inspected.records:
            return inspected, None
        if not copied:
            if spark_reads_as_is(opened.uri, codec, inspected):
                return inspected, opened.uri
            again = self._pass(opened, codec, refused, lambda _: None, copy)
            if again != inspected:
                raise ObjectChanged(f"{opened.uri}: a second reading found {again.lines} lines, not {inspected.lines}")
        copy_uri = f"{self.task.staging}repaired/{index:06d}.ndjson"
        self.store.upload(copy_uri, copy)
        return inspected, copy_uri

    def _pass(
        self,
        opened: Opened,
        codec: str,
        refused: frozenset[bytes] | None,
        on_reject: Callable[[Reject], None],
        copy: Path | None,
    ) -> Inspected:
        """Read the file once, and write its records to `copy` if that is given."""
        with ExitStack() as stack:
            write = stack.enter_context(copy.open("wb", _WRITE_BUFFER_BYTES)).write if copy else None
            stored = stack.enter_context(closing(read_ranges(self.store, opened, self.pool)))
            return inspect_lines(
                decode(codec, stored),
                self.task.limits,
                on_reject=on_reject,
                on_good=write,
                refused=refused or frozenset(),
                discovery=self.task.discovery,
            )


def _report(file: ManifestFile, opened: Opened, codec: str, inspected: Inspected) -> FileReport:
    return FileReport(
        uri=file.uri,
        status=FileStatus.COMPACTED,
        size_bytes=opened.size_bytes,
        etag=opened.etag,
        codec=codec,
        decoded_bytes=inspected.decoded_bytes,
        lines=inspected.lines,
        blank_lines=inspected.blank_lines,
        records=inspected.records,
        rejected_lines=inspected.rejected_lines,
        rejects=inspected.rejects,
        reject_rows=inspected.reject_rows,
    )


def _set_aside(
    index: int, file: ManifestFile, error: FileError, *, size_bytes: int = 0, etag: str = "", codec: str = "none"
) -> InspectedFile:
    """The outcome of a file that could not be read to its end."""
    report = FileReport(
        uri=file.uri,
        status=FileStatus(error.status),
        detail=error.message,
        size_bytes=size_bytes,
        etag=etag,
        codec=codec,
    )
    return InspectedFile(index, report, (), None)
