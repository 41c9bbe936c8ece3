"""Maps JSON keys to columns: the naming rules, and how schema versions evolve. No I/O."""

import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime
from itertools import accumulate
from typing import Literal

from pydantic import model_validator

from compactor.core.documents.document import Document
from compactor.core.results import as_document
from compactor.schema.column_types import STORED_AS, ColumnType, Epoch, parse_type

FILE_DATE = "file_date"
"""The metadata column with the manifest's date, which is also the folder's date."""

RETIRED_TYPE = "string"
"""The type of every retired column: columns of other types cannot be retired."""

METADATA_TYPES = {"_source_file": "string", "_processed_at": "timestamp", "_manifest_id": "string", FILE_DATE: "date"}
METADATA_COLUMNS = tuple(METADATA_TYPES)
"""Columns that the compactor adds if configured. A data key with such a name gets a different column name."""

RESCUED_COLUMN = "_rescued_data"
"""The map<string,string> column for keys beyond the limit, and for values that do not fit their column's type."""

RESCUED_TYPE = "map<string,string>"

RESERVED_NAMES = frozenset({*METADATA_COLUMNS, RESCUED_COLUMN})

EMPTY_KEY = ""
"""Parquet has no rows without columns: if no record has a key, the schema gets a column for this one, always null."""

EMPTY_KEY_NAME = "_"
"""The column name of the empty key: no table format allows an empty name."""

_NAME_MAX_CHARACTERS = 200  # the Glue catalog allows 255; this leaves room for a suffix
_UNSAFE = re.compile(r"[^a-z0-9_]")

Names = Literal["safe", "exact"]

COUNTED_KEYS = 1_000
"""How many keys beyond those that can become columns are collected, so that refused keys are counted."""


MAX_KEY_CHARACTERS = 256
"""The longest key that becomes a column. A longer one is probably data rather than a name."""


@dataclass(frozen=True, slots=True)
class KeyLimits:
    """Which keys without a column may become one. All others are rescued.

    Attributes:
        max_new_columns: The most columns that can still be added.
    """

    max_new_columns: int = 10_000
    max_key_characters: int = MAX_KEY_CHARACTERS

    @property
    def max_keys(self) -> int:
        """The most keys without a column to collect; further ones are rescued without being remembered."""
        return self.max_new_columns + COUNTED_KEYS if self.max_key_characters >= 0 else 0


@dataclass(frozen=True, slots=True)
class ColumnLimits:
    """How many columns keys may get: in total, and from all manifests of one UTC day."""

    max_columns: int
    max_new_per_day: int = 20_000

    @property
    def max_new_per_manifest(self) -> int:
        """The limit for one manifest, so that a faulty one leaves some of the day's columns to others."""
        return (self.max_new_per_day + 1) // 2


NEARLY_FULL = 0.9
"""The share of `max_columns` at which the columns count as nearly full."""


@dataclass(frozen=True, slots=True)
class ColumnsUsed:
    """How many of the key columns are used."""

    columns: int  # key columns
    max_columns: int  # limit

    @property
    def is_nearly_full(self) -> bool:
        """Whether an operator should retire columns, or find the producer that adds them."""
        return self.max_columns > 0 and self.columns >= NEARLY_FULL * self.max_columns


NO_COLUMNS = ColumnsUsed(0, 0)

NO_NEW_KEYS = KeyLimits(0, -1)
"""Collect no key without a column, not even the empty one."""


