"""The columns of a table: those of a version of the schema registry, as Iceberg spells them. No I/O.

A table keeps a column that the registry retired, because files of earlier versions have its values. A catalogue numbers
the columns of a table that it creates by itself: these ids hold only for a schema that is added to a table as it is.
"""

from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass

from compactor.schema.field_ids import MAX_COLUMN_ID, METADATA_IDS, RESCUED_KEY_ID, RESCUED_VALUE_ID
from compactor.schema.schema import (
    METADATA_COLUMNS,
    METADATA_TYPES,
    RESCUED_TYPE,
    RETIRED_TYPE,
    SchemaVersion,
    metadata_names,
)

_TYPES = {"timestamp": "timestamptz", "timestamp_ntz": "timestamp"}  # other types have the same name in Iceberg


@dataclass(frozen=True, slots=True)
class TableColumn:
    """A column of the table. None is required: a row may lack any key.

    Attributes:
        field_id: The id by which the files know it.
        name: Its name in the files and in the table.
        type: Its type in Iceberg's spelling: `string`, `boolean`, `long`, `double`, `decimal(p,s)`, `date`,
            `timestamptz`, `timestamp` or `map<string,string>`.
        key_id: The id of the keys of a map; 0 for other types.
        value_id: The id of the values of a map, which may be null; 0 for other types.
    """

    field_id: int
    name: str
    type: str
    key_id: int = 0
    value_id: int = 0


def table_columns(schema: SchemaVersion, metadata_columns: Collection[str]) -> tuple[TableColumn, ...]:
    """The columns of a table whose files are of this version or earlier ones: metadata first, then the oldest first."""
    metadata = [
        TableColumn(METADATA_IDS[name], name, iceberg_type(METADATA_TYPES[name]))
        for name in metadata_names(metadata_columns)
    ]
    columns = [_column(each.field_id, each.name, each.type) for each in schema.columns]
    retired = [_column(each.field_id, each.name, RETIRED_TYPE) for each in schema.retired]
    return (*metadata, *sorted((*columns, *retired), key=lambda column: column.field_id))


def lacking_columns(known_ids: Collection[int], wanted: Iterable[TableColumn]) -> tuple[TableColumn, ...]:
    """Those of the wanted columns whose field id a table does not have yet."""
    return tuple(column for column in wanted if column.field_id not in known_ids)


def faults(schema: SchemaVersion, metadata_columns: Collection[str], needed: Collection[str] = ()) -> Iterator[str]:
    """Each reason why a table cannot have the columns of this version.

    Args:
        schema: A version from the registry.
        metadata_columns: The metadata columns in the settings.
        needed: Those of them that the table cannot do without, such as the one of its partitions.
    """
    for name in METADATA_COLUMNS:
        if name in needed and name not in metadata_columns:
            yield f"schema.metadata_columns: {name!r} is not in it -> expected it, as the table needs it"
    columns = [(column.name, column.field_id) for column in schema.columns]
    for name, field_id in columns + [(column.name, column.field_id) for column in schema.retired]:
        if not 0 < field_id < MAX_COLUMN_ID:
            what = f"has the field id {field_id}" if field_id else "has no field id"
            yield (
                f"schema version {schema.version}: column {name!r} {what} -> expected one from 1 to "
                f"{MAX_COLUMN_ID - 1:,}, which the version that added the column gives"
            )


def iceberg_type(name: str) -> str:
    """Iceberg's spelling of a type of `compactor.schema.column_types`, or of the rescued data."""
    return _TYPES.get(name, name)


def _column(field_id: int, name: str, kind: str) -> TableColumn:
    if kind == RESCUED_TYPE:
        return TableColumn(field_id, name, kind, RESCUED_KEY_ID, RESCUED_VALUE_ID)
    return TableColumn(field_id, name, iceberg_type(kind))
