"""A table's manifest entries: made from Parquet footers, and read back."""

from collections.abc import Iterator, Sequence
from datetime import date, timedelta

import pyarrow as pa
import pyarrow.parquet as pq
from pyiceberg.io import FileIO, InputStream
from pyiceberg.io.pyarrow import (
    DataFileStatistics,
    compute_statistics_plan,
    data_file_statistics_from_parquet_metadata,
    parquet_path_to_id_mapping,
    pyarrow_to_schema,
)
from pyiceberg.manifest import DataFile, DataFileContent, FileFormat, ManifestContent
from pyiceberg.partitioning import PartitionSpec
from pyiceberg.schema import Schema
from pyiceberg.table.metadata import TableMetadata
from pyiceberg.table.snapshots import Snapshot
from pyiceberg.typedef import Record

from compactor.adapters.iceberg.partitions import Specs, values_in
from compactor.adapters.iceberg.schemas import dropped_columns
from compactor.core.errors import OperatorError, StoreUnavailable
from compactor.core.map_ordered import map_ordered
from compactor.core.text.safe_text import visible
from compactor.schema.field_ids import METADATA_IDS
from compactor.schema.schema import FILE_DATE
from compactor.table.catalog import TableFile

_FOOTERS_AT_ONCE = 8
_FIRST_READ_BYTES = 64 * 1024  # at the end of a file: more than most footers have [as Arrow reads]
_END_BYTES = 8  # after the footer: its length in four bytes, and "PAR1"
_MAGIC = b"PAR1"
_EPOCH = date(1970, 1, 1)

MAX_COLUMNS_WITH_BOUNDS = 100
"""How many columns have bounds in the table. Each takes space in every manifest [Java's default]."""


def data_files(
    io: FileIO, metadata: TableMetadata, schema: Schema, files: Sequence[TableFile], specs: Specs
) -> list[DataFile]:
    """The entries of new files, in the same order.

    Args:
        io: Reads the files.
        metadata: The table.
        schema: The table's columns, with those of these files.
        files: The files as the ledger describes them.
        specs: The table's partitions; this call adds those that the files need.

    Raises:
        OperatorError: A file is missing, differs from the ledger, or could not be read by field ids.
        OSError: It cannot be read now.
    """
    entry = _Entries(io, metadata, schema, specs).entry
    named = [(file, specs.of(file)) for file in files]
    return list(map_ordered(entry, named, threads=_FOOTERS_AT_ONCE))


def live_data_files(io: FileIO, snapshot: Snapshot) -> Iterator[DataFile]:
    """Yield the entries of all data files in a snapshot."""
    for manifest in snapshot.manifests(io):
        if manifest.content == ManifestContent.DATA:
            for entry in manifest.fetch_manifest_entry(io, discard_deleted=True):
                yield entry.data_file


def table_file(entry: DataFile, specs: dict[int, PartitionSpec]) -> TableFile:
    """Convert an entry for the port. A file without a date partition, possibly added by a user, has an empty date."""
    date_at = next(
        (at for at, field in enumerate(specs[entry.spec_id].fields) if field.source_id == METADATA_IDS[FILE_DATE]), None
    )
    days = None if date_at is None else entry.partition[date_at]
    day = "" if days is None else (_EPOCH + timedelta(days=days)).isoformat()
    values = values_in(entry, specs[entry.spec_id])
    return TableFile(entry.file_path, entry.file_size_in_bytes, entry.record_count, day, values=values)


def _footer(tail: bytes, uri: str) -> pq.FileMetaData:
    """Parse the footer in a file's last bytes."""
    try:
        return pq.read_metadata(pa.BufferReader(tail))
    except MemoryError as error:
        raise StoreUnavailable(f"{visible(uri)}: not enough memory for its footer of {len(tail)} bytes") from error
    except Exception as error:  # all of it is in memory, so only the bytes can be the cause
        raise OperatorError(
            f"{visible(uri)}: not a Parquet file, or one with a damaged footer -> expected the file in the "
            "ledger: `compactor verify`"
        ) from error


def _last(stream: InputStream, size_bytes: int, wanted_bytes: int) -> bytes:
    stream.seek(max(0, size_bytes - wanted_bytes))
    return bytes(stream.read(wanted_bytes))