@as_document(omits=("added_in", "field_id"))
class Column(Document):
    """One column of the data.

    Attributes:
        key: The JSON key; None for the rescued data column.
        name: The name in the Parquet files.
        added_in: The first schema version that has it.
        type: The type, such as `string` or `decimal(10,2)`.
        epoch: The unit of a timestamp column's numbers.
        source_uri: The first input file with the key; empty for a column from the schema file.
        field_id: The column's permanent number in tables, from 1.
    """

    key: str | None
    name: str
    added_in: int
    type: str = "string"
    epoch: Epoch | None = None
    source_uri: str = ""
    field_id: int = 0

    @model_validator(mode="after")
    def _has_known_type(self) -> "Column":
        if self.key is not None:
            parse_type(self.type, self.epoch)
        return self

    @property
    def column_type(self) -> ColumnType:
        """The type of its values; undefined for the rescued data column."""
        return parse_type(self.type, self.epoch)

    @property
    def field_ids(self) -> int:
        """How many field ids it takes, from its own one on; the rescued data's parts have fixed ones."""
        return self.column_type.field_ids if self.is_nested else 1

    @property
    def is_nested(self) -> bool:
        """Whether values have parts of a type."""
        return self.key is not None and "<" in self.type

    @property
    def is_typed(self) -> bool:
        """Whether values may not fit."""
        return self.key is not None and self.type != "string"


@dataclass(frozen=True, slots=True)
class DeclaredColumn:
    """A column declared in the schema file, whether or not its key has been seen."""

    key: str
    name: str
    type: str = "string"
    epoch: Epoch | None = None


@as_document(omits=("retired_in", "field_id"))
class RetiredColumn(Document):
    """A removed column. Files of older versions have it; its key and name get no new column.

    Attributes:
        key: The JSON key, whose values go to the rescued data from then on.
        name: The name in the Parquet files of older versions.
        retired_in: The first schema version without it.
        field_id: The column's permanent number in tables, from 1.
    """

    key: str
    name: str
    retired_in: int
    field_id: int = 0


class SchemaVersion(Document):
    """A list of columns. Each later version starts with the same columns in the same order, without retired ones.

    Attributes:
        version: Counts from 1; 0 is the empty schema before the first manifest.
        manifest_id: The manifest that added the new columns.
        retired: The columns retired in this version or an earlier one.
        new_on_day: How many columns keys got on the UTC day of `created_at`, up to this version. Those from the schema
            file do not count.
    """

    version: int
    created_at: datetime
    manifest_id: str
    columns: tuple[Column, ...]
    retired: tuple[RetiredColumn, ...] = ()
    new_on_day: int = 0

    @property
    def keys(self) -> frozenset[str]:
        return frozenset(column.key for column in self.columns if column.key is not None)

    def keys_up_to(self, keys: Collection[str]) -> tuple[str, ...]:
        """The keys of all columns up to the last version that added a column for one of these keys; all if none did."""
        last = max((column.added_in for column in self.columns if column.key in keys), default=self.version)
        return tuple(column.key for column in self.columns if column.key is not None and column.added_in <= last)

    @property
    def retired_keys(self) -> frozenset[str]:
        return frozenset(column.key for column in self.retired)

    @property
    def last_field_id(self) -> int:
        """The last field id of columns and their parts; 0 if there is none. A version lists also retired columns."""
        return sum(column.field_ids for column in self.columns) + len(self.retired)

    def continues(self, older: "SchemaVersion") -> bool:
        """Whether this may be a later version: it starts with the older one's columns that were not retired."""
        retired = self.retired_keys
        kept = tuple(column for column in older.columns if column.key not in retired)
        return kept == self.columns[: len(kept)]

    def new_on(self, now: datetime) -> int:
        """How many columns keys got on the UTC day of `now`."""
        return self.new_on_day if _utc_day(self.created_at) == _utc_day(now) else 0

    def refused(self, keys: Iterable[str], *, has_further: bool) -> int:
        """How many of a manifest's keys got no column, at least. Keys of retired columns do not count.

        Args:
            keys: Its collected keys without a column.
            has_further: Whether there are more.
        """
        known = self.keys | self.retired_keys
        return sum(key not in known for key in keys) + has_further

    @property
    def has_rescued(self) -> bool:
        return any(column.key is None for column in self.columns)


def first_sources(files: Iterable[tuple[str, Sequence[str]]]) -> dict[str, str]:
    """The keys of several files in first-seen order, each with the first file's URI."""
    sources: dict[str, str] = {}
    for uri, keys in files:
        for key in keys:
            sources.setdefault(key, uri)
    return sources


