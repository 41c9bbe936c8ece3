"""One task of the native engine: reads the files of a bin once, and stages their rows and rejects."""

import tempfile
from collections.abc import Callable, Mapping
from contextlib import ExitStack, closing, suppress
from dataclasses import dataclass
from types import TracebackType
from typing import Self

from compactor.errors import FileError, ObjectChanged, ObjectNotFound, StagingError, StoreUnavailable
from compactor.file_walk import MAX_STARTS, FileWalk, OnChangedFile, OpenedFile, WalkedFile
from compactor.inspection import refusal
from compactor.kernel import Kernel, NewKernel, RowPlan
from compactor.line_splitting import Judged, Limits, LineCounts, Refused, Reject, split_lines
from compactor.manifest import ManifestFile
from compactor.ports import ObjectStore, ObjectWriter
from compactor.records import FileReport
from compactor.rejects import RejectsWriter
from compactor.sizing import closes_file

BLOCK_BYTES = 1024 * 1024
"""How much the kernel looks at together. Measured: no slower than more; and a block of one-character lines, all of them
rejects, stays below 100 MiB of objects."""


@dataclass(frozen=True, slots=True)
class BinTask:
    """What one task does.

    Attributes:
        files: Index in the manifest, and file; in the manifest's order.
        stored_bytes: How long they are in all, as far as that is known.
        staging: The folder of the attempt; it ends with `/`.
        number: Tells the tasks of an attempt apart.
        plan: What rows are made of.
        limits: What is too long or too large.
        on_changed_file: What to do with another version than the manifest names.
        target_file_bytes: How large an output file should be.
    """

    files: tuple[tuple[int, ManifestFile], ...]
    stored_bytes: int
    staging: str
    number: int
    plan: RowPlan
    limits: Limits
    on_changed_file: OnChangedFile
    target_file_bytes: int


@dataclass(frozen=True, slots=True)
class BinFile:
    """What became of one file.

    Attributes:
        index: In the manifest.
        report: Its audit.
        new_keys: Keys without a column that no earlier file of the bin has, as first seen.
    """

    index: int
    report: FileReport
    new_keys: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class BinResult:
    """What became of a bin.

    Attributes:
        files: In its order.
        seen_keys: Keys with a column that some file has.
        outputs: URIs of the staged Parquet files of rows; of no use if `lacks_columns`.
        output_bytes: Their length.
        rejects_uri: The staged Parquet file of all rejects, if there are any.
        rescued_values: Values that do not fit the type of their column.
        lacks_columns: A key has no place to go, so the bin has to be done again when it has one.
    """

    files: tuple[BinFile, ...]
    seen_keys: tuple[str, ...]
    outputs: tuple[str, ...]
    output_bytes: int
    rejects_uri: str | None
    rescued_values: int
    lacks_columns: bool

    @property
    def records(self) -> int:
        return sum(file.report.records for file in self.files)


def write_bin(store: ObjectStore, task: BinTask, new_kernel: NewKernel) -> BinResult:
    """Do a task; repeating it writes the same names with the same content.

    A file that is missing, changed, unreadable or too large is reported as such and leaves nothing behind. Where rows
    of it were handed on before that came out, the bin is done again without it.

    Args:
        store: Where the files are, and where rows and rejects are staged.
        task: What to do.
        new_kernel: Makes what builds the rows.

    Raises:
        StoreUnavailable: Passing trouble of the store, or of the local disk.
        AccessError: The store refused access.
        StagingError: Files change again and again, or the kernel has a fault.
    """
    known: dict[int, WalkedFile[tuple[str, ...]]] = {}
    try:
        for number in range(len(task.files) + MAX_STARTS):
            result = _Pass(store, task, new_kernel, known, number).run()
            if result is not None:
                return result
    except OSError as exc:  # stores have errors of their own, so it is the scratch folder: a full disk, say
        raise StoreUnavailable(f"scratch files in {tempfile.gettempdir()}: {exc}") from exc
    raise StagingError(f"manifest {task.plan.manifest_id}: files of bin {task.number} change again and again")


class _OfNoUseError(Exception):
    """What was written so far is to be abandoned."""


