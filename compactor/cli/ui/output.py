"""Prints results: JSON for programs, aligned text for people."""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import fields, is_dataclass
from datetime import datetime
from typing import Any

import orjson
from pydantic import BaseModel

from compactor.cli.ui.terminal import echo, write_out
from compactor.core.safe_text import visible_json

Field = tuple[str, str | Sequence[str]]
"""A name, and a value of one line or several."""

_JSON_OPTIONS = orjson.OPT_NON_STR_KEYS | orjson.OPT_UTC_Z  # `Z` is also what pydantic writes for UTC


def print_json(document: Mapping[str, Any]) -> None:
    """Print one JSON document on stdout. It may hold dataclasses, times and records of the ledger."""
    _print(document, orjson.OPT_INDENT_2)


def print_json_line(document: Mapping[str, Any]) -> None:
    """Print one JSON document on one line of stdout."""
    _print(document, 0)


def _print(document: Mapping[str, Any], indent: int) -> None:
    try:
        text = orjson.dumps(document, default=_plain, option=_JSON_OPTIONS | indent).decode()
    except TypeError:  # orjson refuses the lone surrogates of names that are not UTF-8
        text = json.dumps(document, default=_plain, indent=2 if indent else None)
    # In bytes: JSON is UTF-8 whatever the encoding of the terminal.
    write_out(visible_json(text).encode())


def shallow(record: Any, *properties: str) -> dict[str, Any]:
    """The fields of a dataclass by name, and these properties. `dataclasses.asdict` fails for counters."""
    return {name: getattr(record, name) for name in (*(field.name for field in fields(record)), *properties)}


def _plain(value: Any) -> Any:
    if isinstance(value, BaseModel):
        return value.model_dump(mode="json")
    if is_dataclass(value):
        return shallow(value)
    if isinstance(value, datetime):
        return value.isoformat().replace("+00:00", "Z")
    raise TypeError(f"{type(value).__name__} has no JSON form")


def print_fields(named: Iterable[Field]) -> None:
    """Print names and values, aligned. A URI stays on one line, so that it can be copied."""
    rows = list(named)
    width = max((len(name) for name, _ in rows), default=0) + 2
    for name, value in rows:
        first, *others = [value] if isinstance(value, str) else value
        echo(f"{name:{width}}{first}".rstrip(), *(f"{'':{width}}{line}" for line in others))