def extend(
    schema: SchemaVersion,
    keys: Mapping[str, str],
    *,
    rescued_from: str = "",
    declared: Sequence[DeclaredColumn] = (),
    names: Names,
    max_columns: int,
    max_new: int | None = None,
    manifest_id: str,
    now: datetime,
    reserved: Collection[str] = (),
    rescued_keys: Collection[str] = (),
) -> SchemaVersion:
    """A version with these keys and all declared columns: the given one if it has them, else the next one.

    Args:
        schema: The latest version, which must not contradict `declared`.
        keys: A manifest's keys in first-seen order, each with the first file's URI.
        rescued_from: The first file with keys that cannot get a column; empty if there is none.
        declared: The schema file's columns. They precede new keys and are exempt from `max_columns`.
        names: The naming rule for columns.
        max_columns: The most key columns; further keys share the rescued data column.
        max_new: The most columns that keys get now; None for no limit.
        manifest_id: The manifest with the keys.
        now: The time of the new version.
        reserved: Names that no key gets, such as those of folders that readers see as columns.
        rescued_keys: Keys that get a column only if they are declared.
    """
    version = schema.version + 1
    added = [
        Column(key=each.key, name=each.name, added_in=version, type=each.type, epoch=each.epoch)
        for each in declared
        if each.key not in schema.keys
    ]
    known = schema.keys.union(each.key for each in declared)
    taken = len(known)
    known |= schema.retired_keys  # guard: a retired key gets no new column
    never = [key for key in keys if key not in known and key in rescued_keys]
    new_keys = [key for key in keys if key not in known and key not in rescued_keys]
    room = max(0, max_columns - taken)
    if max_new is not None:
        room = min(room, max_new)
    used = {column.name.lower() if names == "safe" else column.name for column in (*schema.columns, *added)}
    used |= RESERVED_NAMES.union(name.lower() if names == "safe" else name for name in reserved)
    used |= {column.name.lower() if names == "safe" else column.name for column in schema.retired}
    for key in new_keys[:room]:
        name = column_name(key, used, names=names)
        used.add(name)
        added.append(Column(key=key, name=name, added_in=version, source_uri=keys[key]))
    overflow = [*never, *new_keys[room:]]
    if not schema.has_rescued and (overflow or rescued_from or any(column.is_typed for column in added)):
        source_uri = keys[overflow[0]] if overflow else rescued_from
        added.append(Column(key=None, name=RESCUED_COLUMN, added_in=version, type=RESCUED_TYPE, source_uri=source_uri))
    if not added:
        return schema
    ids = accumulate((column.field_ids for column in added), initial=schema.last_field_id + 1)
    numbered = [column.model_copy(update={"field_id": number}) for number, column in zip(ids, added, strict=False)]
    return schema.model_copy(
        update={
            "version": version,
            "created_at": now,
            "manifest_id": manifest_id,
            "columns": (*schema.columns, *numbered),
            "new_on_day": schema.new_on(now) + len(new_keys[:room]),
        }
    )


def _utc_day(moment: datetime) -> date:
    return moment.astimezone(UTC).date()


def without(schema: SchemaVersion, names: Sequence[str], *, now: datetime) -> SchemaVersion:
    """The next version, without these key columns. It has the rescued data column, for their later values."""
    version = schema.version + 1
    retired = [
        RetiredColumn(key=column.key, name=column.name, retired_in=version, field_id=column.field_id)
        for column in schema.columns
        if column.name in names and column.key is not None
    ]
    columns = [column for column in schema.columns if column.key is None or column.name not in names]
    if not schema.has_rescued:
        number = schema.last_field_id + 1
        columns.append(Column(key=None, name=RESCUED_COLUMN, added_in=version, type=RESCUED_TYPE, field_id=number))
    return schema.model_copy(
        update={
            "version": version,
            "created_at": now,
            "manifest_id": "",
            "columns": tuple(columns),
            "retired": (*schema.retired, *retired),
            "new_on_day": schema.new_on(now),
        }
    )


