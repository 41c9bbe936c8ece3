"""Writes the rows of one partition to right-sized Parquet files."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from compactor.core.ports import ObjectStore, ObjectWriter
from compactor.engines.rows_place import RowsPlace, writing

ROW_GROUP_BYTES = 64 * 1024 * 1024
"""The size of values per row group. Memory holds them both raw and encoded. In small files it is half a file."""

_PAGES_BYTES = 32 * 1024 * 1024
_PAGE_BYTES = (8 * 1024, 1024 * 1024)
_DICTIONARY_BYTES = 256 * 1024


class _Sink:
    """Presents a store writer to pyarrow as a file."""

    closed = False

    def __init__(self, writer: ObjectWriter) -> None:
        self._writer = writer
        self.length = 0

    def write(self, data: Any) -> int:
        held = bytes(data)
        self._writer.write(held)
        self.length += len(held)
        return len(held)

    def tell(self) -> int:
        return self.length

    def flush(self) -> None:
        """Do nothing: no bytes are buffered here."""

    def close(self) -> None:
        """Do nothing: the store finishes the object."""


class _Buffer:
    """An in-memory writer."""

    def __init__(self) -> None:
        self.parts: list[bytes] = []

    def write(self, data: bytes) -> None:
        self.parts.append(data)

    def abort(self) -> None:
        """Do nothing: there is no object to discard."""


@dataclass(frozen=True, slots=True)
class PartitionFiles:
    """Writes files of one schema, one after another, with field ids."""

    store: ObjectStore
    schema: pa.Schema
    compression: str
    target_file_bytes: int
    place: RowsPlace

    def write(self, pieces: Iterable[pa.Table], new_uri: Iterator[str]) -> Iterator[tuple[str, int]]:
        """Write rows; yield each file's URI and number of rows.

        Raises:
            StoreUnavailable: A file could not be written.
        """
        groups = _row_groups(pieces, max(1, min(ROW_GROUP_BYTES, self.target_file_bytes // 2)))
        group = next(groups, None)
        while group is not None:
            uri, rows = next(new_uri), 0
            with writing(uri), self.place.writer(self.store, uri) as writer:
                sink = _Sink(writer)
                with self._parquet(sink) as parquet:
                    while group is not None:
                        before = sink.length
                        parquet.write_table(group, row_group_size=max(group.num_rows, 1))
                        rows += group.num_rows
                        group = next(groups, None)
                        if sink.length + (sink.length - before) / 2 >= self.target_file_bytes:
                            break
            yield uri, rows

    def encoded(self, pieces: Iterable[pa.Table]) -> tuple[bytes, int]:
        """Encode rows as one in-memory file; return it with its number of rows, which is 0 for no file."""
        data, rows = _Buffer(), 0
        with self._parquet(_Sink(data)) as parquet:
            for group in _row_groups(pieces, ROW_GROUP_BYTES):
                parquet.write_table(group, row_group_size=max(group.num_rows, 1))
                rows += group.num_rows
        return b"".join(data.parts) if rows else b"", rows

    def _parquet(self, sink: _Sink) -> pq.ParquetWriter:
        lowest, highest = _PAGE_BYTES
        page = min(max(_PAGES_BYTES // max(len(self.schema), 1), lowest), highest)
        return pq.ParquetWriter(
            pa.PythonFile(sink, mode="w"),
            self.schema,
            compression=self.compression,
            store_schema=False,  # Parquet's own schema has the types
            write_page_checksum=True,
            data_page_size=page,
            dictionary_pagesize_limit=min(page, _DICTIONARY_BYTES),
        )


def _row_groups(pieces: Iterable[pa.Table], group_bytes: int) -> Iterator[pa.Table]:
    held: list[pa.Table] = []
    size = 0
    for piece in (part for each in pieces for part in _parts(each, group_bytes)):
        if held and size + piece.nbytes > group_bytes:
            yield pa.concat_tables(held)
            held, size = [], 0
        held.append(piece)
        size += piece.nbytes
    if held:
        yield pa.concat_tables(held)


def _parts(piece: pa.Table, group_bytes: int) -> Iterator[pa.Table]:
    rows = max(1, piece.num_rows * group_bytes // max(piece.nbytes, 1))
    return (piece.slice(start, rows) for start in range(0, piece.num_rows, rows))
