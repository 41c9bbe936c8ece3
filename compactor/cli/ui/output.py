"""Prints results: JSON for programs, aligned text and tables for people."""

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import fields, is_dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any, TypeVar

import orjson
from pydantic import BaseModel

from compactor.cli.ui.terminal import echo, fitted, write_out
from compactor.core.text.safe_text import visible_json

if TYPE_CHECKING:
    from rich.table import Table

T = TypeVar("T")

Field = tuple[str, str | Sequence[str]]
"""A name, and a value of one line or several."""

_JSON_OPTIONS = orjson.OPT_NON_STR_KEYS | orjson.OPT_UTC_Z  # `Z` is also what pydantic writes for UTC


def print_json(document: Mapping[str, Any], *, on_one_line: bool = False) -> None:
    """Print one JSON document on stdout. It may hold dataclasses, times and records of the ledger."""
    # In bytes: JSON is UTF-8 whatever the encoding of the terminal.
    write_out(json_text(document, on_one_line=on_one_line).encode())


def json_text(document: Mapping[str, Any], *, on_one_line: bool = False) -> str:
    """The text of a JSON document, or of a part of one."""
    options = _JSON_OPTIONS if on_one_line else _JSON_OPTIONS | orjson.OPT_INDENT_2
    try:
        text = orjson.dumps(document, default=_plain, option=options).decode()
    except TypeError:  # orjson refuses the lone surrogates of names that are not UTF-8
        text = json.dumps(document, default=_plain, indent=None if on_one_line else 2)
    return visible_json(text)  # guard: JSON is escaped, too


def shallow(record: Any, *properties: str) -> dict[str, Any]:
    """The fields of a dataclass by name, and these properties. `dataclasses.asdict` fails for counters."""
    return picked(record, *(field.name for field in fields(record)), *properties)


def picked(value: object, *names: str) -> dict[str, Any]:
    """These attributes of a value by name."""
    return {name: getattr(value, name) for name in names}


def _plain(value: Any) -> Any:
    if isinstance(value, BaseModel):
        return _known(value)
    if is_dataclass(value):
        return picked(value, *(each.name for each in fields(value) if not each.name.startswith("_")))  # as orjson does
    if isinstance(value, datetime):
        return value.isoformat().replace("+00:00", "Z")
    raise TypeError(f"{type(value).__name__} has no JSON form")


def _known(value: BaseModel) -> dict[str, Any]:
    """The keys that this release knows: a record of a newer one has more, and the schemas of documents are closed."""
    shown = value.model_dump(mode="json", exclude=set(value.model_extra or ()))
    for name, each in value:
        if name in shown and isinstance(each, BaseModel):
            shown[name] = _known(each)
        elif name in shown and isinstance(each, list | tuple) and each and isinstance(each[0], BaseModel):
            shown[name] = [_known(one) for one in each]
    return shown


def print_fields(named: Iterable[Field]) -> None:
    """Print names and values, aligned. A URI, and a command of `next`, stays on one line, so that it can be copied."""
    rows = list(named)
    width = max((len(name) for name, _ in rows), default=0) + 2
    for name, value in rows:
        lines = [value] if isinstance(value, str) else value
        if name != "next":
            lines = [piece for line in lines for piece in fitted(line, indent=width)]
        first, *others = lines
        echo(f"{name:{width}}{first}".rstrip(), *(f"{'':{width}}{line}" for line in others))


def print_table(columns: Mapping[str, Callable[[T], str]], rows: Iterable[T], *, names: int) -> None:
    """Print a table. Its first columns hold names; the others hold figures, which are aligned to the right."""
    from compactor.cli.ui.console import SafeConsole  # noqa: PLC0415 - few commands print a table

    SafeConsole().print(table_of(columns, rows, names=names))


def table_of(columns: Mapping[str, Callable[[T], str]], rows: Iterable[T], *, names: int) -> "Table":
    """A table as `print_table` prints it."""
    from rich.table import Column, Table  # noqa: PLC0415 - few commands print a table

    heads = [Column(name, justify="left" if at < names else "right", no_wrap=True) for at, name in enumerate(columns)]
    table = Table(*heads, box=None, padding=(0, 1, 0, 0), pad_edge=False, header_style="bold")
    for row in rows:
        table.add_row(*(shown(row) for shown in columns.values()))
    return table
