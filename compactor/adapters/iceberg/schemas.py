"""A table's schema and partitions in Iceberg's types, with the files' field ids."""

from collections.abc import Collection, Iterable, Iterator
from itertools import count

from pyiceberg.partitioning import PARTITION_FIELD_ID_START, PartitionField, PartitionSpec
from pyiceberg.schema import Schema
from pyiceberg.table.metadata import TableMetadata
from pyiceberg.transforms import IdentityTransform
from pyiceberg.types import (
    DateType,
    IcebergType,
    ListType,
    MapType,
    NestedField,
    StringType,
    StructType,
)

from compactor.core.errors import OperatorError
from compactor.schema.column_types import STORED_AS, ColumnType, parse_type
from compactor.schema.field_ids import METADATA_IDS
from compactor.schema.schema import FILE_DATE, METADATA_COLUMNS, METADATA_TYPES
from compactor.table.columns import TableColumn, lacking_columns

_TYPES = {**STORED_AS, "timestamp": "timestamptz", "timestamp_ntz": "timestamp"}  # other types have the same name

PLACEHOLDER = Schema(NestedField(1, FILE_DATE, DateType(), required=False))
"""The initial schema of a new table: a catalog assigns its own ids to the columns of a new table, but not to later
ones."""

PARTITIONS = PartitionSpec(
    PartitionField(METADATA_IDS[FILE_DATE], PARTITION_FIELD_ID_START, IdentityTransform(), FILE_DATE), spec_id=1
)
"""By the files' date, which is also a column."""


def first_schema(columns: Iterable[TableColumn]) -> Schema:
    """The schema that replaces the placeholder."""
    return Schema(*map(_field, columns), schema_id=PLACEHOLDER.schema_id + 1)


def extended_schema(metadata: TableMetadata, columns: Iterable[TableColumn]) -> Schema | None:
    """A table's schema with additional columns at its end; None if it has them all.

    Columns that a user renamed, or added to the table, stay unchanged.

    Raises:
        OperatorError: Another column has a required name.
    """
    current = metadata.schema()
    added = lacking_columns({field.field_id for field in current.fields}, columns)
    if not added:
        return None
    names = {field.name.lower(): field.field_id for field in current.fields}
    if taken := sorted(column.name for column in added if column.name.lower() in names):
        raise OperatorError(
            f"table at {metadata.location}: has columns {', '.join(taken)} from another writer -> expected these "
            "names to be free: rename the columns in the table"
        )
    number = 1 + max(schema.schema_id for schema in metadata.schemas)
    return Schema(*current.fields, *map(_field, added), schema_id=number)


def dropped_columns(metadata: TableMetadata, schema: Schema) -> dict[int, tuple[NestedField, int]]:
    """Columns dropped by a user, by id, as in the earliest schema with each, and that schema's number."""
    there, found = {field.field_id for field in schema.fields}, dict[int, tuple[NestedField, int]]()
    for older in metadata.schemas[1:]:  # the first one is the placeholder
        for field in older.fields:
            if field.field_id not in there:
                found.setdefault(field.field_id, (field, older.schema_id))
    return found


def unneeded_schemas(metadata: TableMetadata, expired: Collection[int]) -> list[int]:
    """The numbers of schemas that neither the table, nor other snapshots, nor files with dropped columns need."""
    needed = {metadata.current_schema_id, metadata.schemas[0].schema_id}
    kept = (each for each in metadata.snapshots if each.snapshot_id not in expired)
    needed.update(each.schema_id for each in kept if each.schema_id is not None)
    needed.update(number for _, number in dropped_columns(metadata, metadata.schema()).values())
    return sorted({each.schema_id for each in metadata.schemas} - needed)


def new_metadata_columns(metadata: TableMetadata, wanted: Collection[str]) -> tuple[TableColumn, ...]:
    """The metadata columns added to the settings after the table was created."""
    names = {field.name for field in metadata.schema().fields}
    new = (name for name in METADATA_COLUMNS if name in wanted and name not in names)
    return tuple(TableColumn(METADATA_IDS[name], name, METADATA_TYPES[name]) for name in new)


def _field(column: TableColumn) -> NestedField:
    kind = _type(parse_type(column.type), count(column.first_part_id))
    return NestedField(column.field_id, column.name, kind, required=False)


def _type(column_type: ColumnType, ids: Iterator[int]) -> IcebergType:
    """A type in Iceberg's spelling, whose parts get the next ids."""

    def part(name: str, kind: ColumnType) -> NestedField:
        return NestedField(next(ids), name, _type(kind, ids), required=False)

    match column_type.kind:
        case "list":
            element = part("element", *column_type.parts)
            return ListType(element.field_id, element.field_type, element_required=False)
        case "map":
            key_id, value = next(ids), part("value", *column_type.parts)
            return MapType(key_id, StringType(), value.field_id, value.field_type, value_required=False)
        case "struct":
            return StructType(*map(part, column_type.names, column_type.parts))
    return IcebergType.model_validate(_TYPES.get(column_type.kind, str(column_type)))
