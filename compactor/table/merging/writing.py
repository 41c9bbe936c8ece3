"""Writes the rows of several files to one, in bounded memory, and verifies the result."""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from compactor.core.documents.table_records import MergedPart
from compactor.core.errors import ObjectChanged, ObjectNotFound, StagingError
from compactor.core.ports import ObjectStore
from compactor.engines.parquet_files import DAMAGED, FIELD_ID, StoredParquet, open_parquet, rows_at_once
from compactor.engines.partitioned.partition_files import PartitionFiles
from compactor.engines.rows_place import RowsPlace


def united(schemas: Iterable[pa.Schema]) -> pa.Schema | None:
    """All columns of some files, those of the widest file first; None if they conflict."""
    ordered = sorted(schemas, key=len, reverse=True)
    fields, names = dict[bytes, pa.Field](), set[str]()
    for schema in ordered:
        for field in schema:
            number = (field.metadata or {}).get(FIELD_ID)
            known = fields.get(number) if number else None
            if number is None or (known is None and field.name in names):
                return None
            if known is None:
                fields[number] = field.with_nullable(True)
                names.add(field.name)
            elif (known.name, known.type) != (field.name, field.type):
                return None
    return pa.schema(fields.values())


def aligned(batch: pa.RecordBatch, columns: pa.Schema) -> pa.Table:
    """The rows with exactly these columns, filled with nulls if missing."""
    own = {field.name: batch.column(at) for at, field in enumerate(batch.schema)}
    arrays = [own[field.name] if field.name in own else pa.nulls(batch.num_rows, field.type) for field in columns]
    return pa.Table.from_arrays(arrays, schema=columns)


BATCH_ROWS = 16_384
BATCH_BYTES = 8 * 1024 * 1024
_ENDLESS = 1 << 50  # one file of any length: the parts were chosen by theirs
_WHOLE = {"INT32", "INT64", "BOOLEAN"}  # types whose minimum and maximum all writers store exactly


_Range = tuple[Any, Any] | None
"""A column's minimum and maximum; None if unknown."""


class UnlikeColumnsError(StagingError):
    """The files' columns conflict, so they cannot be merged."""


@dataclass(frozen=True, slots=True)
class MergedFiles:
    """Writes merged files."""

    store: ObjectStore
    compression: str

    def write(self, uri: str, parts: Sequence[MergedPart], inputs: Sequence[str]) -> tuple[int, int]:
        """Write one file, and check its footer against its inputs' footers.

        Args:
            uri: Its place.
            parts: The commits' files whose rows it gets; the inputs must have exactly as many rows.
            inputs: The files to read, in order.

        Returns:
            Its number of rows and its size.

        Raises:
            UnlikeColumnsError: The files' columns conflict.
            StagingError: A file is damaged, or the number of rows differs.
        """
        opened = [(each, open_parquet(self.store, each)[0]) for each in inputs]
        columns = united(file.schema_arrow for _, file in opened)
        if columns is None:
            raise UnlikeColumnsError(f"{inputs[0]}: columns differ from {inputs[-1]}; expected the same")
        expected = sum(part.rows for part in parts)
        found = sum(file.metadata.num_rows for _, file in opened)
        if found != expected:
            raise StagingError(
                f"{inputs[0]}: it and {len(inputs) - 1} other files have {found} rows; expected {expected}"
            )
        written, size_bytes = self._written(uri, columns, (piece for each in opened for piece in _rows(*each, columns)))
        if written.metadata.num_rows != expected:
            raise StagingError(f"{uri}: {written.metadata.num_rows} rows in its footer; expected {expected}")
        self._check(uri, written, [file for _, file in opened])
        return expected, size_bytes

    def write_part(self, uri: str, source: str, ranges: Sequence[range]) -> tuple[int, int]:
        """Write some rows of one file, and check the number of values per column in the footer.

        Returns:
            Its number of rows and its size.

        Raises:
            StagingError: The file is damaged, or has fewer rows.
        """
        parquet, _ = open_parquet(self.store, source)
        columns = parquet.schema_arrow
        values = Counter[str]()

        def pieces() -> Iterator[pa.Table]:
            for wanted in ranges:
                for batch in batches_of(source, parquet, wanted, rows_at_once(parquet, BATCH_ROWS, BATCH_BYTES)):
                    piece = aligned(batch, columns)
                    values.update({name: piece.num_rows - piece[name].null_count for name in columns.names})
                    yield piece

        written, size_bytes = self._written(uri, columns, pieces())
        expected, found = sum(map(len, ranges)), written.metadata.num_rows
        if found != expected:
            raise StagingError(f"{uri}: {found} rows in its footer; expected {expected}")
        for name, number in _Facts(written.metadata).values.items():
            if values[name] != number:
                raise StagingError(f"{uri}: {number} values in column {name!r}; expected {values[name]}")
        return expected, size_bytes

    def _written(self, uri: str, columns: pa.Schema, pieces: Iterator[pa.Table]) -> tuple[StoredParquet, int]:
        place = RowsPlace(uri[: uri.rindex("/") + 1])
        files = PartitionFiles(self.store, columns, self.compression, _ENDLESS, place)
        for _ in files.write(pieces, iter([uri])):
            pass
        return open_parquet(self.store, uri)

    def _check(self, uri: str, written: StoredParquet, inputs: Sequence[StoredParquet]) -> None:
        """Compare the columns in the footers: number of values, minimum and maximum."""
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
                raise StagingError(f"{uri}: minimum or maximum of column {name!r} differs from its parts")


class _Facts:
    """The number of values of each top-level column in a footer, and their ranges."""

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
    if one is None or other is None:
        return None
    return min(one[0], other[0]), max(one[1], other[1])


def _rows(uri: str, file: StoredParquet, columns: pa.Schema) -> Iterator[pa.Table]:
    numbers, at_once = range(file.metadata.num_rows), rows_at_once(file, BATCH_ROWS, BATCH_BYTES)
    return (aligned(batch, columns) for batch in batches_of(uri, file, numbers, at_once))


def batches_of(
    uri: str, file: StoredParquet, numbers: range, batch_rows: int, columns: Sequence[str] | None = None
) -> Iterator[pa.RecordBatch]:
    """Consecutive rows of a file. Reads only their row groups.

    Raises:
        StagingError: The file is damaged, or has fewer rows.
    """
    groups, at, before, found = list[int](), 0, 0, 0
    for group in range(file.num_row_groups):
        rows = file.metadata.row_group(group).num_rows
        if at < numbers.stop and at + rows > numbers.start:
            before = before if groups else at
            groups.append(group)
        at += rows
    try:
        for batch in file.iter_batches(batch_size=batch_rows, row_groups=groups, columns=columns) if groups else ():
            start, stop = max(numbers.start - before, 0), min(numbers.stop - before, batch.num_rows)
            before += batch.num_rows
            if start < stop:
                found += stop - start
                yield batch.slice(start, stop - start)
    except (*DAMAGED, ObjectNotFound, ObjectChanged) as exc:
        raise StagingError(f"{uri}: {exc}; expected a complete Parquet file") from exc
    if found != len(numbers):
        raise StagingError(f"{uri}: only {at} rows; expected at least {numbers.stop}")
