"""One task of the native engine: reads the files of a bin once, and stages their rows and rejects."""

import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass
from uuid import uuid4

from compactor.core.errors import (
    FileError,
    ManifestError,
    ObjectChanged,
    ObjectNotFound,
    StagingError,
    StoreUnavailable,
)
from compactor.core.manifest import ManifestFile
from compactor.core.ports import ObjectStore
from compactor.core.records import FileReport
from compactor.engines.bin_outputs import BinOutputs
from compactor.engines.kernel import Kernel, NewKernel, RowPlan
from compactor.ndjson.file_walk import FileWalk, OnChangedFile, OpenedFile, WalkedFile
from compactor.ndjson.inspection import BLANK_LINE, MAX_KEYS, refusals
from compactor.ndjson.line_splitting import split_lines
from compactor.ndjson.lines import Judged, Limits, LineCounts, Refused, Reject
from compactor.ndjson.rejects import RejectsWriter

BLOCK_BYTES = 1024 * 1024
"""How much the kernel looks at together. Measured: no slower than more."""


_REFUSED_TOGETHER = 4096  # lines that inspection looks at together; few, as each becomes an object

MAX_PASSES = 4
"""How often a bin may be read: once more for files that cannot be read whole, and again for those that change."""


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
    """Do a task. A second run of it touches nothing that the first one reported.

    A file that is missing, changed, unreadable or too large is reported as such and leaves nothing behind. Where rows
    of one were handed on before that came out, the bin is done again without those that could not be read.

    Args:
        store: Where the files are, and where rows and rejects are staged.
        task: What to do.
        new_kernel: Makes what builds the rows.

    Raises:
        StoreUnavailable: Passing trouble of the store, or of the local disk.
        AccessError: The store refused access.
        ManifestError: `too_many_keys`: the files hold more of them than any table can have columns.
        StagingError: Files change again and again, or the kernel has a fault.
    """
    known: dict[int, WalkedFile[tuple[str, ...]]] = {}
    try:
        for number in range(MAX_PASSES):
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

    `_needs_rescan` tells that rows of a file which is not to be taken in were handed on.
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
        # Two runs of a task, one of which was thought lost, must not write over what the other one has reported.
        self._name = f"{task.number:06d}-{number}-{uuid4().hex[:8]}"
        outputs = f"{task.staging}out/{self._name}-"
        self._outputs = BinOutputs(store, self._kernel, outputs, task.target_file_bytes)
        self._walk = FileWalk(
            store, task.plan.manifest_id, task.on_changed_file, counted_bytes=max(task.stored_bytes // 64, 1024 * 1024)
        )
        self._needs_rescan = False
        self._new_keys = 0

    def run(self) -> BinResult | None:
        """Do it.

        Returns:
            What became of the bin; None if it has to be done again, with what `known` holds by now.
        """
        walked: dict[int, WalkedFile[tuple[str, ...]]] = dict(self._known)
        files = [file for file in self._task.files if file[0] not in walked]
        with self._walk as walk:
            path = walk.scratch / "rejects.parquet"
            with RejectsWriter(path) as rejects, suppress(_OfNoUseError), self._outputs:
                walked.update((file.index, file) for file in walk.files(files, rejects, self._read))
                if self._needs_rescan or self._kernel.lacks_columns:
                    raise _OfNoUseError
                self._outputs.finish()
            if self._needs_rescan:
                # All that could not be read are known by now, so that one more pass will do.
                self._known.update((index, file) for index, file in walked.items() if file.found is None)
                return None
            rejects_uri = f"{self._task.staging}rejects/{self._name}.parquet" if rejects.rows else None
            if rejects_uri is not None:
                self._store.upload(rejects_uri, path)
            return self._result(walked, rejects_uri)

    def _result(self, walked: Mapping[int, WalkedFile[tuple[str, ...]]], rejects_uri: str | None) -> BinResult:
        kernel = self._kernel
        return BinResult(
            files=tuple(
                BinFile(index, walked[index].report, walked[index].found or ()) for index, _ in self._task.files
            ),
            seen_keys=tuple(kernel.seen_keys()),
            outputs=tuple(self._outputs.uris),
            output_bytes=self._outputs.finished_bytes,
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
            self._needs_rescan |= not kernel.withdraw_file()
            raise
        new_keys = tuple(kernel.end_file())
        self._new_keys += len(new_keys)
        if self._new_keys > MAX_KEYS:  # nothing is gained by collecting more of them
            where = f"manifest {self._task.plan.manifest_id}"
            raise ManifestError("too_many_keys", f"{where}: more than {MAX_KEYS} different keys, expected columns")
        self._flush()
        return counts, new_keys

    def _judge(self, block: bytes) -> Judged:
        lines, blank_lines, refused = self._kernel.read(block)
        self._flush()
        return Judged(lines, blank_lines, _refused(block, refused))

    def _flush(self) -> None:
        if self._needs_rescan:
            self._kernel.take()
        else:
            self._outputs.flush(min(1.0, self._walk.stored_bytes_read / max(self._task.stored_bytes, 1)))


def _refused(block: bytes, places: Sequence[tuple[int, int, int]]) -> Iterator[Refused]:
    """The lines that the kernel refused, each with the reason that inspection gives."""
    for at in range(0, len(places), _REFUSED_TOGETHER):
        part = places[at : at + _REFUSED_TOGETHER]
        raws = [block[start:end] for _, start, end in part]
        reasons = {index: reason for index, reason in refusals(raws) if reason != BLANK_LINE}
        for index, ((number, start, _), raw) in enumerate(zip(part, raws, strict=True)):
            reason = reasons.get(index)
            if reason is None:
                raise StagingError(
                    f"the native kernel refused a record of {len(raw)} bytes, from byte {start} of a block of "
                    f"{len(block)}; expected it to take it"
                )
            yield Refused(number, start, reason, raw)
