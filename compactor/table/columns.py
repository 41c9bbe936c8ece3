"""The table's columns: those of a schema registry version. No I/O.

A table keeps a column that the registry retired, because files of earlier versions have its values. A catalog assigns
its own column ids when it creates a table: these ids hold only for a schema added to an existing table unchanged.
"""

from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass

from compactor.schema.field_ids import MAX_COLUMN_ID, METADATA_IDS, RESCUED_KEY_ID
from compactor.schema.schema import (
    METADATA_COLUMNS,
    METADATA_TYPES,
    RESCUED_COLUMN,
    RETIRED_TYPE,
    SchemaVersion,
    metadata_names,
)


@dataclass(frozen=True, slots=True)
class TableColumn:
    """A column of the table. None is required: a row may lack any key.

    Attributes:
        field_id: Its id in the files.
        name: Its name in the files and in the table.
        type: Its type, as in `compactor.schema.column_types`.
        first_part_id: The id of a nested type's first part; its other parts have the next ones, in its order.
    """

    field_id: int
    name: str
    type: str
    first_part_id: int = 0


def table_columns(schema: SchemaVersion, metadata_columns: Collection[str]) -> tuple[TableColumn, ...]:
    """The columns of a table with files of this version or earlier ones: metadata first, then oldest first."""
    metadata = [_column(METADATA_IDS[name], name, METADATA_TYPES[name]) for name in metadata_names(metadata_columns)]
    columns = [_column(each.field_id, each.name, each.type) for each in schema.columns]
    retired = [_column(each.field_id, each.name, RETIRED_TYPE) for each in schema.retired]
    return (*metadata, *sorted((*columns, *retired), key=lambda column: column.field_id))


def lacking_columns(known_ids: Collection[int], wanted: Iterable[TableColumn]) -> tuple[TableColumn, ...]:
    """The wanted columns whose field id is missing from a table."""
    return tuple(column for column in wanted if column.field_id not in known_ids)


def faults(schema: SchemaVersion, metadata_columns: Collection[str], needed: Collection[str] = ()) -> Iterator[str]:
    """Every reason why a table cannot have this version's columns.

    Args:
        schema: A version from the registry.
        metadata_columns: The metadata columns in the settings.
        needed: Those that the table requires, such as its partition column.
    """
    for name in METADATA_COLUMNS:
        if name in needed and name not in metadata_columns:
            yield f"schema.metadata_columns: {name!r} is missing -> expected it, as the table needs it"
    columns = [(column.name, column.field_id) for column in schema.columns]
    for name, field_id in columns + [(column.name, column.field_id) for column in schema.retired]:
        if not 0 < field_id < MAX_COLUMN_ID:
            what = f"has the field id {field_id}" if field_id else "has no field id"
            yield (
                f"schema version {schema.version}: column {name!r} {what} -> expected one from 1 to "
                f"{MAX_COLUMN_ID - 1:,}, assigned by the version that added the column"
            )


def _column(field_id: int, name: str, kind: str) -> TableColumn:
    first_part_id = RESCUED_KEY_ID if name == RESCUED_COLUMN else field_id + 1 if "<" in kind else 0
    return TableColumn(field_id, name, kind, first_part_id)
