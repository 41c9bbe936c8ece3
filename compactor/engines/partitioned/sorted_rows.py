"""Sorts rows by partition in bounded memory: a run at a time, all but the last of which go to a scratch file.

Any number of partitions costs the same: rows of one are read from all runs, then those of the next.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

RUN_BYTES = 64 * 1024 * 1024
"""Values of the rows that are sorted in memory at once."""

CHUNK_BYTES = 512 * 1024
"""Values in one block of the scratch file. Memory has a block of each run while partitions are read in turn."""


@dataclass(slots=True)
class _Run:
    """Sorted rows, in memory or in blocks of the scratch file.

    Attributes:
        ranges: First row and end of each partition.
        rows: Those in memory; None if they are in the file.
        first_block: Number of the first block.
        block_rows: Rows of each block but the last one.
        held: The last block that was read, with its number.
    """

    ranges: dict[int, tuple[int, int]]
    rows: pa.Table | None
    first_block: int = 0
    block_rows: int = 0
    held: tuple[int, pa.RecordBatch] | None = None


@dataclass(slots=True)
class SortedRows:
    """Takes rows with the number of their partition, and gives them back by partition.

    Attributes:
        path: Of the scratch file, which is written if the rows do not fit into memory.
        schema: The columns of the rows.
        run_bytes: See `RUN_BYTES`.
        spilled_bytes: Values that went to the scratch file, before compression.
    """

    path: Path
    schema: pa.Schema
    run_bytes: int = RUN_BYTES
    spilled_bytes: int = 0
    _total: tuple[int, int] = (0, 0)  # rows and bytes
    _batches: list[pa.RecordBatch] = field(default_factory=list)
    _codes: list[pa.Array] = field(default_factory=list)
    _bytes: int = 0
    _runs: list[_Run] = field(default_factory=list)
    _blocks: int = 0
    _writer: Any = None
    _reader: Any = None

    def add(self, batch: pa.RecordBatch, codes: pa.Array) -> None:
        """Take the rows of a batch.

        Args:
            batch: The rows.
            codes: The number of the partition of each, as int64.

        Raises:
            OSError: The scratch file cannot be written.
        """
        if self._bytes and self._bytes + batch.nbytes > self.run_bytes:
            self._spill()
        rows, size = self._total
        self._total = rows + batch.num_rows, size + batch.nbytes
        self._batches.append(batch)
        self._codes.append(codes)
        self._bytes += batch.nbytes

    def finish(self) -> None:
        """End with the last run, which stays in memory."""
        if self._batches:
            rows, ranges = self._sorted()
            self._runs.append(_Run(ranges, rows))
        if self._writer is not None:
            self._writer.close()
            self._reader = pa.ipc.open_file(pa.OSFile(str(self.path)))

    def bytes_of(self, code: int) -> int:
        """About how many bytes the values of a partition have, after `finish`."""
        ranges = (run.ranges.get(code, (0, 0)) for run in self._runs)
        rows, size = self._total
        return sum(end - start for start, end in ranges) * size // max(rows, 1)

    def rows_of(self, code: int) -> Iterator[pa.Table]:
        """The rows of a partition, after `finish`."""
        for run in self._runs:
            start, end = run.ranges.get(code, (0, 0))
            if run.rows is not None and end > start:
                yield run.rows.slice(start, end - start)
            while run.rows is None and start < end:
                number, offset = divmod(start, run.block_rows)
                part = self._block(run, number).slice(offset, end - start)
                yield pa.Table.from_batches([part])
                start += part.num_rows

    def _block(self, run: _Run, number: int) -> pa.RecordBatch:
        if run.held is None or run.held[0] != number:
            run.held = number, self._reader.get_batch(run.first_block + number)
        return run.held[1]

    def _sorted(self) -> tuple[pa.Table, dict[int, tuple[int, int]]]:
        rows = pa.Table.from_batches(self._batches).combine_chunks()
        codes = pa.chunked_array(self._codes).combine_chunks()
        self._batches, self._codes, self._bytes = [], [], 0
        ordered = pc.sort_indices(codes)
        counted = codes.take(ordered).value_counts()
        ranges, start = dict[int, tuple[int, int]](), 0
        for code, number in zip(counted.field("values").to_pylist(), counted.field("counts").to_pylist(), strict=True):
            ranges[code] = start, start + number
            start += number
        return rows.take(ordered), ranges

    def _spill(self) -> None:
        size = self._bytes
        rows, ranges = self._sorted()
        if self._writer is None:
            options = pa.ipc.IpcWriteOptions(compression="lz4", use_threads=False)
            self._writer = pa.ipc.new_file(pa.OSFile(str(self.path), "wb"), self.schema, options=options)
        block_rows = max(1, rows.num_rows * CHUNK_BYTES // max(size, 1))
        self._writer.write_table(rows.combine_chunks(), max_chunksize=block_rows)
        self._runs.append(_Run(ranges, None, self._blocks, block_rows))
        self._blocks += -(-rows.num_rows // block_rows)
        self.spilled_bytes += size
