"""Compares the rows of Parquet files in bounded memory: a merged file with its parts, or two files."""

from collections.abc import Iterator

import pyarrow as pa

from compactor.core.documents.table_records import MergedFile
from compactor.core.errors import StagingError
from compactor.core.ports import ObjectStore
from compactor.engines.parquet_files import DAMAGED, StoredParquet, open_parquet
from compactor.schema.schema import FILE_DATE
from compactor.table.merging.writing import BATCH_ROWS, aligned


def first_difference(store: ObjectStore, file: MergedFile, *, may_lack_parts: bool = False) -> str:
    """How the rows of a merged file differ from its parts' rows; empty if they do not.

    Args:
        store: Source of the files.
        file: The merged file.
        may_lack_parts: Whether to skip the rows of missing parts.

    Raises:
        StagingError: A file is damaged.
    """
    merged, _ = open_parquet(store, file.uri)
    columns = merged.schema_arrow
    rows = _Cursor(merged.iter_batches(batch_size=BATCH_ROWS))
    for part in file.parts:
        if may_lack_parts and store.stat(part.uri) is None:
            if rows.take(part.rows, columns).num_rows != part.rows:
                return f"it has fewer than {file.rows} rows"
            continue
        seen, own = 0, open_parquet(store, part.uri)[0]
        try:
            for batch in own.iter_batches(batch_size=BATCH_ROWS):
                if not set(batch.schema.names) <= set(columns.names):
                    return f"it lacks columns of {part.uri}"
                if not rows.take(batch.num_rows, columns).equals(aligned(batch, columns)):
                    return f"its rows differ from {part.uri} after row {seen:,} of that file"
                seen += batch.num_rows
        except DAMAGED as exc:
            raise StagingError(f"{file.uri}: {exc}; expected it and {part.uri} to be complete Parquet files") from exc
        if seen != part.rows:
            return f"{part.uri} has {seen} rows; expected {part.rows}"
    return "" if rows.is_at_end() else f"it has more than {file.rows} rows"


def has_same_rows(one: StoredParquet, other: StoredParquet) -> bool:
    """Whether two files have the same rows in the same order.

    One may lack a column without values in the other, or the folder's date, as with other settings.
    """
    rows = _Cursor(other.iter_batches(batch_size=BATCH_ROWS))
    for batch in one.iter_batches(batch_size=BATCH_ROWS):
        if not _is_same(pa.Table.from_batches([batch]), rows.take(batch.num_rows, other.schema_arrow)):
            return False
    return rows.is_at_end()


def _is_same(one: pa.Table, other: pa.Table) -> bool:
    names = {*one.schema.names, *other.schema.names}
    with_date = [each for each in (one, other) if FILE_DATE in each.schema.names]
    if len(with_date) == 1 and pa.types.is_date32(with_date[0].schema.field(FILE_DATE).type):
        names.remove(FILE_DATE)
    columns = ([_column(each, name) for each in (one, other)] for name in names)
    return one.num_rows == other.num_rows and all(_is_null(*both) or both[0].equals(both[1]) for both in columns)


def _column(rows: pa.Table, name: str) -> pa.ChunkedArray:
    return rows.column(name) if name in rows.schema.names else pa.chunked_array([pa.nulls(rows.num_rows)])


def _is_null(*columns: pa.ChunkedArray) -> bool:
    return all(each.null_count == len(each) for each in columns)


class _Cursor:
    """Reads rows in chunks of any size."""

    def __init__(self, batches: Iterator[pa.RecordBatch]) -> None:
        self._batches = batches
        self._left: pa.RecordBatch | None = None

    def take(self, rows: int, columns: pa.Schema) -> pa.Table:
        """The next rows; fewer at the end."""
        parts = list[pa.RecordBatch]()
        while rows:
            batch = next(self._batches, None) if self._left is None else self._left
            if batch is None:
                break
            parts.append(batch.slice(0, rows))
            self._left = batch.slice(rows) if batch.num_rows > rows else None
            rows -= parts[-1].num_rows
        return pa.Table.from_batches(parts, schema=columns)

    def is_at_end(self) -> bool:
        """Whether there are no more rows."""
        return self._left is None and all(not batch.num_rows for batch in self._batches)
