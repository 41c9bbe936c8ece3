"""How results are shown: JSON for programs, aligned text for people."""

from collections.abc import Iterable, Mapping
from dataclasses import fields
from typing import Any

import click
import orjson
from pydantic import BaseModel

_MINUTE_SECONDS = 60
_HOUR_SECONDS = 3600
_DAY_SECONDS = 86_400
_JSON_OPTIONS = orjson.OPT_NON_STR_KEYS | orjson.OPT_UTC_Z  # `Z` is also what pydantic writes for UTC


def print_json(document: Mapping[str, Any]) -> None:
    """Print one JSON document on stdout. Dataclasses, times and the ledger's documents become what they hold."""
    click.echo(orjson.dumps(document, default=_plain, option=_JSON_OPTIONS | orjson.OPT_INDENT_2).decode())


def print_json_line(document: Mapping[str, Any]) -> None:
    """Print one JSON document on one line of stdout, for who reads line by line."""
    click.echo(orjson.dumps(document, default=_plain, option=_JSON_OPTIONS).decode())


def shallow(record: Any) -> dict[str, Any]:
    """The fields of a dataclass by name; `dataclasses.asdict` would take the counters in it apart wrongly."""
    return {field.name: getattr(record, field.name) for field in fields(record)}


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


def count(number: int, thing: str, things: str = "") -> str:
    """A number of things, as in `1 file` and `2,000 files`."""
    return f"{number:,} {thing if number == 1 else things or thing + 's'}"


def by_name(counts: Mapping[str, int]) -> str:
    """Counts with their names, the largest first, as in `2 missing, 1 unreadable`."""
    ordered = sorted(counts.items(), key=lambda item: (-item[1], item[0]))
    return ", ".join(f"{number:,} {name}" for name, number in ordered if number)


def size(length_bytes: float) -> str:
    """Bytes in decimal units, as in `3.7 MB`."""
    amount = float(length_bytes)
    for unit in ("bytes", "kB", "MB", "GB"):
        if amount < 1000:  # noqa: PLR2004 - the step between units
            return f"{amount:,.0f} {unit}" if unit == "bytes" else f"{amount:,.1f} {unit}"
        amount /= 1000
    return f"{amount:,.1f} TB"


def rate(length_bytes: float, seconds: float) -> str:
    """Bytes over time, as in `45.2 MB/s`."""
    return f"{length_bytes / seconds / 1e6:,.1f} MB/s" if seconds > 0 else "0.0 MB/s"


def duration(seconds: float) -> str:
    """Time in the two largest units that say something, as in `2 min 5 s`."""
    whole = round(seconds)
    if whole < _MINUTE_SECONDS:
        return f"{seconds:.1f} s" if seconds < 10 else f"{whole} s"  # noqa: PLR2004 - two digits are enough
    if whole < _HOUR_SECONDS:
        return f"{whole // _MINUTE_SECONDS} min {whole % _MINUTE_SECONDS} s"
    if whole < _DAY_SECONDS:
        return f"{whole // _HOUR_SECONDS} h {whole % _HOUR_SECONDS // _MINUTE_SECONDS} min"
    return f"{whole // _DAY_SECONDS} d {whole % _DAY_SECONDS // _HOUR_SECONDS} h"
