"""The numbers by which tables know columns, whatever they are called: Parquet's field ids. No I/O.

A column of the registry has the number of columns that there were before it, plus 1. A version names all columns that
there ever were, so the rule also holds for versions of releases that stored no ids. Columns that the compactor adds by
itself have fixed ids above all of those: a column that another writer adds to a table gets an id above these, and so
never one that the registry will give. They are not as high as Iceberg allows (2,147,483,447), because its format
version 4, as proposed, has statistics for ids up to 10.7 million only.
"""

from collections.abc import Callable, Mapping
from contextlib import suppress
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


def with_field_ids(schema: SchemaVersion, stored: Callable[[int], SchemaVersion], known: Ids) -> SchemaVersion:
    """A version with the field ids that it lacks.

    Args:
        schema: A version as it is stored.
        stored: Reads another version by its number. It is called at most once for each time that columns were retired.
        known: Ids that earlier calls for the same registry found, to which this call adds others.

    Returns:
        The version. Columns have no id still if a version no longer exists that is needed to tell it.
    """
    lacking: set[str | None] = {column.key for column in schema.columns if not column.field_id}
    lacking.update(column.key for column in schema.retired if not column.field_id)
    if not lacking:
        return schema
    known.update(_newest_ids(schema))
    for retired_in in sorted({column.retired_in for column in schema.retired}, reverse=True):
        if lacking <= known.keys():
            break
        with suppress(ObjectNotFound):
            known.update(_newest_ids(stored(retired_in - 1)))
    return schema.model_copy(
        update={
            "columns": tuple(_numbered(column, known) for column in schema.columns),
            "retired": tuple(_numbered(column, known) for column in schema.retired),
        }
    )


def _newest_ids(schema: SchemaVersion) -> Ids:
    """The ids of the columns that came since columns were last retired: all of those are there, in order."""
    since = max((column.retired_in for column in schema.retired), default=0)
    newest = [column.key for column in schema.columns if column.added_in >= since]
    return {key: number for number, key in enumerate(newest, schema.last_field_id - len(newest) + 1)}


def _numbered(column: _Numbered, known: Ids) -> _Numbered:
    return column.model_copy(update={"field_id": column.field_id or known.get(column.key, 0)})
