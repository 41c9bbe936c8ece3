"""Compares the columns of a schema version with those of a table in the Glue Data Catalog. No I/O."""

import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from compactor.schema.schema import METADATA_TYPES, RESCUED_COLUMN, RESCUED_TYPE, SchemaVersion, metadata_names

_NAME = re.compile("[\t\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]{1,255}")
"""The names that a column may have [Glue API, Column]."""

_HIVE_TYPES = {"long": "bigint", "timestamp_ntz": "timestamp", "timestamp_ns": "timestamp"}
"""Types that have a different name in Hive."""


@dataclass(frozen=True, slots=True)
class TableColumns:
    """The columns of a table in the catalog.

    Attributes:
        types: The Hive type of each column, by name and in order.
        partition_keys: The names of the columns that are in no file.
    """

    types: Mapping[str, str]
    partition_keys: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class Drift:
    """How a table differs from a schema version. Columns that only the table has do not count.

    Attributes:
        missing: The Hive type of each column that the table lacks, by name.
        other_types: The type in the table and the expected one, by column. Only a person can change a type.
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
    """The result of giving a table the columns of a schema version."""

    table: str  # the table, as database.table
    version: int  # schema version; 0 if there is none yet
    added: tuple[str, ...]  # columns that the table got
    other_types: tuple[OtherType, ...]  # columns whose types in the catalog a person has to correct


class CatalogTable(Protocol):
    """A table of the Glue Data Catalog, through which Athena reads the output."""

    @property
    def name(self) -> str:
        """The database and the table, as `database.table`."""

    def columns(self) -> TableColumns:
        """The current columns of the table.

        Raises:
            AccessError: There is no such table, or it may not be read.
            StoreUnavailable: Passing trouble.
        """

    def add(self, wanted: Mapping[str, str]) -> Drift:
        """Add missing columns after the existing ones, and change nothing else.

        Returns:
            How the table differed before.

        Raises:
            AccessError: There is no such table, or it may not be changed.
            StoreUnavailable: Passing trouble.
        """


def catalog_columns(schema: SchemaVersion, metadata_columns: Collection[str]) -> dict[str, str]:
    """The Hive type of each column of the output, by name: of a row's origin, of each key, of rescued values.

    The catalog ignores case: of two names that differ only in it, the first one has the column. Names that the catalog
    refuses are left out, because it would refuse all others with them; only `exact` names can be such.
    """
    columns = {name: METADATA_TYPES[name] for name in metadata_names(metadata_columns)}
    for each in schema.columns:
        if _NAME.fullmatch(each.name):
            columns.setdefault(each.name.lower(), _HIVE_TYPES.get(each.type, each.type))
    columns[RESCUED_COLUMN] = RESCUED_TYPE
    return columns


def table_columns(table: Mapping[str, Any]) -> TableColumns:
    """The columns of a table from an answer of GetTable, or from a TableInput."""
    return TableColumns(
        {each["Name"].lower(): each.get("Type", "") for each in table.get("StorageDescriptor", {}).get("Columns", ())},
        frozenset(each["Name"].lower() for each in table.get("PartitionKeys", ())),
    )


def drift(found: TableColumns, wanted: Mapping[str, str]) -> Drift:
    """Compare a table with the wanted columns.

    Names are unique in a table, so a column named like a partition key can only be read from the files.
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
