"""Parses the schema file, which declares columns with their types. Reports all faults at once. No I/O."""

import re
import tomllib
from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any

from compactor.core.errors import SettingsError
from compactor.core.text.formatting import shown
from compactor.schema.column_types import EPOCHS, EXPECTED, epochs_expected, parse_type
from compactor.schema.schema import MAX_KEY_CHARACTERS, RESERVED_NAMES, DeclaredColumn, Names

_FIELDS = ("name", "type", "key", "epoch")
_SAFE_NAME = re.compile("[a-z0-9_]{1,255}")  # the names that Athena and the Glue catalog accept


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
        if isinstance(kind, str) and (needed := refused.get(kind)):
            faults.append(f'columns[{at}].type: "{kind}" -> expected {needed} in the settings, or a different type')
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
    try:
        document = tomllib.loads(data.decode())
    except UnicodeDecodeError as exc:
        raise SettingsError([f"{uri}: byte {exc.start} is not UTF-8 -> expected TOML"]) from exc
    except (ValueError, RecursionError) as exc:
        raise SettingsError([f"{uri}: {exc} -> expected TOML"]) from exc
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
    elif not isinstance(kind, str) or not _is_type(kind):
        yield f"{where}.type: {shown(kind)} -> expected {EXPECTED}"
    elif epoch is not None and epoch not in EPOCHS.get(kind, ()):
        yield f'{where}.epoch: {shown(epoch)} -> {epochs_expected(kind)}, as the type is "{kind}"'


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


def _is_type(text: str) -> bool:
    try:
        parse_type(text)
    except ValueError:
        return False
    return True


def _repeats(field: str, values: list[Any]) -> Iterator[str]:
    """Yield a fault for each string shared by several columns. Other values are faults in themselves."""
    counts = Counter(value for value in values if isinstance(value, str))
    for value, count in counts.items():
        if count > 1:
            places = ", ".join(f"columns[{at}]" for at, other in enumerate(values) if other == value)
            yield f"{places}: {field} {shown(value)} -> expected each {field} once"


def _lowered(name: Any, names: Names) -> Any:
    return name.lower() if names == "safe" and isinstance(name, str) else name
