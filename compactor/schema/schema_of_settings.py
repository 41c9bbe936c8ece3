"""Builds the schema registry from the settings, with the columns from a schema file, a pattern, and topics.

Reports all faults of a schema file at once.
"""

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from compactor.core.errors import ObjectNotFound, SettingsError
from compactor.core.logs.names import KAFKA, RECORD_KEYS, RECORD_TYPES
from compactor.core.ports import Clock, ObjectStore
from compactor.core.text.formatting import shown
from compactor.schema.column_types import EPOCHS, EXPECTED, epochs_expected, parse_type
from compactor.schema.registry import SchemaRegistry, partition_faults
from compactor.schema.schema import (
    MAX_KEY_CHARACTERS,
    RESERVED_NAMES,
    Column,
    ColumnLimits,
    DeclaredColumn,
    Names,
    SchemaVersion,
    column_name,
)
from compactor.settings.settings import Settings, parse_toml

MAX_NEW_COLUMNS_PER_DAY = 1000
"""So many columns a producer gone wrong may add to the table of a job before a person sees it."""

_FIELDS = ("name", "type", "key", "epoch")
_SAFE_NAME = re.compile("[a-z0-9_]{1,255}")  # the names that Athena and the Glue catalog accept


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


def parse_schema_file(
    data: bytes, uri: str, *, names: Names, max_columns: int, refused: Mapping[str, str]
) -> tuple[DeclaredColumn, ...]:
    """Parse the columns in a schema file, in its order.

    Args:
        data: TOML with a table `[[columns]]` per column: `name`, `type`, and optionally `key` and `epoch`.
        uri: The schema file, for messages.
        names: The naming rule for columns: with `safe`, unsafe names are faults.
        max_columns: The most columns allowed.
        refused: Types that the settings rule out, each with the required settings.

    Raises:
        SettingsError: Lists every fault of the file.
    """
    tables, faults = _tables(data, uri, max_columns)
    faults += [fault for at, table in enumerate(tables) for fault in _faults(f"columns[{at}]", table, names)]
    for at, table in enumerate(tables):
        faults += _key_faults(f"columns[{at}].key", table)
        kind = table.get("type")
        kinds = parse_type(kind).kinds if isinstance(kind, str) and _type_fault(kind) is None else frozenset()
        faults += [
            f'columns[{at}].type: "{each}" -> expected {refused[each]} in the settings, or a different type'
            for each in kinds
            if each in refused
        ]
    faults += _repeats("name", [_lowered(table.get("name"), names) for table in tables])
    faults += _repeats("key", [table.get("key", table.get("name")) for table in tables])
    if faults:
        raise SettingsError([f"{uri}: {fault}" for fault in faults])
    return tuple(
        DeclaredColumn(
            key=table.get("key", table["name"]), name=table["name"], type=_type(table), epoch=table.get("epoch")
        )
        for table in tables
    )


def _type(table: Mapping[str, Any]) -> str:
    return str(parse_type(table["type"], table.get("epoch")))  # in its canonical spelling


def _key_faults(where: str, table: Mapping[str, Any]) -> Iterator[str]:
    """A longer key would be rescued before its column is found."""
    key = table.get("key", table.get("name"))
    if isinstance(key, str) and len(key) > MAX_KEY_CHARACTERS:
        yield f"{where}: a key of {len(key)} characters -> expected at most {MAX_KEY_CHARACTERS}"


def _tables(data: bytes, uri: str, max_columns: int) -> tuple[list[Mapping[str, Any]], list[str]]:
    """The tables in `columns`, and the faults of the file as a whole.

    Raises:
        SettingsError: The file is not TOML.
    """
    document = parse_toml(data, uri)
    columns = document.pop("columns", [])
    faults = [f"{shown(name)}: unknown key -> expected only [[columns]]" for name in document]
    if not isinstance(columns, list) or not all(isinstance(table, dict) for table in columns):
        return [], [*faults, f"columns: {shown(columns)} -> expected one [[columns]] per column"]
    if not columns:
        faults.append("no columns -> expected at least one [[columns]] with name and type")
    if len(columns) > max_columns:
        faults.append(f"{len(columns)} columns -> expected at most schema.max_columns = {max_columns}")
    return columns, faults


def _faults(where: str, table: Mapping[str, Any], names: Names) -> Iterator[str]:
    for field in table:
        if field not in _FIELDS:
            yield f"{where}.{field}: unknown key -> expected one of {', '.join(_FIELDS)}"
    yield from _name_faults(f"{where}.name", table, names)
    if not isinstance(table.get("key", ""), str):
        yield f"{where}.key: {shown(table['key'])} -> expected a string"
    kind, epoch = table.get("type"), table.get("epoch")
    if "type" not in table:
        yield f"{where}.type: not set -> expected {EXPECTED}"
    elif (expected := _type_fault(kind)) is not None:
        yield f"{where}.type: {shown(kind)} -> expected {expected}"
    elif epoch is not None and epoch not in EPOCHS.get(str(kind), ()):
        yield f'{where}.epoch: {shown(epoch)} -> {epochs_expected(str(kind))}, as the type is "{kind}"'


def _name_faults(where: str, table: Mapping[str, Any], names: Names) -> Iterator[str]:
    name = table.get("name")
    if "name" not in table:
        yield f"{where}: not set -> expected the column's name"
    elif not isinstance(name, str) or not name:
        yield f"{where}: {shown(name)} -> expected a string of at least one character"
    elif _lowered(name, names) in RESERVED_NAMES:
        yield f"{where}: {shown(name)} -> expected a name that is not reserved"
    elif names == "safe" and not _SAFE_NAME.fullmatch(name):
        yield f'{where}: {shown(name)} -> expected 1 to 255 of a-z, 0-9 and _, as schema.names is "safe"'


def _type_fault(text: Any) -> str | None:
    """What was expected in place of a wrong type; None for a type."""
    if not isinstance(text, str):
        return EXPECTED
    try:
        parse_type(text)
    except ValueError as exc:
        return str(exc)
    return None


def _repeats(field: str, values: list[Any]) -> Iterator[str]:
    """Yield a fault for each string shared by several columns. Other values are faults in themselves."""
    counts = Counter(value for value in values if isinstance(value, str))
    for value, count in counts.items():
        if count > 1:
            places = ", ".join(f"columns[{at}]" for at, other in enumerate(values) if other == value)
            yield f"{places}: {field} {shown(value)} -> expected each {field} once"


def _lowered(name: Any, names: Names) -> Any:
    return name.lower() if names == "safe" and isinstance(name, str) else name
