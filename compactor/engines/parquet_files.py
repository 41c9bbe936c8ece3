"""Reads stored Parquet files with ranged reads."""

import io
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import count, repeat
from types import MappingProxyType
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from compactor.core.errors import StagingError
from compactor.core.ports import ObjectStore
from compactor.schema.column_types import STORED_AS, ColumnType, parse_type, spelled_key
from compactor.schema.field_ids import RESCUED_KEY_ID, RESCUED_VALUE_ID
from compactor.schema.schema import RESCUED_COLUMN

DAMAGED = (ValueError, OSError, pa.ArrowKeyError, pa.ArrowNotImplementedError, pa.ArrowTypeError)
"""What pyarrow raises for a damaged file, or one that is not Parquet."""

FIELD_ID = b"PARQUET:field_id"
"""Arrow's metadata key for a column's id."""

_NAMES = {
    pa.string(): "string",
    pa.int64(): "long",
    pa.float64(): "double",
    pa.bool_(): "boolean",
    pa.date32(): "date",
    pa.timestamp("us", "UTC"): "timestamp",
    pa.timestamp("us"): "timestamp_ntz",
    pa.timestamp("ns", "UTC"): "timestamp_ns",
}
"""The type names in `compactor.schema.column_types`. A timestamp is INT64 in UTC; to Arrow, INT96 has no zone."""

_TYPES = {name: found for found, name in _NAMES.items()}
_TYPES |= {name: _TYPES[stored] for name, stored in STORED_AS.items()}


@dataclass(frozen=True, slots=True)
class ParquetFacts:
    """A stored file and its footer.

    Attributes:
        rows: Number of rows in all row groups.
        columns: Names of the top-level columns, in order.
        types: Their types, named as in `compactor.schema.column_types`; otherwise by pyarrow's name.
    """

    uri: str
    rows: int
    columns: tuple[str, ...]
    types: tuple[str, ...]
    size_bytes: int


class StoredFile(io.RawIOBase):
    """Presents a stored object as a seekable file. Each read is one ranged read from the store."""

    def __init__(self, store: ObjectStore, uri: str, size_bytes: int, etag: str) -> None:
        super().__init__()
        self._store = store
        self._uri = uri
        self._size_bytes = size_bytes
        self._etag = etag
        self._position = 0

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def tell(self) -> int:
        return self._position

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        base = {io.SEEK_SET: 0, io.SEEK_CUR: self._position, io.SEEK_END: self._size_bytes}[whence]
        self._position = base + offset
        return self._position

    def read(self, size: int = -1) -> bytes:
        left = max(0, self._size_bytes - self._position)
        length = left if size is None or size < 0 else min(size, left)
        if not length:
            return b""
        data = self._store.read_range(self._uri, self._position, length, etag=self._etag)
        self._position += len(data)
        return data

    def readinto(self, buffer: Any) -> int:
        data = self.read(len(buffer))
        buffer[: len(data)] = data
        return len(data)


class StoredParquet(pq.ParquetFile):  # type: ignore[misc]  # pyarrow is not typed
    """A stored Parquet file, read in the calling thread.

    Arrow's own threads would call Python for each read, and still hold the results when the process exits. Python then
    terminates a thread that calls it, which C++ takes for a crash: the process would end with SIGABRT although its work
    is done.
    """

    def iter_batches(self, *args: Any, use_threads: bool = False, **options: Any) -> Iterator[pa.RecordBatch]:
        batches: Iterator[pa.RecordBatch] = super().iter_batches(*args, use_threads=use_threads, **options)
        return batches

    def read_row_group(self, *args: Any, use_threads: bool = False, **options: Any) -> pa.Table:
        return super().read_row_group(*args, use_threads=use_threads, **options)


def rows_at_once(file: StoredParquet, most_rows: int, most_bytes: int) -> int:
    """How many rows to read at once, to limit the number of uncompressed bytes in memory."""
    groups = [file.metadata.row_group(number) for number in range(file.num_row_groups)]
    bytes_a_row = max((group.total_byte_size / max(group.num_rows, 1) for group in groups), default=1)
    return max(1, min(most_rows, int(most_bytes / max(bytes_a_row, 1))))


