"""Splits staged rows into files of one partition each."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from compactor.core.errors import StagingError
from compactor.core.map_ordered import map_ordered
from compactor.core.partitions import PartitionValues, folders
from compactor.core.ports import ObjectStore
from compactor.engines.engine import StagedOutput
from compactor.engines.parquet_files import StoredParquet, open_parquet, rows_at_once
from compactor.engines.partitioned.counting import BATCH_ROWS, PartitionRules
from compactor.engines.partitioned.partition_files import PartitionFiles
from compactor.engines.partitioned.row_partitions import RowPartitions, without_values
from compactor.engines.rows_place import RowsPlace
from compactor.ndjson.files.scratch import scratch_folder

# Sorts rows by partition in bounded memory, one run at a time; all runs but the last go to a scratch file.
#
# The cost is independent of the number of partitions: rows of one are read from all runs, then those of the next.


RUN_BYTES = 64 * 1024 * 1024
"""Size of values sorted in memory at once."""

CHUNK_BYTES = 512 * 1024
"""Size of values per block of the scratch file. Memory holds one block per run while partitions are read in turn."""


@dataclass(slots=True)
class _Run:
    """Sorted rows, in memory or in blocks of the scratch file.

    Attributes:
        ranges: First row and end of each partition.
        rows: The rows in memory; None if they are in the file.
        held: The last block read, with its number.
    """

    ranges: dict[int, tuple[int, int]]
    rows: pa.Table | None
    first_block: int = 0
    block_rows: int = 0
    held: tuple[int, pa.RecordBatch] | None = None


@dataclass(slots=True)
class SortedRows:
    """Takes rows with their partition numbers, and returns them by partition.

    Attributes:
        path: The scratch file, written only if the rows do not fit into memory.
        spilled_bytes: Size of the values that went to the scratch file, before compression.
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
        """Add the rows of a batch.

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
        if self._batches:
            rows, ranges = self._sorted()
            self._runs.append(_Run(ranges, rows))
        if self._writer is not None:
            self._writer.close()
            self._reader = pa.ipc.open_file(pa.OSFile(str(self.path)))

    def bytes_of(self, code: int) -> int:
        """The approximate size of a partition's values, after `finish`."""
        ranges = (run.ranges.get(code, (0, 0)) for run in self._runs)
        rows, size = self._total
        return sum(end - start for start, end in ranges) * size // max(rows, 1)

    def rows_of(self, code: int) -> Iterator[pa.Table]:
        """A partition's rows, after `finish`."""
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


_BATCH_BYTES = 8 * 1024 * 1024
_AT_ONCE = 8

SMALL_BYTES = 2 * 1024 * 1024
"""A partition with smaller values is encoded in memory, and stored while the next ones are encoded."""


@dataclass(frozen=True, slots=True)
class _File:
    """A file of the partition with this number; includes its bytes until they are stored."""

    code: int
    uri: str
    rows: int
    data: bytes = b""


@dataclass(frozen=True, slots=True)
class PartitionSplitter:
    """Partitions one manifest's rows.

    Attributes:
        kept: The partitions that get their own files. All other rows share files without values.
    """

    store: ObjectStore
    rules: PartitionRules
    kept: Sequence[PartitionValues]
    place: RowsPlace
    run_bytes: int = RUN_BYTES
    small_bytes: int = SMALL_BYTES

    def split(self, outputs: Sequence[StagedOutput]) -> Iterator[StagedOutput]:
        """Split staged files. Files with the same columns are split together, for fewer files.

        Raises:
            StagingError: A file cannot be read, or the number of written rows is wrong.
            StoreUnavailable: A file could not be written.
            OSError: The scratch folder failed.
        """
        numbers = count()
        versions = sorted({output.schema.version for output in outputs})
        for version in versions:
            yield from self._split([output for output in outputs if output.schema.version == version], numbers)

    def _split(self, outputs: Sequence[StagedOutput], numbers: Iterator[int]) -> Iterator[StagedOutput]:
        schema = outputs[0].schema
        opened = [(output, open_parquet(self.store, output.uri)[0]) for output in outputs]
        written = sum(file.metadata.num_rows for _, file in opened)
        columns = opened[0][1].schema_arrow
        with scratch_folder() as scratch:
            rows = SortedRows(scratch / "rows.arrow", columns, self.run_bytes)
            for output, file in opened:
                self._read(output, file, rows)
            rows.finish()
            files = PartitionFiles(
                self.store, columns, self.rules.compression, self.rules.target_file_bytes, self.place
            )
            for each in map_ordered(self._stored, self._files(rows, files, numbers), threads=_AT_ONCE):
                written -= each.rows
                none = each.code == len(self.kept)
                yield StagedOutput(each.uri, schema, self._values(each.code), holds_others=none)
        if written:  # guard: no row is lost in the split into partitions
            raise StagingError(f"{outputs[0].uri}: {written} of its rows were not written to partitions; expected all")

    def _values(self, code: int) -> PartitionValues:
        return without_values(self.rules.fields) if code == len(self.kept) else self.kept[code]

    def _files(self, rows: SortedRows, files: PartitionFiles, numbers: Iterator[int]) -> Iterator[_File]:
        """Yield the files in order. The caller stores small ones, several at once, because stores are slow."""
        for code in range(len(self.kept) + 1):
            partition = folders(self.rules.fields, self._values(code))
            new_uri = (self.place.uri(f"{number:06d}", partition) for number in numbers)
            if rows.bytes_of(code) > min(self.small_bytes, self.rules.target_file_bytes):
                for uri, number in files.write(rows.rows_of(code), new_uri):
                    yield _File(code, uri, number)
                continue
            data, number = files.encoded(rows.rows_of(code))
            if number:
                yield _File(code, next(new_uri), number, data)

    def _stored(self, file: _File) -> _File:
        if file.data:
            self.place.put(self.store, file.uri, file.data)
        return _File(file.code, file.uri, file.rows)

    def _read(self, output: StagedOutput, file: StoredParquet, rows: SortedRows) -> None:
        partitions = RowPartitions(self.rules.fields, output.schema)
        numbers = {values: number for number, values in enumerate(self.kept)}
        try:
            for batch in file.iter_batches(batch_size=rows_at_once(file, BATCH_ROWS, _BATCH_BYTES)):
                codes = partitions.of(batch)
                targets = pa.array([numbers.get(values, len(self.kept)) for values in codes.values], pa.int64())
                rows.add(batch, targets.take(codes.rows))
        except pa.ArrowInvalid as exc:
            raise StagingError(f"{output.uri}: {exc}; expected a complete Parquet file") from exc
