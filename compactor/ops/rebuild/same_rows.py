"""Compares the rows of two Parquet files, whatever their compression and later columns."""

from enum import Enum
from itertools import zip_longest

import pyarrow as pa

from compactor.core.errors import CompactorError, StagingError
from compactor.core.ports import ObjectStore
from compactor.engines.parquet_files import open_parquet
from compactor.schema.schema import FILE_DATE

_BATCH_ROWS = 4_096


class Found(Enum):
    """What readers find under a final name, compared with a staged file that may take its place."""

    NOTHING = "nothing"
    UNREADABLE = "unreadable"  # no footer: readers of it fail
    SAME_ROWS = "same rows"  # in the same order
    OTHER_ROWS = "other rows"


def found_at(store: ObjectStore, uri: str, staged: str | None) -> Found:
    """Compare what is under a final name with a staged file.

    Args:
        store: Has both files.
        uri: The file that readers may see.
        staged: The file to compare with; None for no rows.
    """
    try:
        old, _ = open_parquet(store, uri)
    except StagingError:
        return Found.NOTHING if store.stat(uri) is None else Found.UNREADABLE
    if staged is None:
        return Found.OTHER_ROWS if old.metadata.num_rows else Found.SAME_ROWS
    new, _ = open_parquet(store, staged)
    if old.metadata.num_rows != new.metadata.num_rows:
        return Found.OTHER_ROWS
    try:
        batches = (file.iter_batches(batch_size=_BATCH_ROWS) for file in (old, new))
        is_same = all(_is_same(one, other) for one, other in zip_longest(*batches))
    except CompactorError:
        raise
    except Exception:  # noqa: BLE001 - readers of damaged bytes raise errors of any type
        return Found.OTHER_ROWS  # readers of other columns may still find rows
    return Found.SAME_ROWS if is_same else Found.OTHER_ROWS


def _is_same(one: pa.RecordBatch | None, other: pa.RecordBatch | None) -> bool:
    if one is None or other is None or one.num_rows != other.num_rows:
        return False
    names = {*one.schema.names, *other.schema.names}
    if _is_added(one, other) or _is_added(other, one):
        names.remove(FILE_DATE)
    return all(_column(one, name).equals(_column(other, name)) for name in names if not _is_null(one, other, name))


def _is_added(one: pa.RecordBatch, other: pa.RecordBatch) -> bool:
    """Whether only `one` has the date of its folder as a column: files of other settings or releases lack it."""
    return (
        FILE_DATE in one.schema.names
        and FILE_DATE not in other.schema.names
        and pa.types.is_date32(one.schema.field(FILE_DATE).type)
    )


def _column(batch: pa.RecordBatch, name: str) -> pa.Array:
    return batch.column(name) if name in batch.schema.names else pa.nulls(batch.num_rows)


def _is_null(one: pa.RecordBatch, other: pa.RecordBatch, name: str) -> bool:
    """Whether a column has no value on either side; it may be missing on one."""
    return all(_column(batch, name).null_count == batch.num_rows for batch in (one, other))