def open_parquet(store: ObjectStore, uri: str) -> tuple[StoredParquet, int]:
    """Open a stored Parquet file for reading; also return its size in bytes.

    Raises:
        StagingError: It is missing, truncated, or not a Parquet file.
    """
    info = store.stat(uri)
    if info is None:
        raise StagingError(f"{uri}: no such object; expected a Parquet file")
    try:
        source = pa.PythonFile(StoredFile(store, uri, info.size_bytes, info.etag), mode="r")
        # guard: a page whose bytes have changed is not read
        return StoredParquet(source, page_checksum_verification=True), info.size_bytes
    except DAMAGED as exc:
        raise StagingError(f"{uri}: {exc}; expected a complete Parquet file") from exc


def parquet_facts(store: ObjectStore, uri: str) -> ParquetFacts:
    """Read the footer of a stored file.

    Raises:
        StagingError: It is missing, truncated, or not a Parquet file.
    """
    return facts_of(uri, *open_parquet(store, uri))


def facts_of(uri: str, file: StoredParquet, size_bytes: int) -> ParquetFacts:
    """The footer of an opened file."""
    schema = file.schema_arrow
    return ParquetFacts(
        uri=uri,
        rows=file.metadata.num_rows,
        columns=tuple(schema.names),
        types=tuple(map(type_name, schema.types)),
        size_bytes=size_bytes,
    )


def type_name(found: pa.DataType) -> str:
    """The name of a column's type in `compactor.schema.column_types`, or pyarrow's if there is none."""
    if pa.types.is_decimal128(found):
        return f"decimal({found.precision},{found.scale})"
    if pa.types.is_list(found):
        return f"list<{type_name(found.value_type)}>"
    if pa.types.is_struct(found):
        return f"struct<{','.join(f'{spelled_key(part.name)}:{type_name(part.type)}' for part in found)}>"
    if pa.types.is_map(found):
        return f"map<{type_name(found.key_type)},{type_name(found.item_type)}>"
    return _NAMES.get(found, str(found))


def python_values(column: pa.Array) -> list[Any]:
    """The values of a column as accepted by `compactor.schema.column_types.canonical_text`."""
    name = type_name(column.type)
    if "timestamp_ns" in name:  # a datetime has only microseconds
        plain = {**_TYPES, "timestamp_ns": pa.int64()}
        column = column.cast(_arrow_type(parse_type(name), repeat(0), plain))
    values: list[Any] = column.to_pylist()
    return values


def arrow_field(name: str, type_: str, field_id: int) -> pa.Field:
    """A file's column of a given type; with an id unless that is 0."""
    ids = count(field_id + 1) if field_id else repeat(0)
    rescued_ids = iter((RESCUED_KEY_ID, RESCUED_VALUE_ID))
    kind = _arrow_type(parse_type(type_), rescued_ids if name == RESCUED_COLUMN else ids)
    return _numbered(pa.field(name, kind), field_id)


def _arrow_type(
    column_type: ColumnType, ids: Iterator[int], types: Mapping[str, pa.DataType] = MappingProxyType(_TYPES)
) -> pa.DataType:
    """The Arrow type of a column, whose parts get the next ids. The names are those in Parquet's specification."""

    def part(name: str, kind: ColumnType, *, nullable: bool = True) -> pa.Field:
        number = next(ids)
        return _numbered(pa.field(name, _arrow_type(kind, ids, types), nullable), number)

    match column_type.kind:
        case "decimal":
            return pa.decimal128(column_type.precision, column_type.scale)
        case "list":
            return pa.list_(part("element", *column_type.parts))
        case "struct":
            return pa.struct(map(part, column_type.names, column_type.parts))
        case "map":
            key = part("key", ColumnType("string"), nullable=False)
            return pa.map_(key, part("value", *column_type.parts))
    return types[column_type.kind]


def _numbered(column: pa.Field, field_id: int) -> pa.Field:
    return column.with_metadata({FIELD_ID: str(field_id)}) if field_id else column
