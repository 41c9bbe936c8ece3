"""Writes rejected lines as one Parquet file per task. Spools them per input file, so that a file can be withdrawn."""

import tempfile
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from types import TracebackType
from typing import Self

import pyarrow as pa
import pyarrow.parquet as pq

from compactor.core.documents.records import FileStatus
from compactor.core.errors import FileError
from compactor.ndjson.files.scratch import Scratch
from compactor.ndjson.kinds.binary_kinds import HEAD_BYTES, Kind, registry_kind
from compactor.ndjson.lines import Reject, RejectLimits

REJECTS_SCHEMA = pa.schema(
    [
        ("manifest_id", pa.string()),
        ("source_uri", pa.string()),
        ("line_number", pa.int64()),
        ("byte_offset", pa.int64()),
        ("reason", pa.string()),
        ("raw", pa.binary()),
        ("kept", pa.string()),
    ]
)
"""`line_number` counts from 1, `byte_offset` is in the decoded file, `raw` has the exact bytes, and `kept` the values
to carry into the record, as a JSON object."""

SAMPLE_ROWS = 1_000
"""The most rejects kept as samples of a file that has too many."""

SAMPLE_BYTES = 256 * 1024
"""The most bytes of samples."""

_BATCH_ROWS = 2_000
_BATCH_BYTES = 1024 * 1024  # of `raw`; one row may be longer
_SPOOL_BYTES = 4 * 1024 * 1024  # a larger spool moves from memory to disk
_ROW_GROUP_BYTES = 16 * 1024 * 1024
_REPEATING = ["manifest_id", "source_uri", "reason"]


