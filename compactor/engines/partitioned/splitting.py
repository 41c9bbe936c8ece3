"""Divides the rows of staged files into files of one partition each."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from tempfile import TemporaryDirectory

import pyarrow as pa

from compactor.core.errors import StagingError
from compactor.core.map_ordered import map_ordered
from compactor.core.partitions import PartitionValues, folders
from compactor.core.ports import ObjectStore
from compactor.engines.engine import StagedOutput
from compactor.engines.parquet_files import StoredParquet, open_parquet
from compactor.engines.partitioned.counting import BATCH_ROWS
from compactor.engines.partitioned.partition_files import PartitionFiles
from compactor.engines.partitioned.row_partitions import RowPartitions, without_values
from compactor.engines.partitioned.rules import PartitionRules
from compactor.engines.partitioned.sorted_rows import RUN_BYTES, SortedRows
from compactor.engines.rows_place import RowsPlace

_BATCH_BYTES = 8 * 1024 * 1024
_AT_ONCE = 8

SMALL_BYTES = 2 * 1024 * 1024
"""Values of a partition whose file is made in memory, and stored while the next ones are made."""


@dataclass(frozen=True, slots=True)
class _File:
    """A file of the partition with this number; with its bytes, if they are not stored yet."""

    code: int
    uri: str
    rows: int
    data: bytes = b""


@dataclass(frozen=True, slots=True)
class Splitter:
    """Divides the rows of one manifest.

    Attributes:
        store: Has the files, and receives the new ones.
        rules: The settings.
        kept: The partitions that get files of their own. All other rows are in one without values.
        place: Where new files go.
        run_bytes: See `RUN_BYTES`.
        small_bytes: See `SMALL_BYTES`.
    """

    store: ObjectStore
    rules: PartitionRules
    kept: Sequence[PartitionValues]
    place: RowsPlace
    run_bytes: int = RUN_BYTES
    small_bytes: int = SMALL_BYTES

    def split(self, outputs: Sequence[StagedOutput]) -> Iterator[StagedOutput]:
        """Divide staged files. Those with the same columns are divided together, for fewer files.

        Raises:
            StagingError: A file cannot be read, or other rows were written than there are.
            StoreUnavailable: A file could not be written.
            OSError: Trouble of the scratch folder.
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
        with TemporaryDirectory(prefix="compactor-") as scratch:
            rows = SortedRows(Path(scratch) / "rows.arrow", columns, self.run_bytes)
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
        if written:  # guard: no row is lost while rows are divided
            raise StagingError(f"{outputs[0].uri}: {written} of its rows were not written to partitions; expected all")

    def _values(self, code: int) -> PartitionValues:
        return without_values(self.rules.fields) if code == len(self.kept) else self.kept[code]

    def _files(self, rows: SortedRows, files: PartitionFiles, numbers: Iterator[int]) -> Iterator[_File]:
        """The files in order; small ones are still to be stored, several at once, for a store takes its time."""
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
            for batch in file.iter_batches(batch_size=_batch_rows(file)):
                codes = partitions.of(batch)
                targets = pa.array([numbers.get(values, len(self.kept)) for values in codes.values], pa.int64())
                rows.add(batch, targets.take(codes.rows))
        except pa.ArrowInvalid as exc:
            raise StagingError(f"{output.uri}: {exc}; expected a whole Parquet file") from exc


def _batch_rows(file: StoredParquet) -> int:
    groups = [file.metadata.row_group(number) for number in range(file.metadata.num_row_groups)]
    a_row = max((group.total_byte_size / max(group.num_rows, 1) for group in groups), default=1)
    return max(1, min(BATCH_ROWS, int(_BATCH_BYTES / max(a_row, 1))))