class _Entries:
    def __init__(self, io: FileIO, metadata: TableMetadata, schema: Schema, specs: Specs) -> None:
        self._io = io
        self._specs = specs
        self._fields = {field.field_id: field for field in schema.fields}
        self._plan = compute_statistics_plan(schema, metadata.properties)
        # A user may drop a column. Later files still have it, but no reader finds it.
        dropped = [field for field, _ in dropped_columns(metadata, schema).values()]
        self._plan |= compute_statistics_plan(Schema(*dropped), {"write.metadata.metrics.default": "none"})
        self._fields |= {field.field_id: field for field in dropped}
        self._bounded = {field.field_id for field in schema.fields[:MAX_COLUMNS_WITH_BOUNDS]}

    def entry(self, named: tuple[TableFile, PartitionSpec]) -> DataFile:
        file, spec = named
        tail, size_bytes = self._tail(file)
        return self._entry(_footer(tail, file.uri), size_bytes, file, spec)

    def _entry(self, footer: pq.FileMetaData, size_bytes: int, file: TableFile, spec: PartitionSpec) -> DataFile:
        # guard: a file has the rows that the ledger names
        if (footer.num_rows, size_bytes) != (file.records, file.size_bytes):
            raise OperatorError(
                f"{visible(file.uri)}: {footer.num_rows} rows in {size_bytes} bytes -> expected {file.records} "
                f"rows in {file.size_bytes} bytes, as in the ledger: `compactor verify`"
            )
        found = data_file_statistics_from_parquet_metadata(footer, self._plan, self._ids_by_path(footer, file.uri))
        partition = self._partition(found, file, spec)
        statistics = found.to_serialized_dict()
        for bounds in ("lower_bounds", "upper_bounds"):
            statistics[bounds] = {key: value for key, value in statistics[bounds].items() if key in self._bounded}
        entry = DataFile.from_args(
            content=DataFileContent.DATA,
            file_path=file.uri,
            file_format=FileFormat.PARQUET,
            partition=partition,
            file_size_in_bytes=size_bytes,
            sort_order_id=None,
            equality_ids=None,
            key_metadata=None,
            **statistics,
        )
        entry.spec_id = spec.spec_id  # not a field of the entry itself in any version of the format
        return entry

    def _tail(self, file: TableFile) -> tuple[bytes, int]:
        """The last bytes of a file, including the whole footer, and the file's length."""
        try:
            with self._io.new_input(file.uri).open() as stream:
                size_bytes = stream.seek(0, 2)
                tail = _last(stream, size_bytes, _FIRST_READ_BYTES)
                footer_bytes = int.from_bytes(tail[-_END_BYTES:][:4], "little") + _END_BYTES
                # A wrong length could be that of a large file.
                is_footer = tail.endswith(_MAGIC) and size_bytes == file.size_bytes
                if is_footer and len(tail) < footer_bytes <= size_bytes:
                    tail = _last(stream, size_bytes, footer_bytes)
                return tail, size_bytes
        except FileNotFoundError as error:
            raise OperatorError(
                f"{visible(file.uri)}: not found -> expected the file in the ledger: `compactor verify`"
            ) from error

    def _ids_by_path(self, footer: pq.FileMetaData, uri: str) -> dict[str, int]:
        """The field id of each column in a file. Readers find columns by id, so each must match the table."""
        try:
            own = pyarrow_to_schema(footer.schema.to_arrow_schema())
        except (ValueError, TypeError) as error:
            raise OperatorError(
                f"{visible(uri)}: columns without field ids, or with a type that tables lack -> expected a file "
                "from this release: `compactor rebuild` rewrites earlier ones"
            ) from error
        for field in own.fields:
            known = self._fields.get(field.field_id)
            # guard: a file has the field ids and the types of the table
            if known is None or known.field_type != field.field_type:
                raise OperatorError(
                    f"{visible(uri)}: column {visible(field.name)!r} has field id {field.field_id} and type "
                    f"{field.field_type} -> expected {known.field_type if known else 'an id'} as in the table"
                )
        # By position: writers name a map's entries differently.
        paths = (footer.schema.column(at).path for at in range(footer.num_columns))
        return dict(zip(paths, parquet_path_to_id_mapping(own).values(), strict=True))

    def _partition(self, statistics: DataFileStatistics, file: TableFile, spec: PartitionSpec) -> Record:
        """A file's partition. Its date must also be in a column, because some readers take it from there."""
        day, number = date.fromisoformat(file.date), METADATA_IDS[FILE_DATE]
        found = statistics.column_aggregates.get(number)
        bounds = {found.current_min, found.current_max} if found else set()
        # guard: a file has the date of its partition in each row
        if file.records and (bounds != {day} or statistics.null_value_counts.get(number) != 0):
            raise OperatorError(
                f"{visible(file.uri)}: the column {FILE_DATE} is not {file.date} in every row -> expected a file "
                "from this release with it: `compactor rebuild` rewrites earlier ones"
            )
        return Record((day - _EPOCH).days, *self._specs.values_of(file, spec))