def retirement_faults(schema: SchemaVersion, names: Sequence[str], declared: Iterable[DeclaredColumn]) -> Iterator[str]:
    """Yield each reason why one of these columns cannot be retired."""
    columns = {column.name: column for column in schema.columns}
    retired = {column.name: column for column in schema.retired}
    declared_keys = {each.key for each in declared}
    for name in names:
        column = columns.get(name)
        if column is None and name in retired:
            yield (
                f"COLUMN {name!r}: already retired in schema version {retired[name].retired_in} -> expected an "
                "active column"
            )
        elif column is None:
            yield f"COLUMN {name!r}: no such column in schema version {schema.version} -> expected one of its names"
        elif column.key is None:
            yield f"COLUMN {name!r}: has the rescued data -> expected a key column"
        elif column.key in declared_keys:
            yield f"COLUMN {name!r}: declared in schema.file -> expected a column from the input"
        elif column.is_typed:
            yield f"COLUMN {name!r}: has type {column.type} -> expected a string column"


def contradictions(schema: SchemaVersion, declared: Iterable[DeclaredColumn]) -> Iterator[str]:
    """Yield each way in which declared columns would change an existing column; columns never change."""
    by_key = {column.key: column for column in schema.columns if column.key is not None}
    by_name = {column.name: column for column in schema.columns}
    retired = {text: column for column in schema.retired for text in (column.key, column.name)}
    for wanted in declared:
        where = f"schema.file: the column of key {wanted.key!r}"
        gone = retired.get(wanted.key) or retired.get(wanted.name)
        if wanted.key not in by_key and gone is not None:
            yield f"{where}: retired in schema version {gone.retired_in} -> expected a different key and name"
            continue
        column = by_key.get(wanted.key)
        if column is None:
            taken = by_name.get(wanted.name)
            if taken is not None:
                what = f"the column of key {taken.key!r} since schema version {taken.added_in}"
                yield f"{where}: name {wanted.name!r} -> expected a different name, as this is {what}"
            continue
        for what in ("name", "type", "epoch"):
            found, expected = getattr(wanted, what), getattr(column, what)
            if found != expected:
                has = f"{expected!r}, as it has been" if expected is not None else "none, as it has been"
                yield f"{where}: {what} {found!r} -> expected {has} since schema version {column.added_in}"


def column_name(key: str, used: Collection[str], *, names: Names) -> str:
    """The name of a key's column.

    `safe` names consist of ASCII lower case letters, digits and `_`, which Athena and the Glue catalog accept; any
    other character becomes `_`. `exact` names are the key itself. With either rule, a taken name gets the suffix `__2`,
    `__3` and so on, and the empty key's name is `_`.
    """
    wanted = _UNSAFE.sub("_", key.lower())[:_NAME_MAX_CHARACTERS] if names == "safe" else key
    wanted = wanted or EMPTY_KEY_NAME
    name, number = wanted, 1
    while name in used:
        number += 1
        name = f"{wanted}__{number}"
    return name


def metadata_names(wanted: Collection[str]) -> tuple[str, ...]:
    """The metadata columns in the settings, in output order."""
    return tuple(name for name in METADATA_COLUMNS if name in wanted)


def parquet_columns(schema: SchemaVersion, metadata_columns: Collection[str]) -> tuple[str, ...]:
    """The names of an output file's columns in order: metadata first, so that new keys are always appended."""
    return (*metadata_names(metadata_columns), *[column.name for column in schema.columns])


def parquet_types(schema: SchemaVersion, metadata_columns: Collection[str]) -> tuple[str, ...]:
    """The types of `parquet_columns`, in the same order."""
    metadata = (METADATA_TYPES[name] for name in metadata_names(metadata_columns))
    return (*metadata, *[STORED_AS.get(column.type, column.type) for column in schema.columns])
