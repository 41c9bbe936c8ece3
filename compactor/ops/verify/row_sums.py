"""Fingerprints of many rows in any order: the rows that lines should become, and those in files.

Both sides are compared as canonical text. The text in an input is parsed as its column's type and formatted again; the
value in the Parquet file is formatted in the same way.
"""

import hashlib
import itertools
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from functools import cached_property
from typing import NamedTuple

import orjson
import pyarrow as pa

from compactor.core.errors import StagingError
from compactor.engines.parquet_files import python_values, rows_at_once
from compactor.ndjson.inspection import inspect_lines
from compactor.ndjson.lines import Limits, LineCounts, Reject, Splitter
from compactor.ndjson.nested_values import fitted
from compactor.ndjson.rawjson import texts
from compactor.schema.column_types import ColumnType, canonical_text
from compactor.schema.schema import NO_NEW_KEYS, SchemaVersion
from compactor.table.merging.committed_rows import OpenedRows

SOURCE = "_source_file"
BATCH_BYTES = 32 * 1024 * 1024  # of uncompressed Parquet values in memory at once
_DIGEST_BYTES = 16
_MODULUS = 1 << (8 * _DIGEST_BYTES)


@dataclass(slots=True)
class Sum:
    """The number of some rows and the sum of their 128-bit digests. Equal sums mean equal rows, each equally often."""

    rows: int = 0
    total: int = 0

    def add(self, row: Sequence[object]) -> None:
        digest = hashlib.blake2b(orjson.dumps(row), digest_size=_DIGEST_BYTES).digest()
        self.rows += 1
        self.total = (self.total + int.from_bytes(digest, "big")) % _MODULUS

    def merge(self, other: "Sum") -> None:
        self.rows += other.rows
        self.total = (self.total + other.total) % _MODULUS


class Row(NamedTuple):
    """A row in canonical texts."""

    values: Sequence[str | None]  # one for each key with a column, in their order
    rescued: Sequence[tuple[str, str]]  # the rescued data, by key


@dataclass(frozen=True)
class RowShape:
    """The columns of a commit's rows: those of its schema version, even in files of earlier versions."""

    schema: SchemaVersion

    @cached_property
    def names(self) -> dict[str, str]:
        """The column name of each key."""
        return {column.key: column.name for column in self.schema.columns if column.key is not None}

    @cached_property
    def types(self) -> dict[str, ColumnType]:
        """The type of each key whose column is not text."""
        columns = self.schema.columns
        return {each.key: each.column_type for each in columns if each.key is not None and each.is_typed}

    @cached_property
    def rescued_name(self) -> str | None:
        return next((column.name for column in self.schema.columns if column.key is None), None)

    def fitted(self, key: str, text: str) -> tuple[str | None, bool]:
        """The canonical text of a key's value, None if there is none; and whether all of the text is in the value."""
        column_type = self.types.get(key)
        if column_type is None:
            return text, True
        value, is_whole = fitted(text, column_type)
        return None if value is None else canonical_text(value, column_type), is_whole

    def row(self, line: bytes, path_columns: Mapping[str, str]) -> Row:
        """The row that a line should become; `path_columns` as in `LineSums`."""
        values: dict[str, str | None] = {**path_columns, **texts(line)}
        rescued = [(key, text) for key, text in values.items() if key not in self.names and text is not None]
        for key in self.types:
            text = values.get(key)
            if text is not None:
                values[key], is_whole = self.fitted(key, text)
                if not is_whole:
                    rescued.append((key, text))
        return Row([values.get(key) for key in self.names], rescued)


@dataclass(frozen=True, slots=True)
class FileColumns:
    """Where a file has the values of a commit's rows."""

    present: Mapping[str, str]  # the column name of each key that has a column in the file
    moved: AbstractSet[str]  # keys whose columns are newer than the file: their values are among the rescued data
    retired: Mapping[str, str]  # keys of the columns that only the file has, by name: their values count as rescued
    rescued: str | None  # the name of the rescued data column; None if the file has none

    @classmethod
    def of(cls, shape: RowShape, opened: OpenedRows, of_file: SchemaVersion) -> "FileColumns":
        """Find the columns.

        Raises:
            StagingError: The file lacks a column of its schema version.
        """
        retired_names = {column.name for column in shape.schema.retired}
        its_names = {column.name for column in of_file.columns}
        found = cls(
            present={key: name for key, name in shape.names.items() if name in its_names},
            moved=shape.names.keys() - of_file.keys,
            retired={each.name: each.key for each in of_file.columns if each.name in retired_names and each.key},
            rescued=shape.rescued_name if shape.rescued_name in its_names else None,
        )
        there = set(opened.parquet.schema_arrow.names)  # Arrow rebuilds the schema on each access
        if missing := [name for name in found.names if name not in there]:
            raise StagingError(f"{opened.uri}: columns {missing} are missing; expected all of its schema version")
        return found

    @property
    def names(self) -> list[str]:
        return [*self.present.values(), *self.retired, *([self.rescued] if self.rescued else [])]


