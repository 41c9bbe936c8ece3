"""The numbers by which tables know columns, whatever they are called: Parquet's field ids. No I/O.

A column of the registry has the number of columns that there were before it, plus 1. The version that added it names
all of them, retired ones included, so the rule also holds for versions of releases that stored no ids. Columns that the
compactor adds by itself have fixed ids above all of those: a column that another writer adds to a table gets an id
above these, and so never one that the registry will give. They are not as high as Iceberg allows (2,147,483,447),
because format version 4 keeps statistics for ids up to 10.7 million only.
"""

from collections.abc import Callable, Mapping
from typing import TypeVar

from compactor.core.errors import ObjectNotFound
from compactor.schema.schema import FILE_DATE, Column, RetiredColumn, SchemaVersion

METADATA_IDS: Mapping[str, int] = {
    "_source_file": 10_000_001,
    "_processed_at": 10_000_002,
    "_manifest_id": 10_000_003,
    FILE_DATE: 10_000_004,
}

RESCUED_KEY_ID = 10_000_101
RESCUED_VALUE_ID = 10_000_102
"""The ids of the entries of the rescued data. The native kernel has the same."""

MAX_COLUMN_ID = 10_000_000
"""The highest id that a column of the registry may have."""

_Numbered = TypeVar("_Numbered", Column, RetiredColumn)

Ids = dict[str | None, int]
"""By key, which is None for the rescued data. A key never gets a second column, so it has one id for ever."""


def new_ids(schema: SchemaVersion) -> Ids:
    """The ids of the columns that a version added, by the rule and not by what it stores."""
    new = [column.key for column in schema.columns if column.added_in == schema.version]
    return {key: number for number, key in enumerate(new, schema.last_field_id - len(new) + 1)}


def with_field_ids(schema: SchemaVersion, stored: Callable[[int], SchemaVersion], known: Ids) -> SchemaVersion:
    """A version with the field ids that it lacks.

    Args:
        schema: A version as it is stored.
        stored: Reads another version by its number. Only versions with retired columns need any.
        known: Ids that earlier calls for the same registry found, to which this call adds others.

    Returns:
        The version. Columns that a version added which no longer exists have no id still.
    """
    lacking = [column for column in (*schema.columns, *schema.retired) if not column.field_id]
    if not lacking:
        return schema
    if not schema.retired:
        known.update((column.key, number) for number, column in enumerate(schema.columns, 1))
    for column in lacking:
        if column.key not in known:
            known.update(_ids_beside(column, stored))
    columns = tuple(_numbered(column, known) for column in schema.columns)
    retired = tuple(_numbered(column, known) for column in schema.retired)
    return schema.model_copy(update={"columns": columns, "retired": retired})


def _ids_beside(column: Column | RetiredColumn, stored: Callable[[int], SchemaVersion]) -> Ids:
    """The ids of all columns that the version of a column added; none if that version no longer exists."""
    try:
        if isinstance(column, Column):
            return new_ids(stored(column.added_in))
        with_it = stored(column.retired_in - 1)
        return new_ids(stored(next(each.added_in for each in with_it.columns if each.key == column.key)))
    except (ObjectNotFound, StopIteration):
        return {}


def _numbered(column: _Numbered, known: Ids) -> _Numbered:
    return column.model_copy(update={"field_id": column.field_id or known.get(column.key, 0)})
