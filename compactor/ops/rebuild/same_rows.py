"""Compares the rows of two Parquet files, whatever their compression and later columns."""

from itertools import zip_longest

import pyarrow as pa

from compactor.core.errors import CompactorError, StagingError
from compactor.core.ports import ObjectStore
from compactor.engines.parquet_files import open_parquet

_BATCH_ROWS = 4_096


def holds_other_rows(store: ObjectStore, uri: str, staged: str | None) -> bool:
    """Return whether readers find rows in a file that a staged file does not have in the same order.

    Args:
        store: Has both files.
        uri: The file that readers may see. One that is gone, or has no footer, has no rows for them.
        staged: The file to compare with; None for no rows.
    """
    try:
        old, _ = open_parquet(store, uri)
    except StagingError:
        return False
    if staged is None:
        return bool(old.metadata.num_rows)
    new, _ = open_parquet(store, staged)
    if old.metadata.num_rows != new.metadata.num_rows:
        return True
    try:
        batches = (file.iter_batches(batch_size=_BATCH_ROWS) for file in (old, new))
        return not all(_is_same(one, other) for one, other in zip_longest(*batches))
    except CompactorError:
        raise
    except Exception:  # noqa: BLE001 - readers of damaged bytes raise errors of any type
        return True  # readers of other columns may still find rows


def _is_same(one: pa.RecordBatch | None, other: pa.RecordBatch | None) -> bool:
    if one is None or other is None or one.num_rows != other.num_rows:
        return False
    names = {*one.schema.names, *other.schema.names}
    return all(_column(one, name).equals(_column(other, name)) for name in names if not _is_null(one, other, name))


def _column(batch: pa.RecordBatch, name: str) -> pa.Array:
    return batch.column(name) if name in batch.schema.names else pa.nulls(batch.num_rows)


def _is_null(one: pa.RecordBatch, other: pa.RecordBatch, name: str) -> bool:
    """Whether a column has no value on either side; it may be missing on one."""
    return all(_column(batch, name).null_count == batch.num_rows for batch in (one, other))
