"""Reads the rows of an S3 Inventory's data file in bounded memory: CSV with gzip, ORC or Parquet."""

import csv
import gzip
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from io import TextIOWrapper
from typing import IO, Any
from urllib.parse import unquote_plus

import pyarrow as pa
import pyarrow.parquet as pq
from pyarrow import orc

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
"""The types of the non-text columns."""

_DEFAULTS: Mapping[str, Any] = {
    "size": 0,
    "lastmodifieddate": _EPOCH,
    "islatest": True,
    "isdeletemarker": False,
}
"""Values for missing columns. A delete marker has neither size nor ETag."""


def read_rows(file: IO[bytes], file_format: str, columns: Sequence[str], where: str) -> Iterator[InventoryRow]:
    """Yield the rows of one data file.

    Args:
        file: Its bytes, seekable.
        file_format: CSV, ORC or Parquet.
        columns: The columns in the manifest.json; only CSV files need them.
        where: The file's name for messages.

    Raises:
        InventoryError: It has a wrong format, or lacks a column.
    """
    if file_format == "CSV":
        return _csv_rows(file, columns, where)
    return _arrow_rows(_orc_batches if file_format == "ORC" else _parquet_batches, file, file_format, where)


def _arrow_rows(
    batches: Callable[[IO[bytes], str], Iterator[Mapping[str, Any]]], file: IO[bytes], file_format: str, where: str
) -> Iterator[InventoryRow]:
    try:
        for batch in batches(file, where):
            rows = zip(*(_values(batch.get(name), name, len(batch["key"])) for name in WANTED), strict=True)
            for row in rows:
                _check(row, where)
                yield _row(row)
    except (pa.ArrowException, OSError, OverflowError) as exc:
        raise InventoryError(f"{where}: unreadable; expected an inventory in {file_format}") from exc


def _parquet_batches(file: IO[bytes], where: str) -> Iterator[Mapping[str, Any]]:
    parquet = pq.ParquetFile(file)
    names = _named(parquet.schema_arrow.names, where)
    # Arrow's own threads would call Python, possibly during shutdown.
    for batch in parquet.iter_batches(_BATCH_ROWS, columns=list(names.values()), use_threads=False):
        yield {name: batch.column(each) for name, each in names.items()}


def _orc_batches(file: IO[bytes], where: str) -> Iterator[Mapping[str, Any]]:
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
        raise InventoryError(f"{where}: has no column {', '.join(missing)}; expected those in its manifest.json")
    return names


def _values(column: Any, name: str, rows: int) -> list[Any]:
    default = _DEFAULTS.get(name, "")
    if column is None:
        return [default] * rows
    if name == "lastmodifieddate":  # pyarrow would look up pandas for every single value
        milliseconds = column.cast(_MILLISECONDS, safe=False).cast(pa.int64()).to_pylist()
        return [default if each is None else _EPOCH + timedelta(milliseconds=each) for each in milliseconds]
    values = column.cast(_TYPES.get(name, pa.string())).to_pylist()
    return [default if each is None else each for each in values] if column.null_count else values


def _csv_rows(file: IO[bytes], columns: Sequence[str], where: str) -> Iterator[InventoryRow]:
    places = {name: columns.index(name) for name in WANTED if name in columns}
    number = 0
    try:
        # In CSV, keys are URL-encoded, with + for a space; everything else is plain.
        with gzip.open(file) as unpacked, TextIOWrapper(unpacked, encoding="utf-8", newline="") as text:
            for number, fields in enumerate(csv.reader(text, strict=True), start=1):
                if len(fields) != len(columns):
                    raise InventoryError(
                        f"{where}: row {number:,} has {len(fields)} fields; expected {len(columns)}, by manifest.json"
                    )
                row = tuple(_parsed(fields, places.get(name), name) for name in WANTED)
                _check(row, where)
                yield _row(row)
    except (csv.Error, ValueError, KeyError, OverflowError) as exc:
        row_number = number + isinstance(exc, csv.Error)  # it is not counted yet
        raise InventoryError(
            f"{where}: row {row_number:,} is malformed; expected CSV as written by S3 Inventory"
        ) from exc
    except (OSError, EOFError, zlib.error) as exc:
        raise InventoryError(f"{where}: decompression failed after row {number:,}; expected CSV with gzip") from exc


def _parsed(fields: Sequence[str], place: int | None, name: str) -> Any:
    text = fields[place] if place is not None else ""
    if name == "key":
        return unquote_plus(text, errors="strict")
    if name not in _TYPES:
        return text
    if not text:
        return _DEFAULTS[name]
    if name == "size":
        return int(text)
    if name == "lastmodifieddate":
        moment = datetime.fromisoformat(text)
        return moment if moment.tzinfo else moment.replace(tzinfo=UTC)
    return {"true": True, "false": False}[text.lower()]


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
