"""Inspects files for the Spark engine: stages their rejects, and repaired copies of files that Spark would misread."""

from collections import Counter
from collections.abc import Callable, Mapping
from contextlib import ExitStack, closing
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import BinaryIO

from compactor.core.documents.manifest import ManifestFile
from compactor.core.errors import ObjectChanged
from compactor.core.ports import ObjectStore
from compactor.engines.engine import EngineRules, RowPlan
from compactor.engines.spark.names import spark_reads_as_is, spark_reads_name
from compactor.engines.spark.python_rows import PythonRows
from compactor.engines.task_results import TaskFile, TaskResult
from compactor.ndjson.files.file_walk import FileWalk, OpenedFile
from compactor.ndjson.files.scratch import scratch_errors
from compactor.ndjson.inspection import Discovery, Inspected, NewKeys, inspect_lines
from compactor.ndjson.lines import Reject
from compactor.schema.schema import KeyLimits

_WRITE_BUFFER_BYTES = 1024 * 1024


@dataclass(frozen=True, slots=True)
class InspectTask:
    """The files inspected by one executor task.

    Attributes:
        files: Index in the manifest and file, in the manifest's order.
        staging: The attempt's folder; ends with `/`.
        refused: Records to reject as `parsers_disagree`, stripped of white space, by file index. Such a file always
            gets a repaired copy.
        key_limits: Which other keys to collect.
        rows: How to make rows of all records, for keys and columns that stay; None to leave that to Spark.
    """

    manifest_id: str
    files: tuple[tuple[int, ManifestFile], ...]
    staging: str
    rules: EngineRules
    refused: Mapping[int, frozenset[bytes]]
    task_number: int
    discovery: Discovery = "full"
    known_keys: frozenset[str] = frozenset()
    key_limits: KeyLimits = KeyLimits()  # noqa: RUF009 - it is frozen
    rows: RowPlan | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class InspectTaskResult(TaskResult):
    """The result of a task.

    Attributes:
        present_keys: The keys with a column that some record may have.
    """

    present_keys: frozenset[str]


@scratch_errors()
def inspect_files(store: ObjectStore, task: InspectTask) -> InspectTaskResult:
    """Inspect files of a manifest. Repeating a task writes the same content under the same names.

    A quarantined file is reported, and leaves nothing but samples of its rejects.

    Raises:
        StoreUnavailable: A transient failure of the store, or of the local disk.
        AccessError: The store refused access.
    """
    rules = task.rules
    with FileWalk(store, task.manifest_id, rules.on_changed_file, rules.limits, rules.formats) as walk:
        inspector = _Inspector(store, task, walk)
        walked = walk.files(task.files, inspector.read)
        files = tuple(TaskFile(file.index, file.report, *(file.found or ())) for file in walked)
        outputs, rescued_values = inspector.make_rows()
        return InspectTaskResult(
            files=files,
            rejects_uri=walk.stage_rejects(f"{task.staging}rejects/{task.task_number:06d}.parquet"),
            outputs=outputs,
            rescued_values=rescued_values,
            present_keys=frozenset(inspector.present),
        )


