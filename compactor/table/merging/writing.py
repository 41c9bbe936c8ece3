"""Writes the rows of several files to one, in bounded memory, and checks what was written."""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from compactor.core.documents.table_records import MergedPart
from compactor.core.errors import ObjectChanged, ObjectNotFound, StagingError
from compactor.core.ports import ObjectStore
from compactor.engines.parquet_files import StoredParquet, open_parquet
from compactor.engines.partitioned.partition_files import PartitionFiles
from compactor.engines.rows_place import RowsPlace
from compactor.table.merging.columns import aligned, united

BATCH_ROWS = 16_384
BATCH_BYTES = 8 * 1024 * 1024
_ENDLESS = 1 << 50  # one file, whatever its length: the parts were chosen by theirs
_WHOLE = {"INT32", "INT64", "BOOLEAN"}  # the types whose lowest and highest values all writers give in full


_Range = tuple[Any, Any] | None
"""The lowest and the highest value of a column; None if they are not known."""


class UnlikeColumnsError(StagingError):
    """Files have the same column otherwise, so that they cannot become one."""


@dataclass(frozen=True, slots=True)
class MergedFiles:
    """Writes merged files.

    Attributes:
        store: Has the files, and receives the new ones.
        compression: The codec.
    """

    store: ObjectStore
    compression: str

    def write(self, uri: str, parts: Sequence[MergedPart], inputs: Sequence[str]) -> tuple[int, int]:
        """Write one file, and check its footer against those of what it was made of.

        Args:
            uri: Its place.
            parts: The files of commits whose rows it gets; their rows have to be all that there are.
            inputs: The files that are read, in order.

        Returns:
            Its rows and its length.

        Raises:
            UnlikeColumnsError: The files have a column that differs between them.
            StagingError: A file is damaged, or the rows are not those of the parts.
        """
        opened = [(each, open_parquet(self.store, each)[0]) for each in inputs]
        columns = united(file.schema_arrow for _, file in opened)
        if columns is None:
            raise UnlikeColumnsError(f"{inputs[0]}: other columns than in {inputs[-1]}; expected the same")
        expected = sum(part.rows for part in parts)
        found = sum(file.metadata.num_rows for _, file in opened)
        if found != expected:
            raise StagingError(
                f"{inputs[0]}: it and {len(inputs) - 1} other files have {found} rows; expected {expected}"
            )
        place = RowsPlace(uri[: uri.rindex("/") + 1])
        files = PartitionFiles(self.store, columns, self.compression, _ENDLESS, place)
        made = list(files.write((piece for each in opened for piece in _rows(*each, columns)), iter([uri])))
        written, size_bytes = open_parquet(self.store, uri)
        if [rows for _, rows in made] != [expected] or written.metadata.num_rows != expected:
            raise StagingError(f"{uri}: {written.metadata.num_rows} rows in its footer; expected {expected}")
        self._check(uri, written, [file for _, file in opened])
        return expected, size_bytes

    def _check(self, uri: str, written: StoredParquet, inputs: Sequence[StoredParquet]) -> None:
        """Compare what footers tell of columns: how many values are missing, and the lowest and highest ones."""
        rows = sum(file.metadata.num_rows for file in inputs)
        before, after = Counter[str](), _Facts(written.metadata)
        ranges: dict[str, _Range] = {}
        for file in inputs:
            facts = _Facts(file.metadata)
            before.update(facts.values)
            for name, found in facts.ranges.items():
                ranges[name] = _wider(ranges[name], found) if name in ranges else found
        for name, values in after.values.items():
            if before[name] != values:
                raise StagingError(f"{uri}: {values} values in column {name!r} of {rows} rows; expected {before[name]}")
            known, found = ranges.get(name), after.ranges.get(name)
            if known is not None and found is not None and known != found:
                raise StagingError(f"{uri}: other lowest or highest values in column {name!r} than in its parts")


class _Facts:
    """What a footer tells of its columns at the top level."""

    def __init__(self, footer: pq.FileMetaData) -> None:
        self.values: Counter[str] = Counter()
        self.ranges: dict[str, _Range] = {}
        for at in range(footer.num_row_groups):
            group = footer.row_group(at)
            for number in range(group.num_columns):
                self._add(group.column(number))

    def _add(self, column: pq.ColumnChunkMetaData) -> None:
        name, statistics = column.path_in_schema, column.statistics
        if "." in name or statistics is None or not statistics.has_null_count:
            return
        self.values[name] += column.num_values - statistics.null_count
        if column.num_values == statistics.null_count:
            return
        whole = column.physical_type in _WHOLE and statistics.has_min_max
        found = (statistics.min, statistics.max) if whole else None
        self.ranges[name] = _wider(self.ranges[name], found) if name in self.ranges else found


def _wider(one: _Range, other: _Range) -> _Range:
    """The range of two; None if one of them is not known."""
    if one is None or other is None:
        return None
    return min(one[0], other[0]), max(one[1], other[1])


def _rows(uri: str, file: StoredParquet, columns: pa.Schema) -> Iterator[pa.Table]:
    groups = [file.metadata.row_group(at) for at in range(file.metadata.num_row_groups)]
    a_row = max((group.total_byte_size / max(group.num_rows, 1) for group in groups), default=1)
    rows = max(1, min(BATCH_ROWS, int(BATCH_BYTES / max(a_row, 1))))
    try:
        for batch in file.iter_batches(batch_size=rows):
            yield aligned(batch, columns)
    except (pa.ArrowInvalid, OSError, ObjectNotFound, ObjectChanged) as exc:
        raise StagingError(f"{uri}: {exc}; expected a whole Parquet file") from exc
