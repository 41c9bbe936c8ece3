"""How JSON keys become columns: naming rules and the succession of schema versions. No I/O."""

import re
from collections.abc import Collection, Iterable, Sequence
from datetime import datetime
from typing import Literal

from pydantic import BaseModel, ConfigDict

METADATA_COLUMNS = ("_source_file", "_processed_at", "_manifest_id")
"""Columns that the compactor adds on demand. A data key of such a name gets an alias."""

RESCUED_COLUMN = "_rescued_data"
"""map<string,string> of the keys that have no column of their own."""

RESERVED_NAMES = frozenset({*METADATA_COLUMNS, RESCUED_COLUMN})

EMPTY_KEY_NAME = "_"
"""The column of the empty key: no table format takes an empty name."""

_NAME_MAX_CHARACTERS = 200  # the Glue catalogue takes 255; this leaves room for a suffix
_UNSAFE = re.compile(r"[^a-z0-9_]")

Names = Literal["safe", "exact"]


class Column(BaseModel):
    """One column of the data.

    Attributes:
        key: The JSON key it holds; None for the column of rescued data.
        name: What it is called in the Parquet files.
        added_in: The schema version that brought it.
    """

    model_config = ConfigDict(frozen=True)

    key: str | None
    name: str
    added_in: int


class SchemaVersion(BaseModel):
    """The columns from some moment on. A later version has the same columns first, in the same order.

    Attributes:
        version: Numbered from 1; 0 is the empty schema before the first manifest.
        manifest_id: The manifest that brought the new columns.
    """

    model_config = ConfigDict(frozen=True)

    version: int
    created_at: datetime
    manifest_id: str
    columns: tuple[Column, ...]

    @property
    def keys(self) -> frozenset[str]:
        """The JSON keys that have a column."""
        return frozenset(column.key for column in self.columns if column.key is not None)

    @property
    def has_rescued(self) -> bool:
        """Whether keys without a column have a place to go."""
        return any(column.key is None for column in self.columns)


def merge_keys(lists: Iterable[Sequence[str]]) -> tuple[str, ...]:
    """Keys of several files as one list, each once, in the order in which they were first seen."""
    return tuple(dict.fromkeys(key for keys in lists for key in keys))


def extend(
    schema: SchemaVersion, keys: Sequence[str], *, names: Names, max_columns: int, manifest_id: str, now: datetime
) -> SchemaVersion:
    """The version that holds these keys: the given one if it does already, else the next.

    Args:
        schema: The latest version.
        keys: What a manifest holds, in first-seen order.
        names: How columns are named.
        max_columns: Columns that keys may have; further keys share the column of rescued data.
        manifest_id: The manifest that brings the keys.
        now: The time of the new version.
    """
    known = schema.keys
    new_keys = [key for key in keys if key not in known]
    room = max(0, max_columns - len(known))
    overflow = len(new_keys) > room
    if not new_keys[:room] and not (overflow and not schema.has_rescued):
        return schema
    version = schema.version + 1
    columns = list(schema.columns)
    used = {column.name.lower() if names == "safe" else column.name for column in columns} | RESERVED_NAMES
    for key in new_keys[:room]:
        name = column_name(key, used, names=names)
        used.add(name)
        columns.append(Column(key=key, name=name, added_in=version))
    if overflow and not schema.has_rescued:
        columns.append(Column(key=None, name=RESCUED_COLUMN, added_in=version))
    return SchemaVersion(version=version, created_at=now, manifest_id=manifest_id, columns=tuple(columns))


def column_name(key: str, used: Collection[str], *, names: Names) -> str:
    """What the column of a key is called.

    `safe` names are lower case letters, digits and `_` of ASCII, which Athena and the Glue catalogue take; any other
    character becomes `_`. `exact` names are the key itself. Either way a name that is taken gets `__2`, `__3` and so
    on, and the empty key is called `_`.

    Args:
        key: The JSON key.
        used: Names that are taken.
        names: Which of the two rules.
    """
    wanted = _UNSAFE.sub("_", key.lower())[:_NAME_MAX_CHARACTERS] if names == "safe" else key
    wanted = wanted or EMPTY_KEY_NAME
    name, number = wanted, 1
    while name in used:
        number += 1
        name = f"{wanted}__{number}"
    return name


def parquet_columns(schema: SchemaVersion, metadata_columns: Sequence[str]) -> tuple[str, ...]:
    """The names of an output file's columns, in order: metadata first, so that new keys only ever append."""
    return (*[name for name in METADATA_COLUMNS if name in metadata_columns], *[c.name for c in schema.columns])
