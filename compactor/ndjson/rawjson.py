"""Extracts the values of one JSON object as text, exactly as written."""

import re
from collections.abc import Iterator
from typing import Literal

import orjson

# Possessive quantifiers keep the matcher from storing a backtracking position for every escape in a long string. The
# last alternative of their groups is empty, because Python before 3.11.5 does not backtrack after a failed iteration.
_STRING = r'"[^"\\]*+(?:\\.[^"\\]*+|)*+"'
_KEY = re.compile(rf"[ \t\r\n]*+({_STRING})[ \t\r\n]*+:[ \t\r\n]*+")
_TEXT = re.compile(_STRING)
_WORD = re.compile(r"[-+.0-9A-Za-z]++")
_BRACKET = re.compile(rf"{_STRING}|[\[\]{{}}]")
_COMMA = re.compile(r"[ \t\r\n]*+,")
_ELEMENT = re.compile(r"[ \t\r\n]*+(?=[^ \t\r\n\]])")


Source = Literal["null", "string", "word", "nested"]
"""How a value is written in the line: null, a string, a number or boolean, or an object or array."""


def texts(line: bytes) -> dict[str, str | None]:
    """The top-level values of a line accepted by inspection. Does not recurse, however deeply the line is nested.

    Args:
        line: One JSON object in UTF-8, optionally surrounded by white space.

    Returns:
        For each top-level key (the last occurrence wins): None for null, the decoded text of a string, and for anything
        else the source text, including its inner white space.
    """
    return {key: None if source == "null" else text for key, source, text in fields(line.decode())}


def values(line: bytes) -> dict[str, tuple[Source, str]]:
    """The texts of a line as in `texts`, each with how it is written."""
    return {key: (source, text) for key, source, text in fields(line.decode())}


def fields(source: str) -> Iterator[tuple[str, Source, str]]:
    """The keys of a valid JSON object with their values, also repeated ones."""
    at = source.index("{") + 1
    while match := _KEY.match(source, at):
        kind, text, end = _value(source, match.end())
        yield _decoded(match.group(1)), kind, text
        comma = _COMMA.match(source, end)
        if comma is None:
            break
        at = comma.end()


def elements(source: str) -> Iterator[tuple[Source, str]]:
    """The elements of a valid JSON array, which starts with its bracket."""
    at = 1
    while match := _ELEMENT.match(source, at):
        kind, text, end = _value(source, match.end())
        yield kind, text
        comma = _COMMA.match(source, end)
        if comma is None:
            break
        at = comma.end()


def is_container(text: str) -> bool:
    """Whether a text starts and ends with the brackets of the same array or object, if it is valid JSON."""
    return text[:1] in ("[", "{") and _end_of_container(text, 0) == len(text)


def _value(source: str, start: int) -> tuple[Source, str, int]:
    if source[start] in "{[":
        end = _end_of_container(source, start)
        return "nested", source[start:end], end
    match = (_TEXT if source[start] == '"' else _WORD).match(source, start)
    if match is None:
        raise ValueError(f"character {start}: expected a JSON value")
    written = match.group()
    if written[0] == '"':
        return "string", _decoded(written), match.end()
    return ("null" if written == "null" else "word"), written, match.end()


def _end_of_container(source: str, start: int) -> int:
    depth = 0
    for match in _BRACKET.finditer(source, start):
        written = match.group()
        if written in "{[":
            depth += 1
        elif written in "}]":
            depth -= 1
            if depth == 0:
                return match.end()
    raise ValueError(f"character {start}: the object or array that starts here is not closed")


def _decoded(written: str) -> str:
    if "\\" not in written:
        return written[1:-1]
    text: str = orjson.loads(written)
    return text
