"""The schema and the partitions of a table in Iceberg's own types, with the field ids that the files have."""

import re
from collections.abc import Collection, Iterable

from pyiceberg.partitioning import PARTITION_FIELD_ID_START, PartitionField, PartitionSpec
from pyiceberg.schema import Schema
from pyiceberg.table.metadata import TableMetadata
from pyiceberg.transforms import IdentityTransform
from pyiceberg.types import (
    BooleanType,
    DateType,
    DecimalType,
    DoubleType,
    IcebergType,
    LongType,
    MapType,
    NestedField,
    PrimitiveType,
    StringType,
    TimestampType,
    TimestamptzType,
)

from compactor.core.errors import OperatorError
from compactor.schema.field_ids import METADATA_IDS
from compactor.schema.schema import FILE_DATE, METADATA_COLUMNS, METADATA_TYPES
from compactor.table.columns import TableColumn, iceberg_type, lacking_columns

PLACEHOLDER = Schema(NestedField(1, FILE_DATE, DateType(), required=False))
"""What a table is created with: a catalog gives ids of its own to the columns of a new table, but not to later ones."""

PARTITIONS = PartitionSpec(
    PartitionField(METADATA_IDS[FILE_DATE], PARTITION_FIELD_ID_START, IdentityTransform(), FILE_DATE), spec_id=1
)
"""By the date of the files, which is a column of them."""

_PLAIN: dict[str, type[IcebergType]] = {
    "string": StringType,
    "boolean": BooleanType,
    "long": LongType,
    "double": DoubleType,
    "date": DateType,
    "timestamptz": TimestamptzType,
    "timestamp": TimestampType,
}
_DECIMAL = re.compile(r"decimal\((\d+), *(\d+)\)")


def first_schema(columns: Iterable[TableColumn]) -> Schema:
    """The schema of a table that has no columns of its own yet, in place of the one it was created with."""
    return Schema(*map(_field, columns), schema_id=PLACEHOLDER.schema_id + 1)


def extended_schema(metadata: TableMetadata, columns: Iterable[TableColumn]) -> Schema | None:
    """The schema of a table with further columns at its end; None if it has them all.

    Columns that a person renamed, or added to the table, stay as they are.

    Raises:
        OperatorError: A name that is needed belongs to another column.
    """
    current = metadata.schema()
    added = lacking_columns({field.field_id for field in current.fields}, columns)
    if not added:
        return None
    names = {field.name.lower(): field.field_id for field in current.fields}
    if taken := sorted(column.name for column in added if column.name.lower() in names):
        raise OperatorError(
            f"table at {metadata.location}: has columns {', '.join(taken)} that another writer added -> expected these "
            f"names to be free: rename the columns of the table"
        )
    number = 1 + max(schema.schema_id for schema in metadata.schemas)
    return Schema(*current.fields, *map(_field, added), schema_id=number)


def dropped_columns(metadata: TableMetadata, schema: Schema) -> dict[int, tuple[str, PrimitiveType, int]]:
    """Columns that a person dropped, by their ids: as the earliest schema has them, and its number."""
    there, found = {field.field_id for field in schema.fields}, dict[int, tuple[str, PrimitiveType, int]]()
    for older in metadata.schemas[1:]:  # the first one is the placeholder
        for field in older.fields:
            if field.field_id not in there and isinstance(field.field_type, PrimitiveType):
                found.setdefault(field.field_id, (field.name, field.field_type, older.schema_id))
    return found


def unneeded_schemas(metadata: TableMetadata, expired: Collection[int]) -> list[int]:
    """The numbers of schemas that neither the table, nor another snapshot, nor a file with a dropped column needs."""
    needed = {metadata.current_schema_id, metadata.schemas[0].schema_id}
    kept = (each for each in metadata.snapshots if each.snapshot_id not in expired)
    needed.update(each.schema_id for each in kept if each.schema_id is not None)
    needed.update(number for _, _, number in dropped_columns(metadata, metadata.schema()).values())
    return sorted({each.schema_id for each in metadata.schemas} - needed)


def new_metadata_columns(metadata: TableMetadata, wanted: Collection[str]) -> tuple[TableColumn, ...]:
    """The metadata columns that the settings name since the table was made."""
    names = {field.name for field in metadata.schema().fields}
    new = (name for name in METADATA_COLUMNS if name in wanted and name not in names)
    return tuple(TableColumn(METADATA_IDS[name], name, iceberg_type(METADATA_TYPES[name])) for name in new)


def _field(column: TableColumn) -> NestedField:
    return NestedField(column.field_id, column.name, _type(column), required=False)


def _type(column: TableColumn) -> IcebergType:
    if column.key_id:
        return MapType(column.key_id, StringType(), column.value_id, StringType(), value_required=False)
    if decimal := _DECIMAL.fullmatch(column.type):
        return DecimalType(int(decimal[1]), int(decimal[2]))
    return _PLAIN[column.type]()
