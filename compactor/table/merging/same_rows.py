"""Compares the rows of a merged file with those of its parts, in bounded memory."""

from collections.abc import Iterator

import pyarrow as pa

from compactor.core.documents.table_records import MergedFile
from compactor.core.errors import StagingError
from compactor.core.ports import ObjectStore
from compactor.engines.parquet_files import open_parquet
from compactor.table.merging.writing import BATCH_ROWS, aligned


def first_difference(store: ObjectStore, file: MergedFile, *, may_lack_parts: bool = False) -> str:
    """Where the rows of a merged file are not those of its parts, in words; empty if they are nowhere.

    Args:
        store: Has the files.
        file: The merged file.
        may_lack_parts: Whether parts may be gone, whose rows are then passed over.

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
                    return f"it has other rows than {part.uri} behind row {seen:,} of that file"
                seen += batch.num_rows
        except (pa.ArrowInvalid, OSError) as exc:
            raise StagingError(f"{file.uri}: {exc}; expected whole Parquet files, it and {part.uri}") from exc
        if seen != part.rows:
            return f"{part.uri} has {seen} rows; expected {part.rows}"
    return "" if rows.is_at_end() else f"it has more than {file.rows} rows"


class _Cursor:
    """Reads rows in parts of any size."""

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
