"""Builds the schema registry from the settings, with the columns from a schema file, a pattern, and topics."""

from collections.abc import Mapping, Sequence

from compactor.core.errors import ObjectNotFound, SettingsError
from compactor.core.logs.names import KAFKA, RECORD_KEYS, RECORD_TYPES
from compactor.core.ports import Clock, ObjectStore
from compactor.schema.registry import SchemaRegistry, partition_faults
from compactor.schema.schema import (
    RESERVED_NAMES,
    Column,
    ColumnLimits,
    DeclaredColumn,
    Names,
    SchemaVersion,
    column_name,
)
from compactor.schema.schema_file import parse_schema_file
from compactor.settings.settings import Settings

MAX_NEW_COLUMNS_PER_DAY = 1000
"""So many columns a producer gone wrong may add to the table of a job before a person sees it."""


def recorded_versions(
    settings: Settings,
    store: ObjectStore,
    clock: Clock,
    declared: Sequence[DeclaredColumn] = (),
    reserved: Sequence[str] = (),
) -> SchemaRegistry:
    """The recorded versions; see `SchemaRegistry` for the arguments."""
    schema = settings.schema
    # A person who compacts a folder wants the columns of all its files at once.
    limits = ColumnLimits(schema.max_columns, *(() if settings.folder else (MAX_NEW_COLUMNS_PER_DAY,)))
    return SchemaRegistry(
        store,
        settings.layout(),
        clock,
        names=schema.names,
        limits=limits,
        declared=declared,
        reserved=reserved,
        rescued_keys=frozenset(RECORD_KEYS.values()) if _reads_topics(settings) else (),
    )


def new_versions(
    settings: Settings, store: ObjectStore, clock: Clock, recorded: SchemaRegistry, captures: Mapping[str, str]
) -> SchemaRegistry:
    """A registry that creates versions with the columns declared in the settings.

    Args:
        settings: Source of the schema file's place and the topics' columns.
        store: Has the schema file and the versions.
        clock: The time for new versions.
        recorded: The recorded versions.
        captures: The column type of each key in the line pattern; empty if the pattern gives none.

    Raises:
        SettingsError: The schema file or the pattern has faults, or its columns do not suffice to partition rows.
    """
    declared: tuple[DeclaredColumn, ...] = ()
    if file := settings.schema.file:
        try:
            declared = parsed_schema(settings, store.read(file), file)
        except ObjectNotFound as exc:
            raise SettingsError([f'schema.file: "{file}": no such object -> expected a schema file']) from exc
    of_records = (
        {RECORD_KEYS[each]: RECORD_TYPES[each] for each in settings.kafka.record_columns}
        if _reads_topics(settings)
        else {}
    )
    for types, setting in ((captures, "input.grok"), (of_records, "kafka.record_columns")):
        if types:
            declared = with_declared(declared, types, settings.schema.names, recorded.latest(), setting)
    fields = settings.partition_fields
    if faults := list(partition_faults(fields, declared, has_table=settings.has_table)):
        raise SettingsError(faults)
    return recorded_versions(settings, store, clock, declared, [field.name for field in fields])


def _reads_topics(settings: Settings) -> bool:
    return any(each.startswith(f"{KAFKA}://") for each in settings.input.allowed_prefixes)


def parsed_schema(settings: Settings, data: bytes, uri: str) -> tuple[DeclaredColumn, ...]:
    """A schema file's columns.

    Raises:
        SettingsError: Lists its faults.
    """
    schema = settings.schema
    return parse_schema_file(
        data,
        uri,
        names=schema.names,
        max_columns=schema.max_columns,
        refused=settings.refused_types,
    )


def with_declared(
    declared: tuple[DeclaredColumn, ...], types: Mapping[str, str], names: Names, recorded: SchemaVersion, setting: str
) -> tuple[DeclaredColumn, ...]:
    """The schema file's columns, and one for each other key of a setting, in its order.

    Args:
        declared: The schema file's columns.
        types: Each key's column type; empty if the setting gives none.
        names: The naming rule for columns.
        recorded: Existing columns keep their names, and their types if the setting gives none.
        setting: The setting, such as `input.grok`, whose captures are keys.

    Raises:
        SettingsError: The setting gives a key a different type than the schema file or the existing column.
    """
    by_key = {column.key: column for column in declared}
    there: dict[str, Column] = {column.key: column for column in recorded.columns if column.key is not None}
    used = {each.name for each in declared} | {each.name for each in recorded.columns} | RESERVED_NAMES
    columns, faults = list(declared), list[str]()
    for key, kind in types.items():
        known = by_key.get(key, there.get(key))
        if known is not None and kind not in {"", known.type}:
            where = "in schema.file" if key in by_key else f"its column {known.name} has been"
            faults.append(f"{setting}: {key} is of type {kind} -> expected {known.type}, as {where}, or none")
        elif known is None:
            name = column_name(key, used, names=names)
            used.add(name)
            columns.append(DeclaredColumn(key=key, name=name, type=kind or "string"))
        elif key not in by_key:
            columns.append(DeclaredColumn(key=key, name=known.name, type=known.type, epoch=known.epoch))
    if faults:
        raise SettingsError(faults)
    return tuple(columns)
