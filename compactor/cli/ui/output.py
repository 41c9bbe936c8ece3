"""Prints results: JSON for programs, aligned text and tables for people."""

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import is_dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any, TypeVar

import orjson
from pydantic import BaseModel

from compactor.cli.ui.terminal import echo, fitted, write_out
from compactor.core.results import document
from compactor.core.text.safe_text import visible_json

if TYPE_CHECKING:
    from rich.table import Table


SHOWN = 20  # per list; --json shows all


def show_list(entries: Sequence[tuple[str, ...]], *, title: str = "", spaced: bool = False) -> None:
    """Print entries, each with its further lines below it."""
    gap = [""] if spaced else []
    if entries and title:
        echo("", title)
    for first, *others in entries[:SHOWN]:
        head, *more = fitted(first, indent=4)
        lines = [*more, *(piece for each in others for piece in fitted(each, indent=4))]
        echo(*gap, f"  {head}", *(f"    {each}" for each in lines))
    for line in more_of(len(entries)):
        echo(*gap, f"  {line}")


def show_lines(lines: Sequence[str], *, title: str = "") -> None:
    """Print entries of one line each, below a title with their number; prints nothing if there are none."""
    show_counted(title, [(each,) for each in lines])


def show_counted(title: str, entries: Sequence[tuple[str, ...]]) -> None:
    """Print entries below a title with their number; prints nothing if there are none."""
    if entries and title:
        echo(f"{title}: {len(entries):,}")
    show_list(entries)


def more_of(number: int) -> list[str]:
    """A line with the number of entries that are not shown; empty if all are."""
    return [f"and {number - SHOWN:,} more; --json shows all"] if number > SHOWN else []


def first_of(lines: Sequence[str]) -> list[str]:
    """The lines that are shown, and the number of others."""
    return [*lines[:SHOWN], *more_of(len(lines))]


T = TypeVar("T")

Field = tuple[str, str | Sequence[str]]
"""A name, and a value of one or more lines."""

# `Z` is also what pydantic writes for UTC; `default` gets dataclasses for their shown properties.
_JSON_OPTIONS = orjson.OPT_NON_STR_KEYS | orjson.OPT_UTC_Z | orjson.OPT_PASSTHROUGH_DATACLASS


def print_json(result: Any, *, on_one_line: bool = False) -> None:
    """Print a result, or a mapping, as one JSON document on stdout."""
    # In bytes: JSON is UTF-8 whatever the encoding of the terminal.
    write_out(json_text(result, on_one_line=on_one_line).encode())


def print_result(result: T, show: Callable[[T], None], *, as_json: bool) -> None:
    """Print a result as JSON, or as `show` formats it."""
    if as_json:
        print_json(result)
    else:
        show(result)


def json_text(result: Any, *, on_one_line: bool = False) -> str:
    """The text of a JSON document, or a part of one."""
    options = _JSON_OPTIONS if on_one_line else _JSON_OPTIONS | orjson.OPT_INDENT_2
    try:
        text = orjson.dumps(result, default=_plain, option=options).decode()
    except TypeError:  # orjson refuses the lone surrogates of names that are not UTF-8
        text = json.dumps(result, default=_plain, indent=None if on_one_line else 2)
    return visible_json(text)  # guard: JSON is escaped, too


def of_streams(results: Mapping[str, Any]) -> dict[str, Any]:
    """The results of several streams, by name, as one document."""
    return {"streams": [document(each, stream=name) for name, each in results.items()]}


def _plain(value: Any) -> Any:
    if isinstance(value, datetime):
        return value.isoformat().replace("+00:00", "Z")
    if is_dataclass(value) or isinstance(value, BaseModel):
        return document(value)
    raise TypeError(f"{type(value).__name__} has no JSON form")


def print_fields(named: Iterable[Field]) -> None:
    """Print names and values, aligned. URIs, and commands in `next`, stay on one line for copying."""
    rows = list(named)
    width = max((len(name) for name, _ in rows), default=0) + 2
    for name, value in rows:
        lines = [value] if isinstance(value, str) else value
        if name != "next":
            lines = [piece for line in lines for piece in fitted(line, indent=width)]
        first, *others = lines
        echo(f"{name:{width}}{first}".rstrip(), *(f"{'':{width}}{line}" for line in others))


def print_table(columns: Mapping[str, Callable[[T], str]], rows: Iterable[T], *, names: int) -> None:
    """Print a table. The first columns hold names; the others hold figures, aligned to the right."""
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
