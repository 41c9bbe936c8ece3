"""Reads the rows of a data file of an S3 Inventory, in bounded memory: CSV with gzip, ORC or Parquet."""

from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import IO, Any
from urllib.parse import unquote_plus

import pyarrow as pa
import pyarrow.parquet as pq
from pyarrow import csv, orc

from compactor.core.errors import InventoryError
from compactor.sources.inventory.document import NEEDED, WANTED, column_name
from compactor.sources.inventory.rows import InventoryRow

_BATCH_ROWS = 20_000
_EPOCH = datetime.fromtimestamp(0, UTC)
_MILLISECONDS = pa.timestamp("ms", "UTC")

_TYPES = {
    "size": pa.int64(),
    "lastmodifieddate": _MILLISECONDS,
    "islatest": pa.bool_(),
    "isdeletemarker": pa.bool_(),
}
"""Of the columns that are no text."""

_DEFAULTS: Mapping[str, Any] = {
    "size": 0,
    "lastmodifieddate": _EPOCH,
    "islatest": True,
    "isdeletemarker": False,
}
"""Where there is no value. A delete marker has neither size nor ETag."""


_Batches = Iterator[Mapping[str, Any]]
"""Columns by `column_name`, batch by batch."""


def read_rows(file: IO[bytes], file_format: str, columns: Sequence[str], where: str) -> Iterator[InventoryRow]:
    """Yield the rows of one data file.

    Args:
        file: Its bytes, which can be read at any place.
        file_format: CSV, ORC or Parquet.
        columns: What the inventory says of its columns; only CSV files need it.
        where: The file, for messages.

    Raises:
        InventoryError: It cannot be read as what it should be, or lacks a column.
    """
    try:
        if file_format == "CSV":
            batches = _csv_batches(file, columns)
        else:
            batches = _orc_batches(file, where) if file_format == "ORC" else _parquet_batches(file, where)
        for batch in batches:
            rows = zip(*(_values(batch.get(name), name, len(batch["key"])) for name in WANTED), strict=True)
            for row in rows:
                _check(row, where)
                yield _row(row)
    except (pa.ArrowException, OSError, OverflowError, UnicodeDecodeError) as exc:
        raise InventoryError(f"{where}: cannot be read; expected an inventory in {file_format}") from exc


def _csv_batches(file: IO[bytes], columns: Sequence[str]) -> _Batches:
    with csv.open_csv(
        pa.CompressedInputStream(file, "gzip"),
        csv.ReadOptions(column_names=list(columns), use_threads=False),
        csv.ParseOptions(newlines_in_values=True),
        csv.ConvertOptions(
            column_types={name: _TYPES.get(name, pa.string()) for name in columns},
            null_values=[""],
            include_columns=[name for name in WANTED if name in columns],
        ),
    ) as batches:
        for batch in batches:
            # In CSV, keys are URL-encoded, with + for a space; everything else is plain.
            keys = [unquote_plus(key, errors="strict") for key in batch.column("key").to_pylist()]
            yield {name: batch.column(name) for name in batch.schema.names} | {"key": pa.array(keys, pa.string())}


def _parquet_batches(file: IO[bytes], where: str) -> _Batches:
    parquet = pq.ParquetFile(file)
    names = _named(parquet.schema_arrow.names, where)
    # Arrow's own threads would call Python, perhaps while it ends.
    for batch in parquet.iter_batches(_BATCH_ROWS, columns=list(names.values()), use_threads=False):
        yield {name: batch.column(each) for name, each in names.items()}


def _orc_batches(file: IO[bytes], where: str) -> _Batches:
    table = orc.ORCFile(file)
    names = _named(table.schema.names, where)
    for number in range(table.nstripes):
        stripe = table.read_stripe(number, columns=list(names.values()))
        for start in range(0, stripe.num_rows, _BATCH_ROWS):
            batch = stripe.slice(start, _BATCH_ROWS)
            yield {name: batch.column(each) for name, each in names.items()}


def _named(own: Sequence[str], where: str) -> dict[str, str]:
    """The columns to read, by `column_name`."""
    names = {column_name(each): each for each in own if column_name(each) in WANTED}
    missing = [NEEDED[each] for each in NEEDED if each not in names]
    if missing:
        raise InventoryError(f"{where}: has no column {', '.join(missing)}; expected those of its manifest.json")
    return names


def _values(column: Any, name: str, rows: int) -> list[Any]:
    default = _DEFAULTS.get(name, "")
    if column is None:
        return [default] * rows
    if name == "lastmodifieddate":  # pyarrow looks for pandas for each time that it converts
        milliseconds = column.cast(_MILLISECONDS, safe=False).cast(pa.int64()).to_pylist()
        return [default if each is None else _EPOCH + timedelta(milliseconds=each) for each in milliseconds]
    values = column.cast(_TYPES.get(name, pa.string())).to_pylist()
    return [default if each is None else each for each in values] if column.null_count else values


def _check(row: Sequence[Any], where: str) -> None:
    """Check that a row can be planned: it names an object, and a version of it unless it is a delete marker."""
    bucket, key, size_bytes, modified_at, etag, _, is_delete_marker, *_ = row
    if not bucket or not key or size_bytes < 0:
        raise InventoryError(f"{where}: a row has no bucket, no key or no size; expected all of them")
    if not is_delete_marker and (not etag or modified_at == _EPOCH):
        raise InventoryError(f"{where}: a row has no ETag or no LastModifiedDate; expected both for each object")


def _row(row: Sequence[Any]) -> InventoryRow:
    bucket, key, size_bytes, modified_at, etag, *rest = row
    return InventoryRow(bucket, key, size_bytes, etag.strip('"'), modified_at, *rest)
