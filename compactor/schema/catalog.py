"""Compares a schema version's columns with those of a table in the Glue Data Catalog. No I/O."""

import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from compactor.schema.column_types import Kind, parse_type
from compactor.schema.schema import METADATA_TYPES, RESCUED_COLUMN, RESCUED_TYPE, SchemaVersion, metadata_names

_NAME = re.compile("[\t\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]{1,255}")
"""Valid column names [Glue API, Column]."""

_HIVE_NAMES: Mapping[Kind, str] = {
    "long": "bigint",
    "timestamp_ntz": "timestamp",
    "timestamp_ns": "timestamp",
    "list": "array",
    "objectid": "string",
}
"""Types with a different name in Hive."""

_QUOTE = "`"


@dataclass(frozen=True, slots=True)
class TableColumns:
    """A catalog table's columns.

    Attributes:
        types: Each column's Hive type, by name and in order.
        partition_keys: The names of columns that are not in the files.
    """

    types: Mapping[str, str]
    partition_keys: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class Drift:
    """How a table differs from a schema version. Additional columns of the table do not count.

    Attributes:
        missing: The Hive type of each missing column, by name.
        other_types: The table's type and the expected one, by column. Only an operator can change a type.
    """

    missing: Mapping[str, str]
    other_types: Mapping[str, tuple[str, str]]

    def __bool__(self) -> bool:
        return bool(self.missing or self.other_types)


@dataclass(frozen=True, slots=True)
class OtherType:
    """A column whose type in a table differs from the output."""

    column: str  # its name
    found: str  # its type in the table
    expected: str  # the type of its values in the output


@dataclass(frozen=True, slots=True)
class Published:
    """The result of adding a schema version's columns to a table."""

    table: str  # the table, as database.table
    version: int  # schema version; 0 if there is none yet
    added: tuple[str, ...]  # columns added to the table
    other_types: tuple[OtherType, ...]  # columns whose catalog types need correction


class CatalogTable(Protocol):
    """A Glue Data Catalog table through which Athena reads the output."""

    @property
    def name(self) -> str:
        """The database and the table, as `database.table`."""

    def columns(self) -> TableColumns:
        """The table's current columns.

        Raises:
            AccessError: There is no such table, or reading it is not permitted.
            StoreUnavailable: A transient failure.
        """

    def add(self, wanted: Mapping[str, str]) -> Drift:
        """Add missing columns after the existing ones, and change nothing else.

        Returns:
            The difference before.

        Raises:
            AccessError: There is no such table, or changing it is not permitted.
            StoreUnavailable: A transient failure.
        """


def catalog_columns(schema: SchemaVersion, metadata_columns: Collection[str]) -> dict[str, str]:
    """The Hive type of each output column, by name: a row's origin, all keys, and rescued values.

    The catalog ignores case: if two names differ only in case, the first one gets the column. Names that the catalog
    refuses are omitted, because it would refuse all others with them; only `exact` names can be invalid. So are structs
    with keys other than words, which Hive's spelling does not have.
    """
    columns = {name: METADATA_TYPES[name] for name in metadata_names(metadata_columns)}
    for each in schema.columns:
        kind = parse_type(each.type).spelled(_HIVE_NAMES)
        if _NAME.fullmatch(each.name) and _QUOTE not in kind:
            columns.setdefault(each.name.lower(), kind)
    columns[RESCUED_COLUMN] = RESCUED_TYPE
    return columns


def table_columns(table: Mapping[str, Any]) -> TableColumns:
    """A table's columns from a GetTable response, or from a TableInput."""
    return TableColumns(
        {each["Name"].lower(): each.get("Type", "") for each in table.get("StorageDescriptor", {}).get("Columns", ())},
        frozenset(each["Name"].lower() for each in table.get("PartitionKeys", ())),
    )


def drift(found: TableColumns, wanted: Mapping[str, str]) -> Drift:
    """Compare a table with the wanted columns.

    Names are unique within a table, so a column named like a partition key can only be read from the files.
    """
    wanted = {name: kind for name, kind in wanted.items() if name not in found.partition_keys}
    return Drift(
        missing={name: kind for name, kind in wanted.items() if name not in found.types},
        other_types={
            name: (found.types[name], kind)
            for name, kind in wanted.items()
            if name in found.types and found.types[name].replace(" ", "") != kind
        },
    )


def published(table: str, version: int, differed: Drift) -> Published:
    """Describe how a drift was resolved."""
    others = tuple(OtherType(name, found, expected) for name, (found, expected) in differed.other_types.items())
    return Published(table, version, tuple(differed.missing), others)