class RejectSpool:
    """Holds the rejects of one file until the file has been read to its end.

    Args:
        source_uri: The file's URI as spelled in the manifest.

    Attributes:
        kept_rows: Rows of the kept lines, all of them complete.
        unkept: Lines only counted, by reason.
    """

    def __init__(self, manifest_id: str, source_uri: str, limits: RejectLimits, scratch: Scratch) -> None:
        self.kept_rows = 0
        self.unkept: Counter[str] = Counter()
        self._limits = limits
        self._max_lines, self._max_bytes = limits.max_lines, limits.max_bytes
        self._scratch = scratch
        self._lines = 0
        self._bytes = 0
        self._line = 0  # the number of the last line
        self._rows_before = 0  # rows before that line
        self._spooled_bytes = 0
        self._manifest_id = manifest_id
        self._source_uri = source_uri
        self._first = b""  # the beginning of the first reject
        self._held: list[Reject] = []
        self._full_bytes = _BATCH_BYTES
        self._file: tempfile.SpooledTemporaryFile[bytes] | None = None
        self._stream: pa.ipc.RecordBatchStreamWriter | None = None

    def add(self, reject: Reject) -> None:
        """Add one reject; only count its line if there are too many.

        Raises:
            FileError: `too_many_rejects`, if the settings quarantine such a file, or if only Spark rejects the line;
                `too_much_scratch`.
        """
        line_number, raw = reject.line_number, reject.raw
        is_next = line_number != self._line
        if is_next:
            if not self._lines:
                self._first = raw[:HEAD_BYTES]
            self._line, self._rows_before = line_number, self.kept_rows
            self._lines += 1
        self._bytes = length = self._bytes + len(raw)
        if length > self._max_bytes or self._lines > self._max_lines:
            self._exceed(reject, is_next=is_next)
            return
        self.kept_rows += 1
        held = self._held
        held.append(reject)
        if len(held) >= _BATCH_ROWS or length >= self._full_bytes:
            self._flush()

    @property
    def kind(self) -> Kind | None:
        """The kind of the file, guessed from the first reject; None if unclear."""
        return registry_kind(self._first)

    def _exceed(self, reject: Reject, *, is_next: bool) -> None:
        # A second reading of the input finds all others again; this one would be recorded nowhere.
        is_found_again = reject.reason != "parsers_disagree"
        if self._limits.on_excess == "quarantine" or not is_found_again:
            of_kind = "" if self.kind is None else f"; the first {self.kind.words}"
            raise FileError(
                FileStatus.TOO_MANY_REJECTS,
                f"line {reject.line_number:,}: {self._lines:,} lines of {self._bytes:,} bytes rejected so far "
                f"({reject.reason}); expected at most max_rejected_lines = {self._limits.max_lines:,} and "
                f"{self._limits.max_bytes:,} bytes{of_kind}",
            )
        if is_next or self.kept_rows > self._rows_before:
            self.unkept[reject.reason] += 1
        # The first pieces of the line stay in the spool, after all kept lines.
        self.kept_rows = self._rows_before
        self._max_bytes = -1  # nothing after it is kept

    def _flush(self) -> None:
        if self._file is None:
            self._file = tempfile.SpooledTemporaryFile(max_size=_SPOOL_BYTES)  # noqa: SIM115 - close() ends it
            self._stream = pa.ipc.new_stream(pa.PythonFile(self._file, "w"), REJECTS_SCHEMA)
        if self._stream is not None and self._held:
            batch = self._batch()
            self._scratch.take(batch.nbytes)
            self._spooled_bytes += batch.nbytes
            self._stream.write_batch(batch)
        self._held, self._full_bytes = [], self._bytes + _BATCH_BYTES

    def _batch(self) -> pa.RecordBatch:
        held, rows = self._held, len(self._held)
        return pa.record_batch(
            [
                pa.repeat(pa.scalar(self._manifest_id, pa.string()), rows),
                pa.repeat(pa.scalar(self._source_uri, pa.string()), rows),
                pa.array([reject.line_number for reject in held], pa.int64()),
                pa.array([reject.byte_offset for reject in held], pa.int64()),
                pa.array([reject.reason for reject in held], pa.string()),
                pa.array([reject.raw for reject in held], pa.binary()),
                pa.array([b"{%s}" % reject.fields if reject.fields else None for reject in held], pa.string()),
            ],
            schema=REJECTS_SCHEMA,
        )

    def move_to(self, writer: "RejectsWriter") -> None:
        """Write all kept rejects; this empties the spool."""
        left = self.kept_rows
        for batch in self._batches():
            if left:
                writer.write(batch.slice(0, left))
            left -= min(left, batch.num_rows)
        self.close()

    def move_samples_to(self, writer: "RejectsWriter") -> int:
        """Write the first rejects as samples; return their number. This empties the spool."""
        first = next(self._batches(), None)
        rows, length_bytes = 0, 0
        for raw in first["raw"][:SAMPLE_ROWS] if first is not None else ():
            length_bytes += len(raw.as_py())
            if length_bytes > SAMPLE_BYTES:
                break
            rows += 1
        if first is not None and rows:
            writer.write(first.slice(0, rows))
        self.close()
        return rows

    def _batches(self) -> Iterator[pa.RecordBatch]:
        if self._file is None or self._stream is None:
            if self._held:
                yield self._batch()
            return
        self._flush()
        self._stream.close()
        self._file.seek(0)
        with pa.ipc.open_stream(pa.PythonFile(self._file, "r")) as batches:
            yield from batches

    def close(self) -> None:
        """Discard the unwritten rejects."""
        self._held = []
        if self._file is not None:
            self._file.close()
        self._file = self._stream = None
        self._scratch.give_back(self._spooled_bytes)
        self._spooled_bytes = 0


class RejectsWriter:
    """Writes one Parquet file of rejects to local disk, created with the first row."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._writer: pq.ParquetWriter | None = None
        self._pending: list[pa.RecordBatch] = []
        self._pending_bytes = 0
        self.rows = 0

    @property
    def size_bytes(self) -> int:
        """The bytes on disk, plus the pending ones."""
        return self._pending_bytes + (self.path.stat().st_size if self._writer is not None else 0)

    def write(self, batch: pa.RecordBatch) -> None:
        """Append rows; small batches share a row group."""
        self._pending.append(batch)
        self._pending_bytes += batch.nbytes
        self.rows += batch.num_rows
        if self._pending_bytes >= _ROW_GROUP_BYTES:
            self._flush()

    def finish(self) -> None:
        """Complete the file."""
        self._flush()
        if self._writer is not None:
            self._writer.close()

    def _flush(self) -> None:
        if not self._pending:
            return
        if self._writer is None:
            self._writer = pq.ParquetWriter(
                self.path,
                REJECTS_SCHEMA,
                compression="snappy",
                use_dictionary=_REPEATING,
                write_statistics=_REPEATING,
                write_page_checksum=True,
            )
        self._writer.write_table(pa.Table.from_batches(self._pending))
        self._pending, self._pending_bytes = [], 0

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if kind is None:
            self.finish()
        elif self._writer is not None:
            self._writer.close()
