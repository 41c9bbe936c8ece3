"""Fingerprints of many rows, whatever their order: as the lines say that they should be, and as files have them.

Both sides are compared as canonical text. The text of an input becomes the value of its column's type, and that value
its canonical text; the value in the Parquet file becomes canonical text as well.
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
from compactor.engines.parquet_files import python_values
from compactor.ndjson.inspection import inspect_lines
from compactor.ndjson.lines import Limits, LineCounts, Reject, Splitter
from compactor.ndjson.rawjson import texts
from compactor.schema.column_types import ColumnType, canonical_text, value_of
from compactor.schema.schema import NO_NEW_KEYS, SchemaVersion
from compactor.table.merging.committed_rows import OpenedRows

SOURCE = "_source_file"
BATCH_BYTES = 32 * 1024 * 1024  # of uncompressed Parquet values in memory at once
_DIGEST_BYTES = 16
_MODULUS = 1 << (8 * _DIGEST_BYTES)


@dataclass(slots=True)
class Sum:
    """The number of some rows and the sum of their 128-bit digests: equal sums are of the same rows, each as often."""

    rows: int = 0
    total: int = 0

    def add(self, row: Sequence[object]) -> None:
        """Add one row of JSON values."""
        digest = hashlib.blake2b(orjson.dumps(row), digest_size=_DIGEST_BYTES).digest()
        self.rows += 1
        self.total = (self.total + int.from_bytes(digest, "big")) % _MODULUS

    def merge(self, other: "Sum") -> None:
        """Add all rows of another sum."""
        self.rows += other.rows
        self.total = (self.total + other.total) % _MODULUS


class Row(NamedTuple):
    """A row in canonical texts.

    Attributes:
        values: Of each key with a column, in their order.
        rescued: What is in the rescued data, by key.
    """

    values: Sequence[str | None]
    rescued: Sequence[tuple[str, str]]


@dataclass(frozen=True)
class RowShape:
    """How the rows of a commit look: those of its schema version, also in files of earlier versions."""

    schema: SchemaVersion

    @cached_property
    def names(self) -> dict[str, str]:
        """The name of the column of each key."""
        return {column.key: column.name for column in self.schema.columns if column.key is not None}

    @cached_property
    def types(self) -> dict[str, ColumnType]:
        """The types by key, of those that are not text."""
        columns = self.schema.columns
        return {each.key: each.column_type for each in columns if each.key is not None and each.is_typed}

    @cached_property
    def rescued_name(self) -> str | None:
        """The name of the column of rescued data; None without one."""
        return next((column.name for column in self.schema.columns if column.key is None), None)

    def row(self, line: bytes, path_columns: Mapping[str, str]) -> Row:
        """The row that a line should be."""
        values: dict[str, str | None] = {**path_columns, **texts(line)}
        rescued = [(key, text) for key, text in values.items() if key not in self.names and text is not None]
        for key, column_type in self.types.items():
            text = values.get(key)
            if text is not None:
                value = value_of(text, column_type)
                values[key] = None if value is None else canonical_text(value, column_type)
                if value is None:
                    rescued.append((key, text))
        return Row([values.get(key) for key in self.names], rescued)


@dataclass(frozen=True, slots=True)
class FileColumns:
    """Where a file has the rows of a commit.

    Attributes:
        present: The columns of keys that it has: each key with the name of its column.
        moved: The keys whose columns are newer than the file: their values are among the rescued data.
        retired: The columns that the file alone has: each name with its key, whose values are rescued ones now.
        rescued: The name of the column of rescued data; None if the file has none.
    """

    present: Mapping[str, str]
    moved: AbstractSet[str]
    retired: Mapping[str, str]
    rescued: str | None

    @classmethod
    def of(cls, shape: RowShape, opened: OpenedRows, of_file: SchemaVersion) -> "FileColumns":
        """Find them.

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
        there = set(opened.parquet.schema_arrow.names)  # Arrow makes the schema anew each time it is asked for
        if missing := [name for name in found.names if name not in there]:
            raise StagingError(f"{opened.uri}: no columns {missing}; expected all of its schema version")
        return found

    @property
    def names(self) -> list[str]:
        """The names of all of them."""
        return [*self.present.values(), *self.retired, *([self.rescued] if self.rescued else [])]


@dataclass
class LineSums:
    """Reads the lines of one input.

    Attributes:
        shape: What rows should be.
        digest: Adds up rows.
        path_columns: Values that the path of the input gives to each line that has no such key.
        sum: The rows of the lines that were read.
    """

    shape: RowShape
    digest: Callable[[Sequence[Row]], Sum]
    path_columns: Mapping[str, str]
    sum: Sum = field(default_factory=Sum)

    def read(
        self,
        pieces: Iterable[bytes],
        limits: Limits,
        *,
        split: Splitter,
        refused: frozenset[bytes],
        on_reject: Callable[[Reject], None],
    ) -> LineCounts:
        """Read all lines; the arguments are those of `inspect_lines`."""
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
    """Adds up the rows of one commit, in Python, row by row. Only sums of the same object can be compared."""

    shape: RowShape

    def lines(self, path_columns: Mapping[str, str]) -> LineSums:
        """What reads the lines of one input; `path_columns` as in `LineSums`."""
        return self.slow_lines(path_columns)

    def slow_lines(self, path_columns: Mapping[str, str]) -> LineSums:
        """The same by Python alone, whose word counts where another reader differs."""
        return LineSums(self.shape, self.digest, path_columns)

    def digest(self, rows: Sequence[Row]) -> Sum:
        """The sum of rows that Python has read."""
        found = Sum()
        for values, rescued in rows:
            found.add([*values, sorted(rescued)])
        return found

    def written(self, opened: OpenedRows, columns: FileColumns, *, by_source: bool) -> Iterator[tuple[str, Sum]]:
        """The sums of the rows of a file by source file, in parts; or all under "".

        Raises:
            StagingError: The file is damaged.
            ValueError: It has a value of no meaning.
            OverflowError: It has a value that Python has no room for.
        """
        for batch in batches(opened, columns, by_source=by_source):
            sums: dict[str, Sum] = {}
            sources = batch.column(SOURCE).to_pylist() if by_source else itertools.repeat("", batch.num_rows)
            for source, row in zip(sources, self._rows(batch, columns), strict=True):
                sums.setdefault(source, Sum()).merge(self.digest([row]))
            yield from sums.items()

    def _rows(self, batch: pa.RecordBatch, columns: FileColumns) -> Iterator[Row]:
        """The rows of a batch."""
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
            entries = [*(found or ()), *further]
            for key, text in entries:
                if key in columns.moved:
                    values[places[key]] = text
            yield Row(values, [(key, text) for key, text in entries if key not in columns.moved])

    def _texts(self, batch: pa.RecordBatch, key: str, name: str) -> list[str | None]:
        values = python_values(batch.column(name))
        column_type = self.shape.types.get(key)
        if column_type is None:
            return values
        return [None if value is None else canonical_text(value, column_type) for value in values]


def batches(opened: OpenedRows, columns: FileColumns, *, by_source: bool) -> Iterator[pa.RecordBatch]:
    """The rows of a file, some at a time, with all columns that matter."""
    groups = [opened.parquet.metadata.row_group(number) for number in range(opened.parquet.num_row_groups)]
    bytes_a_row = max((group.total_byte_size / max(group.num_rows, 1) for group in groups), default=1)
    most = max(1, min(8_192, int(BATCH_BYTES / max(bytes_a_row, 1))))
    return opened.batches(most, [*columns.names, *([SOURCE] if by_source else [])])
