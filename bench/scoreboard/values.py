"""Compares the raw text of a JSON value with what a Parquet file has in its place."""

import json
from collections.abc import Iterator
from datetime import UTC, date, datetime
from decimal import Decimal
from enum import IntEnum
from typing import Any
from uuid import UUID

_DECODER = json.JSONDecoder(parse_float=Decimal)
_BLANKS = " \t\r\n"


class Match(IntEnum):
    """How a value came through, best last.

    Attributes:
        DIFFERENT: It is another value, or none.
        VALUE: It is the same value in another form: a structure, a double of `17.50`, a time.
        TEXT: It has the same characters: those of a string, and the JSON text of anything else.
    """

    DIFFERENT = 0
    VALUE = 1
    TEXT = 2


def raw_members(line: str) -> Iterator[tuple[str, str]]:
    """The keys of a JSON object, each with the text of its value as it stands in the line."""
    at = _skip(line, line.index("{") + 1)
    while line[at] != "}":
        key, at = _DECODER.raw_decode(line, at)
        begin = _skip(line, _skip(line, at) + 1)  # behind the colon
        _, end = _DECODER.raw_decode(line, begin)
        yield key, line[begin:end]
        at = _skip(line, end)
        at = _skip(line, at + 1) if line[at] == "," else at


def match(raw: str, cell: object) -> Match:
    """How a cell of a Parquet file matches the raw text of a value; no cell stands for null."""
    value = _DECODER.decode(raw)
    if value is None or isinstance(value, str):
        is_text = cell == value
    else:
        is_text = cell is not None and raw == (cell if isinstance(cell, str) else _written(cell))
    if is_text:
        return Match.TEXT
    return Match.VALUE if _is_same(value, cell) else Match.DIFFERENT


def identity(value: object) -> str:
    """What two forms of one key have in common."""
    if isinstance(value, UUID):
        return value.hex
    return value.hex() if isinstance(value, bytes) else str(value)


def at_path(cell: object, path: tuple[str, ...]) -> object:
    """What a cell has at a path of keys, be it a structure, a map or JSON text; None if there is nothing."""
    for key in path:
        cell = _parsed(cell)
        if isinstance(cell, list):
            cell = dict(cell)
        cell = cell.get(key) if isinstance(cell, dict) else None
    return cell


def _is_same(value: Any, cell: Any) -> bool:
    """Whether they are the same value. A structure cannot tell an absent member from a null."""
    if value is None or cell is None:
        return value is cell
    if isinstance(value, str):
        return value in (cell, _parsed(cell)) or _is_same_other(value, cell)
    if isinstance(cell, str):
        cell = _parsed(cell)
    if isinstance(value, dict):
        members = dict(cell) if isinstance(cell, list) and all(isinstance(each, tuple) for each in cell) else cell
        return isinstance(members, dict) and all(
            _is_same(value.get(key), members.get(key)) for key in value.keys() | members.keys()
        )
    if isinstance(value, list):
        return isinstance(cell, list) and len(cell) == len(value) and all(map(_is_same, value, cell))
    if isinstance(value, bool) or isinstance(cell, bool):
        return value is cell
    return isinstance(cell, int | float | Decimal) and Decimal(str(cell)) == value


def _is_same_other(text: str, cell: Any) -> bool:
    """Whether a string has become a time, a date or a UUID that says the same."""
    try:
        if isinstance(cell, datetime):
            there, here = datetime.fromisoformat(text), cell
            return there.replace(tzinfo=there.tzinfo or UTC) == here.replace(tzinfo=here.tzinfo or UTC)
        if isinstance(cell, date):
            return date.fromisoformat(text) == cell
        return isinstance(cell, UUID) and UUID(text) == cell
    except ValueError:
        return False


def _parsed(cell: object) -> object:
    try:
        return _DECODER.decode(cell) if isinstance(cell, str) else cell
    except ValueError:
        return cell


def _written(cell: object) -> str:
    try:
        return json.dumps(cell, separators=(",", ":"), ensure_ascii=False)
    except (TypeError, ValueError):  # a time, or bytes
        return ""


def _skip(line: str, at: int) -> int:
    while line[at] in _BLANKS:
        at += 1
    return at