@dataclass
class LineSums:
    """Reads the lines of one input."""

    shape: RowShape
    digest: Callable[[Sequence[Row]], Sum]  # adds up rows
    path_columns: Mapping[str, str]  # values by key from the path of the input, for lines without that key
    sum: Sum = field(default_factory=Sum)  # of the rows of the lines read so far

    def read(
        self,
        pieces: Iterable[bytes],
        limits: Limits,
        *,
        split: Splitter,
        refused: frozenset[bytes],
        on_reject: Callable[[Reject], None],
    ) -> LineCounts:
        """Read all lines. The arguments are those of `inspect_lines`."""
        return inspect_lines(
            pieces,
            limits,
            on_reject=on_reject,
            on_good=self.add_records,
            refused=refused,
            split=split,
            key_limits=NO_NEW_KEYS,
        )

    def add_records(self, block: bytes) -> None:
        """Add lines that are records, each with its line feed."""
        lines = block.split(b"\n")[:-1]
        self.sum.merge(self.digest([self.shape.row(line, self.path_columns) for line in lines]))


@dataclass(frozen=True)
class RowSums:
    """Adds up a commit's rows, in Python, row by row. Only sums from the same object can be compared."""

    shape: RowShape

    def lines(self, path_columns: Mapping[str, str]) -> LineSums:
        """Create a reader for the lines of one input; `path_columns` as in `LineSums`."""
        return self.slow_lines(path_columns)

    def slow_lines(self, path_columns: Mapping[str, str]) -> LineSums:
        """Create a pure Python reader, which decides if another reader differs."""
        return LineSums(self.shape, self.digest, path_columns)

    def digest(self, rows: Sequence[Row]) -> Sum:
        found = Sum()
        for values, rescued in rows:
            found.add([*values, sorted(rescued)])
        return found

    def written(self, opened: OpenedRows, columns: FileColumns, *, by_source: bool) -> Iterator[tuple[str, Sum]]:
        """Yield sums of a file's rows by source file, several for each; all under "" without `by_source`.

        Raises:
            StagingError: The file is damaged.
            ValueError: A value is invalid in its type.
            OverflowError: A value is out of Python's range.
        """
        for batch in batches(opened, columns, by_source=by_source):
            sums: dict[str, Sum] = {}
            sources = batch.column(SOURCE).to_pylist() if by_source else itertools.repeat("", batch.num_rows)
            for source, row in zip(sources, self._rows(batch, columns), strict=True):
                sums.setdefault(source, Sum()).merge(self.digest([row]))
            yield from sums.items()

    def _rows(self, batch: pa.RecordBatch, columns: FileColumns) -> Iterator[Row]:
        shape = self.shape
        places = {key: at for at, key in enumerate(shape.names)}
        # Zipping columns is several times as fast as building a dictionary for each row.
        keyed = [
            self._texts(batch, key, columns.present[key]) if key in columns.present else itertools.repeat(None)
            for key in shape.names
        ]
        rescued = batch.column(columns.rescued).to_pylist() if columns.rescued else [None] * batch.num_rows
        gone = [(key, batch.column(name).to_pylist()) for name, key in columns.retired.items()]
        for number, (found, *values) in enumerate(zip(rescued, *keyed, strict=False)):
            further = [(key, column[number]) for key, column in gone if column[number] is not None]
            kept = []
            for key, text in (*(found or ()), *further):
                is_whole = key in columns.moved
                if is_whole:
                    values[places[key]], is_whole = shape.fitted(key, text)
                if not is_whole:
                    kept.append((key, text))
            yield Row(values, kept)

    def _texts(self, batch: pa.RecordBatch, key: str, name: str) -> list[str | None]:
        values = python_values(batch.column(name))
        column_type = self.shape.types.get(key)
        if column_type is None:
            return values
        return [None if value is None else canonical_text(value, column_type) for value in values]


def batches(opened: OpenedRows, columns: FileColumns, *, by_source: bool) -> Iterator[pa.RecordBatch]:
    """Yield a file's rows in batches of at most `BATCH_BYTES`, with the compared columns."""
    most = rows_at_once(opened.parquet, 8_192, BATCH_BYTES)
    return opened.batches(most, [*columns.names, *([SOURCE] if by_source else [])])
