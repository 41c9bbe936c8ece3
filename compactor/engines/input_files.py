"""The inspect step: reads input files, stages their rejects, and repaired copies of those that Spark would misread."""

import tempfile
from collections.abc import Callable, Mapping
from contextlib import ExitStack, closing
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from compactor.core.errors import ObjectChanged, StoreUnavailable
from compactor.core.manifest import ManifestFile
from compactor.core.ports import ObjectStore
from compactor.core.records import FileReport
from compactor.engines.spark_names import spark_reads_as_is, spark_reads_name
from compactor.ndjson.file_walk import FileWalk, OnChangedFile, OpenedFile
from compactor.ndjson.inspection import Discovery, Inspected, inspect_lines
from compactor.ndjson.lines import Limits, Reject
from compactor.ndjson.rejects import RejectsWriter

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
    with FileWalk(store, task.manifest_id, task.on_changed_file) as walk:
        path = walk.scratch / "rejects.parquet"
        with RejectsWriter(path) as rejects:
            inspector = _Inspector(store, task, walk)
            files = tuple(
                InspectedFile(file.index, file.report, *(file.found or ((), None)))
                for file in walk.files(task.files, rejects, inspector.read)
            )
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
    walk: FileWalk

    def read(
        self, file: OpenedFile, on_reject: Callable[[Reject], None]
    ) -> tuple[Inspected, tuple[tuple[str, ...], str | None]]:
        """Look at every line; upload a copy if Spark needs one. Returns what was found, keys, and what Spark reads."""
        copy = self.walk.scratch / f"{file.index:06d}.ndjson"
        try:
            inspected, readable_uri = self._inspect(file, on_reject, copy)
        finally:
            copy.unlink(missing_ok=True)
        return inspected, (inspected.keys, readable_uri)

    def _inspect(
        self, file: OpenedFile, on_reject: Callable[[Reject], None], copy: Path
    ) -> tuple[Inspected, str | None]:
        uri, codec = file.opened.uri, file.codec
        refused = self.task.refused.get(file.index)
        look = partial(self._pass, file, refused)
        copied = refused is not None or not spark_reads_name(uri, codec)
        inspected = look(on_reject, copy if copied else None)
        if not inspected.records:
            return inspected, None
        if not copied:
            if spark_reads_as_is(uri, codec, inspected):
                return inspected, uri
            again = look(lambda _: None, copy)
            if again != inspected:
                raise ObjectChanged(f"{uri}: a second reading found {again.lines} lines, not {inspected.lines}")
        copy_uri = f"{self.task.staging}repaired/{file.index:06d}.ndjson"
        self.store.upload(copy_uri, copy)
        return inspected, copy_uri

    def _pass(
        self,
        file: OpenedFile,
        refused: frozenset[bytes] | None,
        on_reject: Callable[[Reject], None],
        copy: Path | None,
    ) -> Inspected:
        """Read the file once, and write its records to `copy` if that is given."""
        with ExitStack() as stack:
            write = stack.enter_context(copy.open("wb", _WRITE_BUFFER_BYTES)).write if copy else None
            return inspect_lines(
                stack.enter_context(closing(self.walk.decoded(file))),
                self.task.limits,
                on_reject=on_reject,
                on_good=write,
                refused=refused or frozenset(),
                discovery=self.task.discovery,
            )
