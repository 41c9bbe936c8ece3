"""Writes rejected lines as one Parquet file a task, spooled per input file so that a file can be withdrawn."""

import tempfile
from pathlib import Path
from types import TracebackType
from typing import Self

import pyarrow as pa
import pyarrow.parquet as pq

from compactor.ndjson.lines import Reject

REJECTS_SCHEMA = pa.schema(
    [
        ("manifest_id", pa.string()),
        ("source_uri", pa.string()),
        ("line_number", pa.int64()),
        ("byte_offset", pa.int64()),
        ("reason", pa.string()),
        ("raw", pa.binary()),
    ]
)
"""`line_number` counts from 1, `byte_offset` is in the decoded file, `raw` has the exact bytes."""

_BATCH_ROWS = 10_000
_BATCH_BYTES = 1024 * 1024  # of `raw`; one row may be longer
_SPOOL_BYTES = 4 * 1024 * 1024  # a larger spool moves from memory to disk
_ROW_GROUP_BYTES = 16 * 1024 * 1024
_REPEATING = ["manifest_id", "source_uri", "reason"]


class RejectSpool:
    """Holds the rejects of one file until it is known that the file can be read to its end.

    Args:
        source_uri: The URI of the file as spelled in the manifest.
    """

    def __init__(self, manifest_id: str, source_uri: str) -> None:
        self._manifest_id = manifest_id
        self._source_uri = source_uri
        self._held: list[Reject] = []
        self._held_bytes = 0
        self._file: tempfile.SpooledTemporaryFile[bytes] | None = None
        self._stream: pa.ipc.RecordBatchStreamWriter | None = None

    def add(self, reject: Reject) -> None:
        """Add one reject."""
        self._held.append(reject)
        self._held_bytes += len(reject.raw)
        if len(self._held) >= _BATCH_ROWS or self._held_bytes >= _BATCH_BYTES:
            self._flush()

    def _flush(self) -> None:
        if self._file is None:
            self._file = tempfile.SpooledTemporaryFile(max_size=_SPOOL_BYTES)  # noqa: SIM115 - close() ends it
            self._stream = pa.ipc.new_stream(pa.PythonFile(self._file, "w"), REJECTS_SCHEMA)
        if self._stream is not None and self._held:
            self._stream.write_batch(self._batch())
        self._held, self._held_bytes = [], 0

    def _batch(self) -> pa.RecordBatch:
        held = self._held
        return pa.record_batch(
            [
                pa.array([self._manifest_id] * len(held), pa.string()),
                pa.array([self._source_uri] * len(held), pa.string()),
                pa.array([reject.line_number for reject in held], pa.int64()),
                pa.array([reject.byte_offset for reject in held], pa.int64()),
                pa.array([reject.reason for reject in held], pa.string()),
                pa.array([reject.raw for reject in held], pa.binary()),
            ],
            schema=REJECTS_SCHEMA,
        )

    def move_to(self, writer: "RejectsWriter") -> None:
        """Write all rejects; the spool is empty afterwards."""
        if self._file is None and self._held:
            writer.write(self._batch())
        elif self._file is not None and self._stream is not None:
            self._flush()
            self._stream.close()
            self._file.seek(0)
            with pa.ipc.open_stream(pa.PythonFile(self._file, "r")) as batches:
                for batch in batches:
                    writer.write(batch)
        self.close()

    def close(self) -> None:
        """Discard the rejects that were not written."""
        self._held, self._held_bytes = [], 0
        if self._file is not None:
            self._file.close()
        self._file = self._stream = None


class RejectsWriter:
    """Writes one Parquet file of rejects to local disk. Creates it with the first row."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._writer: pq.ParquetWriter | None = None
        self._pending: list[pa.RecordBatch] = []
        self._pending_bytes = 0
        self.rows = 0

    def write(self, batch: pa.RecordBatch) -> None:
        """Append rows; small batches share a row group."""
        self._pending.append(batch)
        self._pending_bytes += batch.nbytes
        self.rows += batch.num_rows
        if self._pending_bytes >= _ROW_GROUP_BYTES:
            self._flush()

    def _flush(self) -> None:
        if not self._pending:
            return
        if self._writer is None:
            self._writer = pq.ParquetWriter(
                self._path, REJECTS_SCHEMA, compression="snappy", use_dictionary=_REPEATING, write_statistics=_REPEATING
            )
        self._writer.write_table(pa.Table.from_batches(self._pending))
        self._pending, self._pending_bytes = [], 0

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if kind is None:
            self._flush()
        if self._writer is not None:
            self._writer.close()
