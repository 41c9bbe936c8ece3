"""Prints results: JSON for programs, aligned text and tables for people."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import fields
from typing import Any, TypeVar

import click
import orjson
from pydantic import BaseModel

T = TypeVar("T")

_JSON_OPTIONS = orjson.OPT_NON_STR_KEYS | orjson.OPT_UTC_Z  # `Z` is also what pydantic writes for UTC


def print_json(document: Mapping[str, Any], *, on_one_line: bool = False) -> None:
    """Print one JSON document on stdout. It may hold dataclasses, times and records of the ledger."""
    options = _JSON_OPTIONS if on_one_line else _JSON_OPTIONS | orjson.OPT_INDENT_2
    click.echo(orjson.dumps(document, default=_plain, option=options).decode())


def shallow(record: Any, *properties: str) -> dict[str, Any]:
    """The fields of a dataclass by name, and these properties. `dataclasses.asdict` fails for counters."""
    return picked(record, *(field.name for field in fields(record)), *properties)


def picked(value: object, *names: str) -> dict[str, Any]:
    """These attributes of a value by name."""
    return {name: getattr(value, name) for name in names}


def _plain(value: Any) -> Any:
    if isinstance(value, BaseModel):
        return value.model_dump(mode="json")
    raise TypeError(f"{type(value).__name__} has no JSON form")


def print_fields(named: Iterable[tuple[str, str]]) -> None:
    """Print names and values, aligned. A URI stays on one line, so that it can be copied."""
    rows = list(named)
    width = max((len(name) for name, _ in rows), default=0) + 2
    for name, value in rows:
        first, *others = value.split("\n")
        click.echo(f"{name:{width}}{first}".rstrip())
        for line in others:
            click.echo(f"{'':{width}}{line}")


def print_table(columns: Mapping[str, Callable[[T], str]], rows: Iterable[T], *, names: int) -> None:
    """Print a table. Its first columns hold names; the others hold figures, which are aligned to the right."""
    from rich.console import Console  # noqa: PLC0415 - few commands print a table
    from rich.table import Column, Table  # noqa: PLC0415

    heads = [Column(name, justify="left" if at < names else "right", no_wrap=True) for at, name in enumerate(columns)]
    table = Table(*heads, box=None, padding=(0, 1, 0, 0), pad_edge=False, header_style="bold")
    for row in rows:
        table.add_row(*(shown(row) for shown in columns.values()))
    Console(highlight=False).print(table)
