"""Finds each row's partition from its columns, one batch at a time. No I/O.

Each distinct value of a batch is examined once. Valid time texts are truncated first: in UTC after the day or the hour,
and otherwise after the minute, because the rest cannot change the UTC hour.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, date, datetime
from decimal import Decimal

import pyarrow as pa
import pyarrow.compute as pc

from compactor.core.errors import SettingsError
from compactor.core.partitions import PartitionField, PartitionValues
from compactor.engines.partitioned.buckets import BUCKETED_TYPES, bucket_of, buckets_of
from compactor.schema.column_types import ColumnType, Value, canonical_text, value_of
from compactor.schema.registry import PARTITION_TYPES
from compactor.schema.schema import SchemaVersion

_MINUTE = r"[0-9]{4}-[0-9]{2}-[0-9]{2}[T ](?:[01][0-9]|2[0-3]):[0-5][0-9]"
_SECONDS = r"(?::[0-5][0-9](?:\.[0-9]{1,6}0*)?)?"
_KEPT = {"day": (len("yyyy-mm-dd"), "T00:00Z"), "hour": (len("yyyy-mm-ddThh"), ":00Z")}
_PLAIN_UTC = f"^{_MINUTE}{_SECONDS}Z$"
_WITH_OFFSET = f"^({_MINUTE}){_SECONDS}([+-][0-9:]+)$"
_DATE, _TIMESTAMP = ColumnType("date"), ColumnType("timestamp")


@dataclass(frozen=True, slots=True)
class Codes:
    """The partitions of one batch's rows.

    Attributes:
        values: The distinct partitions.
        rows: For each row, the index of its partition in `values`.
        unparsed: Number of rows with a value that is not a time where one was expected.
    """

    values: list[PartitionValues]
    rows: pa.Array
    unparsed: int

    @property
    def counts(self) -> dict[PartitionValues, int]:
        """The number of rows in each partition."""
        counted = self.rows.value_counts()
        numbers = zip(counted.field("values").to_pylist(), counted.field("counts").to_pylist(), strict=True)
        return {self.values[at]: number for at, number in numbers}


@dataclass(frozen=True, slots=True)
class RowPartitions:
    """The partitions of rows with one schema version's columns.

    A key without a column has no value in any row. It may have values in the rescued data, which do not count.

    Raises:
        SettingsError: A column has a nested type, perhaps from an earlier schema file.
    """

    fields: tuple[PartitionField, ...]
    schema: SchemaVersion
    _columns: dict[str, tuple[str, ColumnType]] = field(init=False, default_factory=dict)

    def __post_init__(self) -> None:
        for column in self.schema.columns:
            if column.key is not None and any(each.key == column.key for each in self.fields):
                if column.is_nested:
                    raise SettingsError(
                        [f"output.partition_by: {column.key!r} is of type {column.type} -> {PARTITION_TYPES}"]
                    )
                self._columns[column.key] = (column.name, column.column_type)

    @property
    def columns(self) -> list[str]:
        """The names of the columns to read."""
        return [name for name, _ in self._columns.values()]

    def of(self, batch: pa.RecordBatch) -> Codes:
        """The partitions of a batch's rows; it has at least `columns`."""
        values: list[PartitionValues] = [()]
        rows, unparsed = pa.repeat(0, batch.num_rows), 0
        for each in self.fields:
            texts, indices = self._texts(each, batch)
            unparsed += _unparsed(each, self._columns.get(each.key), batch, indices)
            width = len(texts) + 1  # the last one is for rows without a value
            both = pc.add(pc.multiply(rows, width), pc.fill_null(indices, len(texts)).cast(pa.int64()))
            found = both.dictionary_encode()
            known: list[str | None] = [*texts, None]
            values = [(*values[at // width], known[at % width]) for at in found.dictionary.to_pylist()]
            rows = found.indices.cast(pa.int64())
        return Codes(values, rows, unparsed)

    def _texts(self, each: PartitionField, batch: pa.RecordBatch) -> tuple[list[str], pa.Array]:
        """The distinct values of a field as text, and each row's index into them, or null."""
        named = self._columns.get(each.key)
        if named is None:
            return [], pa.nulls(batch.num_rows, pa.int32())
        name, column_type = named
        column = batch.column(name)
        if each.transform in ("day", "hour"):
            if column_type.kind == "timestamp":
                column = _floored(column, each)
            elif column_type.kind == "string" and each.epoch is None:
                column = _cut(column, each)
        distinct = column.dictionary_encode()
        if each.transform == "bucket" and column_type.kind == "string":
            texts = buckets_of(distinct.dictionary, each.buckets).cast(pa.string())
        elif each.transform == "identity" and column_type.kind == "string":
            texts = distinct.dictionary
        else:
            text_of = _text_of(each, column_type)
            texts = pa.array([text_of(value) for value in distinct.dictionary.to_pylist()], pa.string())
        merged = texts.dictionary_encode()
        return merged.dictionary.to_pylist(), merged.indices.take(distinct.indices)


def _floored(column: pa.Array, each: PartitionField) -> pa.Array:
    """Round times down to the day or the hour. They are cast to no zone, so no time zone database is needed."""
    plain = column.cast(pa.int64()).cast(pa.timestamp("us"))
    return pc.floor_temporal(plain, unit=each.transform).cast(pa.int64()).cast(column.type)


def _cut(column: pa.Array, each: PartitionField) -> pa.Array:
    """Truncate time texts to the relevant part. All others stay unchanged."""
    is_plain = pc.match_substring_regex(column, _PLAIN_UTC)
    characters, ending = _KEPT[each.transform]
    kept = pc.binary_join_element_wise(pc.utf8_slice_codeunits(column, 0, characters), ending, "")
    found = pc.if_else(is_plain, kept, column)
    if pc.all(is_plain, min_count=0).as_py():
        return found
    return pc.replace_substring_regex(found, _WITH_OFFSET, r"\1\2")


def _unparsed(
    each: PartitionField, named: tuple[str, ColumnType] | None, batch: pa.RecordBatch, indices: pa.Array
) -> int:
    if named is None or each.transform not in ("day", "hour"):
        return 0
    return int(indices.null_count - batch.column(named[0]).null_count)


def _text_of(each: PartitionField, column_type: ColumnType) -> Callable[[Value], str | None]:
    """Return a function from a column's Python value to the partition value."""
    if each.transform in ("day", "hour"):
        return lambda value: _time_text(each, _time_of(each, value, column_type))
    if each.transform == "identity":
        return lambda value: canonical_text(value, column_type)
    if column_type.kind in BUCKETED_TYPES:
        return lambda value: str(bucket_of(value, each.buckets))
    # Iceberg has no buckets for fractions and booleans; their text has.
    return lambda value: str(bucket_of(canonical_text(value, column_type), each.buckets))


def _time_of(each: PartitionField, value: Value, column_type: ColumnType) -> datetime | date | None:
    if isinstance(value, date):  # a datetime is a date, too
        return value
    text = value if isinstance(value, str) else canonical_text(value, column_type)
    if isinstance(value, Decimal | float | int) and each.epoch is None:
        return None
    found = value_of(text, ColumnType("timestamp", epoch=each.epoch) if each.epoch else _TIMESTAMP)
    if found is None and each.transform == "day":
        found = value_of(text, _DATE)
    return found if isinstance(found, date) else None


def _time_text(each: PartitionField, value: datetime | date | None) -> str | None:
    if not isinstance(value, datetime):
        return None if value is None or each.transform == "hour" else value.isoformat()
    moment = value.astimezone(UTC)
    day = moment.date().isoformat()
    return day if each.transform == "day" else f"{day}-{moment.hour:02d}"


def without_values(fields: Sequence[PartitionField]) -> PartitionValues:
    """The partition of rows without any values."""
    return (None,) * len(fields)
