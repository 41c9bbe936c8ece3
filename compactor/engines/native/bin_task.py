"""One task of the native engine: reads the files of a bin once and stages their rows and rejects."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import ExitStack, closing
from dataclasses import dataclass
from typing import NoReturn, Self
from uuid import uuid4

from compactor.core.documents.manifest import ManifestFile
from compactor.core.documents.records import FileStatus
from compactor.core.errors import FileError, ObjectChanged, ObjectNotFound, StagingError
from compactor.core.ports import ObjectStore, ObjectWriter
from compactor.engines.engine import EngineRules, RowPlan
from compactor.engines.native.kernel import Kernel, NewKernel, RefusedPlace
from compactor.engines.rows_place import RowsPlace, writing
from compactor.engines.task_results import TaskFile, TaskResult
from compactor.ledger.sizing import closes_file
from compactor.ndjson.files.file_walk import FileWalk, OpenedFile, WalkedFile
from compactor.ndjson.files.line_fields import PathValues, places_in
from compactor.ndjson.files.scratch import scratch_errors
from compactor.ndjson.inspection import BLANK_LINE, inspect_lines, refusals
from compactor.ndjson.lines import Judged, LineCounts, Receiver, Refused, Reject
from compactor.schema.schema import NO_NEW_KEYS


class BinOutputs:
    """The output files of one pass over a bin. A context manager that aborts uncommitted files.

    Args:
        name: The prefix of their names, unique to this pass.

    Attributes:
        uris: The files started so far, in order.
        finished_bytes: The total length of the finished files.
    """

    def __init__(self, store: ObjectStore, kernel: Kernel, place: RowsPlace, name: str, target_file_bytes: int) -> None:
        self.uris: list[str] = []
        self.finished_bytes = 0
        self._store = store
        self._kernel = kernel
        self._place = place
        self._name = name
        self._target_file_bytes = target_file_bytes
        self._current_bytes = 0
        self._length = 0  # of the open file, and the part not yet written
        self._writer: ObjectWriter | None = None
        self._open_file = ExitStack()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.abort()

    def flush(self, done: float) -> None:
        """Write the kernel's completed bytes, and finish the file if it has reached its size.

        Args:
            done: The share of the input read so far, from 0 to 1.
        """
        self._write_completed()
        length = self._kernel.output_bytes
        if length == self._length:
            return  # rows are held back: the lengths cover the same rows only once they are written
        step, self._length = max(0, length - self._length), length
        # The kernel omits the last batch of rows, which is probably as long as the previous one.
        if done and closes_file(length + step, self.finished_bytes, done, self._target_file_bytes, step_bytes=step):
            self.commit()

    def commit(self) -> None:
        """Finish the open file, if there is one.

        Raises:
            StoreUnavailable: It could not be written.
        """
        self._kernel.finish_output()
        self._write_completed()
        if self._writer is not None:
            with writing(self.uris[-1]):
                self._close()
            self.finished_bytes += self._current_bytes
            self._current_bytes = self._length = 0

    def abort(self) -> None:
        if self._writer is not None:
            self._writer.abort()
            self._close()

    def _close(self) -> None:
        self._writer = None
        self._open_file.close()

    def _write_completed(self) -> None:
        while data := self._kernel.take():
            self._write(data)

    def _write(self, data: bytes) -> None:
        if self._writer is None:
            uri = self._place.uri(f"{self._name}{len(self.uris):03d}")
            with writing(uri):
                self._writer = self._open_file.enter_context(self._place.writer(self._store, uri))
            self.uris.append(uri)
        with writing(self.uris[-1]):
            self._writer.write(data)
        self._current_bytes += len(data)


BLOCK_BYTES = 1024 * 1024
"""Bytes that the kernel reads per call. They fit the CPU cache; larger blocks were measured to be no faster."""

_INSPECTED = 64
"""How many refused lines per block Python also inspects, to check that the kernel refuses no records. Inspecting a
refused line takes longer than everything else together."""

MAX_PASSES = 4
"""How often a bin may be read: once more without the unreadable files, and again for files that change in the meantime.
"""

_Walked = WalkedFile[tuple[tuple[str, ...], bool]]


@dataclass(frozen=True, slots=True)
class BinTask:
    """One bin: the input files, and how to write their rows.

    Attributes:
        files: Index in the manifest and file, in the manifest's order.
        stored_bytes: Their total stored length, as far as known.
        staging: The attempt's folder; ends with `/`.
        number: Distinguishes the tasks of an attempt.
    """

    files: tuple[tuple[int, ManifestFile], ...]
    stored_bytes: int
    staging: str
    number: int
    plan: RowPlan
    rules: EngineRules
    place: RowsPlace | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class BinResult(TaskResult):
    """The result of a bin.

    Attributes:
        output_bytes: The total length of the outputs.
        lacks_columns: A key has no column and cannot be rescued, so the outputs must not be used: the bin has to be
            rewritten with more columns.
    """

    output_bytes: int
    lacks_columns: bool


@scratch_errors()
def write_bin(store: ObjectStore, task: BinTask, new_kernel: NewKernel) -> BinResult:
    """Run a task. A second run does not touch files reported by the first.

    A quarantined file is reported, and leaves nothing but samples of its rejects. If some of its rows were already
    written, the bin is read again without the unreadable files.

    Raises:
        StoreUnavailable: A transient failure of the store, or of the local disk.
        AccessError: The store refused access.
        StagingError: Files keep changing, or the kernel has a fault.
    """
    unreadable: Mapping[int, _Walked] = {}
    for number in range(MAX_PASSES):
        outcome = _Pass(store, task, new_kernel, number).run(unreadable)
        if isinstance(outcome, BinResult):
            return outcome
        unreadable = outcome
    raise StagingError(f"manifest {task.plan.manifest_id}: files of bin {task.number} keep changing")


class _Pass:
    """One pass over the files of a bin.

    `_needs_rescan` is set when a file proves unreadable after some of its rows were written.
    """

    def __init__(self, store: ObjectStore, task: BinTask, new_kernel: NewKernel, number: int) -> None:
        self._task = task
        self._kernel: Kernel = new_kernel(task.plan)
        # A task that Spark believes lost may still run alongside its repetition: neither may overwrite the other's
        # files.
        self._name = f"{task.number:06d}-{number}-{uuid4().hex[:8]}"
        place = task.place or RowsPlace(f"{task.staging}out/")
        self._outputs = BinOutputs(store, self._kernel, place, f"{self._name}-", task.plan.target_file_bytes)
        self._walk = FileWalk(
            store,
            task.plan.manifest_id,
            task.rules.on_changed_file,
            task.rules.limits,
            task.rules.formats,
            counted_bytes=max(task.stored_bytes // 64, 256 * 1024),
        )
        self._needs_rescan = False
        self._sampled: frozenset[int] = frozenset()
        self._path_values: PathValues | None = None

    def run(self, unreadable: Mapping[int, _Walked]) -> BinResult | dict[int, _Walked]:
        """Read the files and stage their rows and rejects.

        Args:
            unreadable: Files found unreadable by an earlier pass, by index. They are skipped, except that files with
                too many rejects are sampled again.

        Returns:
            The result; or the unreadable files by index, if another pass must skip them.
        """
        walked = {index: file for index, file in unreadable.items() if not file.report.reject_rows}
        self._sampled = frozenset(unreadable.keys() - walked.keys())
        files = [file for file in self._task.files if file[0] not in walked]
        with self._walk as walk:
            with self._outputs as outputs:
                walked.update((file.index, file) for file in walk.files(files, self._read))
                # guard: rows are staged only with a column for each of their keys
                if not (self._needs_rescan or self._kernel.lacks_columns):
                    outputs.commit()
            if self._needs_rescan:  # guard: a pass with rows of a refused file is discarded
                # All unreadable files are known by now, so one more pass is enough.
                return {index: file for index, file in walked.items() if file.found is None}
            return self._result(walked, walk.stage_rejects(f"{self._task.staging}rejects/{self._name}.parquet"))

    def _result(self, walked: Mapping[int, _Walked], rejects_uri: str | None) -> BinResult:
        kernel = self._kernel
        return BinResult(
            files=tuple(
                TaskFile(index, walked[index].report, *(walked[index].found or ())) for index, _ in self._task.files
            ),
            outputs=tuple(self._outputs.uris),
            output_bytes=self._outputs.finished_bytes,
            rejects_uri=rejects_uri,
            rescued_values=kernel.rescued_values,
            lacks_columns=kernel.lacks_columns,
        )

    def _read(
        self, file: OpenedFile, on_reject: Callable[[Reject], None]
    ) -> tuple[LineCounts, tuple[tuple[str, ...], bool]]:
        if file.index in self._sampled:
            self._sample(file, on_reject)
        kernel = self._kernel
        self._path_values = file.path_values
        kernel.begin_file(file.source_uri)
        try:
            with closing(self._walk.decoded(file)) as decoded:
                split = self._walk.splitter(file)
                counts = split(decoded, Receiver(self._task.rules.limits, self._judge, on_reject, BLOCK_BYTES))
        except (FileError, ObjectChanged, ObjectNotFound):
            # guard: rows of a broken file are withdrawn, or the pass is repeated
            self._needs_rescan |= not kernel.withdraw_file()
            raise
        new_keys, has_further_keys = kernel.end_file()
        self._flush()
        return counts, (tuple(new_keys), has_further_keys)

    def _sample(self, file: OpenedFile, on_reject: Callable[[Reject], None]) -> NoReturn:
        """Read a file with too many rejects up to the limit, only for its rejects.

        Raises:
            FileError: `too_many_rejects`; or `changed` if it now has fewer.
        """
        with closing(self._walk.decoded(file)) as decoded:
            split = self._walk.splitter(file)
            inspect_lines(decoded, self._task.rules.limits, on_reject=on_reject, split=split, key_limits=NO_NEW_KEYS)
        raise FileError(FileStatus.CHANGED, "replaced while its manifest was being read")

    def _judge(self, block: bytes) -> Judged:
        written = block if self._path_values is None else self._path_values.lines(block)
        lines, blank_lines, places = self._kernel.read(written)
        self._flush()
        return Judged(lines, blank_lines, _refused(block, places if written is block else places_in(block, places)))

    def _flush(self) -> None:
        if self._needs_rescan:
            while self._kernel.take():
                pass
        else:
            self._outputs.flush(min(1.0, self._walk.stored_bytes_read / max(self._task.stored_bytes, 1)))


def _refused(block: bytes, places: Iterable[RefusedPlace]) -> Iterator[Refused]:
    for at, (number, start, end, reason) in enumerate(places):
        raw = block[start:end]
        if at < _INSPECTED or not reason:
            yield number, start, _reason(raw, start, block), raw
        else:
            yield number, start, reason, raw


def _reason(raw: bytes, start: int, block: bytes) -> str:
    reason = next((reason for _, reason in refusals([raw])), BLANK_LINE)
    if reason == BLANK_LINE:  # guard: the kernel alone cannot refuse a line that inspection accepts
        raise StagingError(
            f"the native kernel refused a record: {len(raw)} bytes from byte {start} of {len(block)}; expected it "
            "to accept the record"
        )
    return reason
