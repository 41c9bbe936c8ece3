"""Makes rows from records in Python, at a cost that depends only on the values that exist.

Spark's JVM takes 0.1 µs per null: most of its time, if a record uses a few of thousands of columns. It also needs each
key by name, so records with very many keys without a column come here, too.
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from functools import partial
from itertools import count
from pathlib import Path
from typing import Any
from uuid import uuid4

import pyarrow as pa

from compactor.core.ports import ObjectStore
from compactor.engines.engine import RowPlan
from compactor.engines.parquet_files import arrow_field
from compactor.engines.partitioned.partition_files import ROW_GROUP_BYTES, PartitionFiles
from compactor.engines.rows_place import RowsPlace
from compactor.ndjson.nested_values import fitted
from compactor.ndjson.rawjson import texts
from compactor.schema.field_ids import METADATA_IDS
from compactor.schema.schema import FILE_DATE, METADATA_TYPES, metadata_names

CELLS_PER_BYTE = 1
"""From this many cells per decoded byte, Python is faster than the JVM: with 200 columns, two to three times."""

_MOST_ROWS = 2**15 - 1  # per table: value indices have 16 bits
_CELL_BYTES = 2.25  # such an index, and whether there is a value
_LINE_BYTES = 16 * 1024 * 1024  # records per table; a single one may be longer
_PLACE = pa.int16()


@dataclass(slots=True)
class _Column:
    """The values of a column that are not in an array yet: each value with its row."""

    arrow: pa.Field
    value: Callable[[str], tuple[Any, bool]]
    rows: list[int] = field(default_factory=list)
    values: list[Any] = field(default_factory=list)

    def take(self, rows: int) -> pa.Array:
        """Return all values so far as a column with this many rows, and start over."""
        kind, places, values = self.arrow.type, self.rows, self.values
        if not places:
            return pa.nulls(rows, kind)
        self.rows, self.values = [], []
        if pa.types.is_nested(kind):
            by_row = dict(zip(places, values, strict=True))
            return pa.array([by_row.get(row) for row in range(rows)], kind)
        if not pa.types.is_dictionary(kind):
            return pa.array(values, kind).take(_indices(places, range(len(places)), rows))
        distinct: dict[Any, int] = {}
        numbers = [distinct.setdefault(value, len(distinct)) for value in values]
        return pa.DictionaryArray.from_arrays(_indices(places, numbers, rows), pa.array(distinct, kind.value_type))


def _whole(text: str) -> tuple[Any, bool]:
    """The value of a column of text, and that it is complete."""
    return text, True


class PythonRows:
    """Makes rows.

    Attributes:
        rescued_values: The values so far that do not fit their column's type.
    """

    def __init__(self, plan: RowPlan) -> None:
        self.rescued_values = 0
        self._plan = plan
        metadata = metadata_names(plan.metadata_columns)
        columns = len(metadata) + len(plan.schema.columns)
        self._most_rows = max(1, min(_MOST_ROWS, int(ROW_GROUP_BYTES / _CELL_BYTES) // columns))
        # A table with the maximum number of rows shares its row group with others, whose values have other indices.
        self._text = pa.string() if self._most_rows == _MOST_ROWS else pa.dictionary(_PLACE, pa.string())
        self._metadata = {name: self._column(name, METADATA_TYPES[name], METADATA_IDS[name]) for name in metadata}
        self._columns = {
            each.key: self._column(
                each.name,
                each.type,
                each.field_id,
                partial(fitted, column_type=each.column_type) if each.is_typed else _whole,
            )
            for each in plan.schema.columns
        }

    def write(self, store: ObjectStore, folder: str, number: int, files: Iterable[tuple[Path, str]]) -> tuple[str, ...]:
        """Write the rows of files to Parquet files of the target size; return their URIs.

        Args:
            store: Destination of the files.
            folder: The destination folder; ends with `/`.
            number: Distinguishes the tasks of an attempt.
            files: Local files of records, each with its input file's URI.
        """
        place, run = RowsPlace(folder), uuid4().hex[:8]
        schema = pa.schema([each.arrow for each in self._all()])
        plan = self._plan
        parquet = PartitionFiles(store, schema, plan.compression, plan.target_file_bytes, place)
        uris = (place.uri(f"{number:06d}-{at:03d}-{run}") for at in count())
        return tuple(uri for uri, _ in parquet.write(self._tables(files, schema), uris))

    def _tables(self, files: Iterable[tuple[Path, str]], schema: pa.Schema) -> Iterator[pa.Table]:
        row = length_bytes = 0
        for path, origin in files:
            with path.open("rb") as lines:
                for line in lines:
                    self._add(row, line, origin)
                    row += 1
                    length_bytes += len(line)
                    if row == self._most_rows or length_bytes >= _LINE_BYTES:
                        yield pa.table([each.take(row) for each in self._all()], schema=schema)
                        row = length_bytes = 0
        if row:
            yield pa.table([each.take(row) for each in self._all()], schema=schema)

    def _add(self, row: int, line: bytes, origin: str) -> None:
        rescued = []
        for key, text in texts(line).items():
            if text is None:
                continue
            column = self._columns.get(key)
            value, is_whole = column.value(text) if column is not None else (None, False)
            if not is_whole:
                rescued.append((key, text))
                self.rescued_values += column is not None
            if column is not None and value is not None:
                column.rows.append(row)
                column.values.append(value)
        if rescued:
            self._columns[None].rows.append(row)
            self._columns[None].values.append(rescued)
        plan = self._plan
        of_row = {"_source_file": origin, "_processed_at": plan.processed_at, FILE_DATE: plan.date}
        for name, column in self._metadata.items():
            column.rows.append(row)
            column.values.append(of_row.get(name, plan.manifest_id))

    def _all(self) -> list[_Column]:
        return [*self._metadata.values(), *self._columns.values()]

    def _column(
        self, name: str, type_: str, field_id: int, value: Callable[[str], tuple[Any, bool]] = _whole
    ) -> _Column:
        found = arrow_field(name, type_, field_id)
        return _Column(found.with_type(self._text) if type_ == "string" else found, value)


def _indices(rows: Iterable[int], places: Iterable[int], length: int) -> pa.Array:
    """The index of each row's value; null in all other rows."""
    data, known = bytearray(2 * length), bytearray(-(-length // 8))
    with memoryview(data).cast("h") as at:
        for row, place in zip(rows, places, strict=True):
            at[row] = place
            known[row >> 3] |= 1 << (row & 7)
    return pa.Array.from_buffers(_PLACE, length, [pa.py_buffer(known), pa.py_buffer(data)])