class _Pass:
    """One pass over the files of a bin.

    `_is_spoilt` tells that rows of a file which is not to be taken in were handed on.
    """

    def __init__(
        self,
        store: ObjectStore,
        task: BinTask,
        new_kernel: NewKernel,
        known: dict[int, WalkedFile[tuple[str, ...]]],
        number: int,
    ) -> None:
        self._store = store
        self._task = task
        self._known = known
        self._kernel: Kernel = new_kernel(task.plan)
        self._outputs = _Outputs(store, self._kernel, f"{task.staging}out/{task.number:06d}-{number}-")
        self._walk = FileWalk(store, task.plan.manifest_id, task.on_changed_file)
        self._is_spoilt = False

    def run(self) -> BinResult | None:
        """Do it.

        Returns:
            What became of the bin; None if it has to be done again, with what `known` holds by now.
        """
        walked: dict[int, WalkedFile[tuple[str, ...]]] = dict(self._known)
        with self._walk as walk:
            path = walk.scratch / "rejects.parquet"
            with RejectsWriter(path) as rejects, suppress(_OfNoUseError), self._outputs:
                for file in walk.files(
                    [each for each in self._task.files if each[0] not in walked], rejects, self._read
                ):
                    walked[file.index] = file
                    if self._is_spoilt:
                        self._know(file)
                        raise _OfNoUseError
                if self._kernel.lacks_columns:
                    raise _OfNoUseError
                self._outputs.finish()
            if self._is_spoilt:
                return None
            rejects_uri = f"{self._task.staging}rejects/{self._task.number:06d}.parquet" if rejects.rows else None
            if rejects_uri is not None:
                self._store.upload(rejects_uri, path)
            return self._result(walked, rejects_uri)

    def _know(self, file: WalkedFile[tuple[str, ...]]) -> None:
        """Leave a file out of further passes, unless it was read to its end after all."""
        if file.found is None:
            self._known[file.index] = file

    def _result(self, walked: Mapping[int, WalkedFile[tuple[str, ...]]], rejects_uri: str | None) -> BinResult:
        kernel = self._kernel
        return BinResult(
            files=tuple(
                BinFile(index, walked[index].report, walked[index].found or ()) for index, _ in self._task.files
            ),
            seen_keys=tuple(kernel.seen_keys()),
            outputs=tuple(self._outputs.uris),
            output_bytes=self._outputs.written_bytes,
            rejects_uri=rejects_uri,
            rescued_values=kernel.rescued_values,
            lacks_columns=kernel.lacks_columns,
        )

    def _read(self, file: OpenedFile, on_reject: Callable[[Reject], None]) -> tuple[LineCounts, tuple[str, ...]]:
        kernel = self._kernel
        kernel.begin_file(file.uri)
        try:
            with closing(self._walk.decoded(file)) as decoded:
                counts = split_lines(
                    decoded, self._task.limits, self._judge, on_reject=on_reject, block_bytes=BLOCK_BYTES
                )
        except (FileError, ObjectChanged, ObjectNotFound):
            self._is_spoilt |= not kernel.withdraw_file()
            raise
        new_keys = tuple(kernel.end_file())
        self._hand_on()
        return counts, new_keys

    def _judge(self, block: bytes) -> Judged:
        lines, blank_lines, refused = self._kernel.read(block)
        self._hand_on()
        return Judged(lines, blank_lines, [_refused(number, start, block[start:end]) for number, start, end in refused])

    def _hand_on(self) -> None:
        """Write what is complete, and close the file where it is as large as it should be."""
        outputs = self._outputs
        outputs.hand_on()
        done = min(1.0, self._walk.stored_bytes_read / max(self._task.stored_bytes, 1))
        current = self._kernel.output_bytes
        if done and closes_file(current, outputs.written_bytes, done, self._task.target_file_bytes):
            outputs.finish()


class _Outputs:
    """The Parquet files of a pass, written as they grow. Leaving the context by an exception abandons the open one.

    Args:
        store: Where to write.
        kernel: What makes their bytes.
        name: How their URIs begin.
    """

    def __init__(self, store: ObjectStore, kernel: Kernel, name: str) -> None:
        self.uris: list[str] = []
        self._store = store
        self._kernel = kernel
        self._name = name
        self._finished_bytes = 0
        self._current_bytes = 0
        self._stack = ExitStack()
        self._writer: ObjectWriter | None = None

    @property
    def written_bytes(self) -> int:
        """The length of the files that are finished."""
        return self._finished_bytes

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stack.__exit__(kind, error, trace)

    def hand_on(self) -> None:
        """Write what the kernel has completed."""
        self._write(self._kernel.take())

    def finish(self) -> None:
        """End the open file, if there is one."""
        self._write(self._kernel.finish_output())
        if self._writer is not None:
            self._stack.close()
            self._stack, self._writer = ExitStack(), None
            self._finished_bytes += self._current_bytes
            self._current_bytes = 0

    def _write(self, data: bytes) -> None:
        if not data:
            return
        if self._writer is None:
            uri = f"{self._name}{len(self.uris):03d}.parquet"
            self._writer = self._stack.enter_context(self._store.writer(uri))
            self.uris.append(uri)
        self._writer.write(data)
        self._current_bytes += len(data)


def _refused(number: int, start: int, raw: bytes) -> Refused:
    reason = refusal(raw)
    if not reason:
        raise StagingError(f"the native kernel refused a record: {raw[:100]!r}; expected it to take it")
    return Refused(number, start, reason, raw)