@dataclass(frozen=True, slots=True)
class _Inspector:
    store: ObjectStore
    task: InspectTask
    walk: FileWalk
    collected: dict[str, None] = field(default_factory=dict)
    present: set[str] = field(default_factory=set)
    copied_bytes: Counter[int] = field(default_factory=Counter)
    copies: list[tuple[Path, str]] = field(default_factory=list)  # to make rows from, each with its source file

    def make_rows(self) -> tuple[tuple[str, ...], int]:
        """Make the rows of all files that were read completely; return URIs, and the number of rescued values."""
        if self.task.rows is None:
            return (), 0
        rows = PythonRows(self.task.rows)
        outputs = rows.write(self.store, f"{self.task.staging}out/", self.task.task_number, self.copies)
        return outputs, rows.rescued_values

    def read(
        self, file: OpenedFile, on_reject: Callable[[Reject], None]
    ) -> tuple[Inspected, tuple[tuple[str, ...], bool, str | None]]:
        """Inspect every line; upload a copy if Spark needs one. Returns counts, keys and the `readable_uri`."""
        copy = self.walk.folder / f"{file.index:06d}.ndjson"
        try:
            inspected, readable_uri = self._inspect(file, on_reject, copy)
            if self.task.rows is not None and inspected.records:
                self.copies.append((copy.rename(copy.with_suffix(".records")), file.source_uri))
                self.copied_bytes.pop(file.index)
        finally:
            copy.unlink(missing_ok=True)
            self.walk.scratch.give_back(self.copied_bytes.pop(file.index, 0))
        if inspected.records:
            of_path = file.path_values.keys if file.path_values is not None else ()
            self.present.update(inspected.present_keys, self.task.known_keys.intersection(of_path))
        keys, has_further_keys = self._keys(file, inspected)
        new_keys = [key for key in keys if key not in self.collected]
        room = max(0, self.task.key_limits.max_keys - len(self.collected))
        self.collected.update(dict.fromkeys(new_keys[:room]))
        has_further_keys = has_further_keys or len(new_keys) > room
        return inspected, (tuple(new_keys[:room]), has_further_keys, readable_uri)

    def _keys(self, file: OpenedFile, inspected: Inspected) -> tuple[tuple[str, ...], bool]:
        """The keys of a file without a column, those from its path first; and whether there are more."""
        if file.path_values is None or not inspected.records:
            return inspected.keys, inspected.has_further_keys
        keys = NewKeys(self.task.known_keys, self.task.key_limits)
        keys.collect((*file.path_values.keys, *inspected.keys))
        return keys.collected, inspected.has_further_keys or keys.has_further

    def _inspect(
        self, file: OpenedFile, on_reject: Callable[[Reject], None], copy: Path
    ) -> tuple[Inspected, str | None]:
        uri, codec = file.opened.uri, file.codec
        refused = self.task.refused.get(file.index)
        inspect = partial(self._pass, file, refused)
        is_text = self.task.rules.formats.grok is not None
        is_other = file.opened.is_part or file.path_values is not None
        makes_rows = self.task.rows is not None
        copied = makes_rows or refused is not None or is_other or is_text or not spark_reads_name(uri, codec)
        inspected = inspect(on_reject, copy if copied else None)
        if makes_rows or not inspected.records:
            return inspected, None
        if not copied:
            if spark_reads_as_is(uri, codec, inspected):
                return inspected, uri
            again = inspect(lambda _: None, copy)
            if again != inspected:
                raise ObjectChanged(f"{uri}: a second read found {again.lines} lines, expected {inspected.lines}")
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
        with ExitStack() as stack:
            target = stack.enter_context(copy.open("wb", _WRITE_BUFFER_BYTES)) if copy else None
            return inspect_lines(
                stack.enter_context(closing(self.walk.decoded(file))),
                self.task.rules.limits,
                on_reject=on_reject,
                on_good=partial(self._write, file, target) if target else None,
                refused=_as_in_file(file, refused or frozenset()),
                split=self.walk.splitter(file),
                discovery=self.task.discovery,
                known_keys=self.task.known_keys,
                key_limits=self.task.key_limits,
            )

    def _write(self, file: OpenedFile, target: BinaryIO, block: bytes) -> None:
        if file.path_values is not None:
            block = file.path_values.lines(block)
        self.walk.scratch.take(len(block))
        self.copied_bytes[file.index] += len(block)
        target.write(block)


def _as_in_file(file: OpenedFile, refused: frozenset[bytes]) -> frozenset[bytes]:
    """Translate lines that Spark found in the copy to the file's lines."""
    return refused if file.path_values is None else frozenset(map(file.path_values.original, refused))
