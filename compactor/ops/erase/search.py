"""Finds rows and rejected lines that contain a value, in Parquet files, one row group at a time.

The footer's statistics rule out most row groups, so most files cost one short read.
"""

from bisect import bisect_left
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, partial, reduce
from itertools import groupby
from typing import Any, TypeAlias

import pyarrow as pa
import pyarrow.compute as pc

from compactor.core.documents.changes import Commit, StagedFile
from compactor.core.ports import ObjectStore
from compactor.engines.parquet_files import StoredParquet, python_values
from compactor.ops.erase.wanted import BLANKS, Pieces, Wanted
from compactor.ops.redrive.reject_lines import reject_rows
from compactor.schema.column_types import canonical_text
from compactor.schema.registry import SchemaRegistry
from compactor.schema.schema import RESCUED_COLUMN, Column
from compactor.table.merging.committed_rows import CommittedRows, GroupRows, OpenedRows

Bounds = tuple[Any, Any]
Mask: TypeAlias = "pa.BooleanArray | None"
_RESCUED_KEYS = f"{RESCUED_COLUMN}.key_value.key"  # the leaf column


@dataclass(frozen=True, kw_only=True)
class RowSearch:
    """Finds rows. Safe for many threads."""

    rows: CommittedRows
    registry: SchemaRegistry
    wanted: Wanted

    def count(self, commit: Commit, file: StagedFile) -> int:
        """How many rows in a file of a commit contain a value.

        Raises:
            StagingError: The file is missing, truncated, or not Parquet.
        """
        return sum(_trues(each) for _, each in self.masks_of(commit, file, self.rows.open(commit.date, file)))

    def masks_of(self, commit: Commit, file: StagedFile, opened: OpenedRows) -> list[tuple[GroupRows, Mask]]:
        """Each row group in a file of a commit, with a mask of its rows that contain a value; None if no row does."""
        columns = self.registry.version(file.version_in(commit)).columns
        return self.masks(opened, next((column for column in columns if column.key == self.wanted.key), None))

    def masks(self, opened: OpenedRows, column: Column | None) -> list[tuple[GroupRows, Mask]]:
        """As `masks_of`, given the column of the key in the file, if it has one."""
        schema, found = opened.parquet.schema, list[tuple[GroupRows, Mask]]()
        paths = [schema.column(leaf).path for leaf in range(len(schema.names))]
        bounds = partial(_bounds, opened.parquet, paths)
        for at in opened.groups():
            names = []
            if column is not None and self._may_be_in(bounds(at.group, column.name), column):
                names.append(column.name)
            if _is_within(bounds(at.group, _RESCUED_KEYS), self.wanted.key):
                names.append(RESCUED_COLUMN)
            found.append((at, self._mask(opened, at, names, column) if names else None))
        return found

    def _mask(self, opened: OpenedRows, at: GroupRows, names: list[str], column: Column | None) -> Mask:
        table = opened.table(at, names)
        found: Mask = None
        for name in names:
            values = table.column(name).combine_chunks()
            mask = self._rescued(values) if name == RESCUED_COLUMN else self._of_column(values, column)
            found = mask if found is None else pc.or_(found, mask)
        return found if found is not None and _trues(found) else None

    def _of_column(self, values: Any, column: Column | None) -> pa.BooleanArray:
        if column is not None and column.is_nested:
            kind, has = column.column_type, self.wanted.has
            found = (value is not None and has(canonical_text(value, kind)) for value in python_values(values))
            return pa.array(found, pa.bool_())
        if column is not None and column.is_typed:
            return pa.array([value in self.wanted.meant for value in python_values(values)], pa.bool_())
        mask = pc.is_in(values, value_set=self._texts)
        text = pc.utf8_ltrim(values, BLANKS)
        nested = pc.or_(pc.starts_with(text, "{"), pc.starts_with(text, "["))
        if self.wanted.few is not None:
            words = ("\\", *self.wanted.few)
            nested = pc.and_(nested, reduce(pc.or_, (pc.match_substring(values, word) for word in words)))
        if not _trues(nested):
            return mask
        texts = zip(values.to_pylist(), nested.to_pylist(), strict=True)
        return pc.or_(mask, pa.array([bool(is_one) and self.wanted.has(text) for text, is_one in texts], pa.bool_()))

    def _rescued(self, values: Any) -> pa.BooleanArray:
        key, has = self.wanted.key, self.wanted.has
        rows = (dict_of or () for dict_of in values.to_pylist())
        found = [any(name == key and text is not None and has(text) for name, text in row) for row in rows]
        return pa.array(found, pa.bool_())

    def _may_be_in(self, bounds: Bounds | None, column: Column) -> bool:
        if bounds is None:
            return True
        if not column.is_typed:
            return self.wanted.is_between(*bounds)
        try:
            ordered: list[Any] = sorted(self.wanted.meant)
            at = bisect_left(ordered, bounds[0])
            return at < len(ordered) and bool(ordered[at] <= bounds[1])
        except TypeError:  # the footer has a different type, so it rules nothing out
            return True

    @cached_property
    def _texts(self) -> pa.Array:
        """Values that a text column itself may have."""
        return pa.array(self.wanted.values if len(self.wanted.path) == 1 else (), pa.string())


def _bounds(parquet: StoredParquet, paths: Sequence[str], group: int, path: str) -> Bounds | None:
    """The lowest and highest value of a leaf column; None if unknown; an empty range if it has no values."""
    if path not in paths:
        # Writers name the entries of a map differently.
        is_map = any(each.startswith(f"{path.partition('.')[0]}.") for each in paths)
        return None if is_map else ("b", "a")
    if paths.count(path) > 1:  # a part of a nested column may have the path of another column
        return None
    found = parquet.metadata.row_group(group).column(paths.index(path)).statistics
    return (found.min, found.max) if found is not None and found.has_min_max else None


def _is_within(bounds: Bounds | None, value: str) -> bool:
    return bounds is None or bounds[0] <= value <= bounds[1]


def _trues(mask: Mask) -> int:
    return 0 if mask is None else mask.true_count


_LINE = 2  # the first columns identify the line


@dataclass(frozen=True, slots=True)
class RejectFound:
    """A rejected line that contains a value.

    Attributes:
        rows: The number of rows that keep it: a line that is too long is kept in pieces.
    """

    source_uri: str
    line_number: int
    reason: str
    rows: int


def rejects_found(store: ObjectStore, uri: str, wanted: Wanted) -> Iterator[RejectFound]:
    """Yield the lines in a rejects file that contain a value, in order.

    Raises:
        StagingError: The file is missing, truncated, or not a file of rejects.
    """
    found = reject_rows(store, uri, chosen=partial(_candidates, wanted))
    pieces = Pieces(wanted)
    for (source_uri, number), rows in groupby(found, key=lambda row: row[:_LINE]):
        searched = [(row.reason, pieces.holds((source_uri, number), row.record)) for row in rows]
        if any(is_found for _, is_found in searched):
            yield RejectFound(source_uri, number, searched[-1][0], len(searched))


def _candidates(wanted: Wanted, batch: pa.RecordBatch) -> Sequence[int]:
    """The rows of rejects that may contain a value, or a part of one: the first and last lines may have more pieces."""
    numbers, last = batch.column("line_number"), batch.num_rows - 1
    if _trues(pc.equal(numbers[1:], numbers[:last])):  # pieces of a long line
        return range(batch.num_rows)
    raw, kept = batch.column("raw"), batch.column("kept").fill_null("").cast(pa.binary())
    return sorted({0, last, *wanted.candidates(raw), *wanted.candidates(kept)})
