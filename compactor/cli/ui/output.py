"""How results are shown: JSON for programs, aligned text for people."""

from collections.abc import Iterable, Mapping
from dataclasses import fields
from typing import Any

import click
import orjson
from pydantic import BaseModel

_JSON_OPTIONS = orjson.OPT_NON_STR_KEYS | orjson.OPT_UTC_Z  # `Z` is also what pydantic writes for UTC


def print_json(document: Mapping[str, Any]) -> None:
    """Print one JSON document on stdout. Dataclasses, times and the ledger's documents become what they hold."""
    click.echo(orjson.dumps(document, default=_plain, option=_JSON_OPTIONS | orjson.OPT_INDENT_2).decode())


def print_json_line(document: Mapping[str, Any]) -> None:
    """Print one JSON document on one line of stdout, for who reads line by line."""
    click.echo(orjson.dumps(document, default=_plain, option=_JSON_OPTIONS).decode())


def shallow(record: Any, *properties: str) -> dict[str, Any]:
    """The fields of a dataclass by name, and these properties; `dataclasses.asdict` would break the counters in it."""
    return {name: getattr(record, name) for name in (*(field.name for field in fields(record)), *properties)}


def _plain(value: Any) -> Any:
    if isinstance(value, BaseModel):
        return value.model_dump(mode="json")
    raise TypeError(f"{type(value).__name__} has no JSON form")


def print_fields(named: Iterable[tuple[str, str]]) -> None:
    """Print names and values, aligned. A URI is never broken, so that it can be copied."""
    rows = list(named)
    width = max((len(name) for name, _ in rows), default=0) + 2
    for name, value in rows:
        first, *others = value.split("\n")
        click.echo(f"{name:{width}}{first}".rstrip())
        for line in others:
            click.echo(f"{'':{width}}{line}")
