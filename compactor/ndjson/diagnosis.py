"""Explains what is wrong with a rejected line, and where."""

import json
import re
from dataclasses import dataclass
from typing import NoReturn

from compactor.ndjson.inspection import BLANK, MAX_DEPTH, REASONS

_STRUCTURE = re.compile(rb'"(?:[^"\\]++|\\.?|)*+(?:"|\Z)|[\[\]{}]')
_WORDS = re.compile(r'"(?:[^"\\]++|\\.?|)*+"|NaN|-?Infinity')
_SURROGATES = re.compile(
    r"\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}|(\\u[dD][89a-fA-F][0-9a-fA-F]{2})|\\."
)
_EXPECTED = {
    "Expecting value": "a value",
    "Expecting property name enclosed in double quotes": "a key in double quotes",
    "Expecting ':' delimiter": "':' after the key",
    "Expecting ',' delimiter": "a comma, or the end of the object or array",
    "Extra data": "a line feed before a second value",
    "Unterminated string starting at": "a closing quote for the string that starts here",
    "Invalid control character at": "an escape of the control character, such as \\t",
    "Invalid \\escape": "a JSON escape",
    "Invalid \\uXXXX escape": "four hexadecimal digits after \\u",
    "Illegal trailing comma before end of object": "no trailing comma",
    "Illegal trailing comma before end of array": "no trailing comma",
}
"""What Python's parser expected for each of its errors, in words."""

_KINDS = {b"[": "an array", b'"': "a string", b"t": "a boolean", b"f": "a boolean", b"n": "null"}


@dataclass(frozen=True, slots=True)
class Fault:
    """What is wrong with a line.

    Attributes:
        offset: The offset of the faulty byte, from 0, or the end of the line; None if unknown.
        message: What was found, and what was expected.
    """

    offset: int | None
    message: str


def json_fault(line: bytes) -> Fault | None:
    """The first fault of a line by RFC 8259; None if there is none. The line must be valid UTF-8."""
    text = line.decode()
    try:
        json.loads(text, parse_int=str, parse_float=str, parse_constant=_no_number)
    except json.JSONDecodeError as exc:
        what = f"found '{text[exc.pos]}'" if text[exc.pos :].strip() else "the line ends"
        return _fault_at(text, exc.pos, f"{what}; expected {_EXPECTED.get(exc.msg, 'JSON')}")
    except _NoNumberError as exc:
        at = next(found.start() for found in _WORDS.finditer(text) if found[0] == str(exc))
        return _fault_at(text, at, f"{exc} is not valid JSON; expected null")
    except RecursionError:  # Python parses fewer levels than a line may have
        return None
    half = next((found for found in _SURROGATES.finditer(text) if found[1]), None)
    return half and _fault_at(text, half.start(), f"{half[1]} is half of a surrogate pair")


class _NoNumberError(ValueError):
    pass


def _no_number(name: str) -> NoReturn:
    raise _NoNumberError(name)


def _fault_at(text: str, at: int, message: str) -> Fault:
    return Fault(len(text[:at].encode()), message)


def diagnosed(line: bytes, reason: str, *, length_bytes: int | None = None, max_line_bytes: int = 0) -> Fault:
    """Find out what is wrong with a line.

    Args:
        line: Its bytes, without the line feed; for a line that is too long, the first ones suffice.
        reason: Why it was rejected, one of `REASONS`.
        length_bytes: The full line's length, if `line` is only part of it.
        max_line_bytes: The limit, for a line that is too long.
    """
    if reason == "line_too_long":
        length = len(line) if length_bytes is None else length_bytes
        return Fault(max_line_bytes, f"the line has {length:,} bytes; expected at most {max_line_bytes:,}")
    if reason == "invalid_utf8":
        found = _utf8_fault(line)
    elif reason == "too_deep":
        found = _depth_fault(line)
    elif reason == "not_an_object":
        start = len(line) - len(line.lstrip(BLANK))
        found = Fault(start, f"{_KINDS.get(line[start : start + 1], 'a number')}; expected an object in braces")
    elif reason == "invalid_json":
        found = json_fault(line)
    else:
        found = None
    return found or Fault(None, REASONS.get(reason, reason))


def column_of(line: bytes, offset: int) -> int:
    """The column of a byte, in characters from 1. A byte that is not UTF-8 counts as one character."""
    return len(line[:offset].decode(errors="surrogateescape")) + 1


def _utf8_fault(line: bytes) -> Fault | None:
    try:
        line.decode()
    except UnicodeDecodeError as exc:
        byte = line[exc.start]
        if line.startswith((b"\xff\xfe", b"\xfe\xff")):
            return Fault(0, "a UTF-16 byte order mark; expected UTF-8")
        letter = bytes([byte]).decode("latin-1")
        hint = f"; in Latin-1 it is {letter}" if letter.isalpha() else ""
        return Fault(exc.start, f"byte 0x{byte:02x} is not UTF-8 ({exc.reason}){hint}")
    return None


def _depth_fault(line: bytes) -> Fault | None:
    depth = 0
    for found in _STRUCTURE.finditer(line):
        if found[0] in b"[{":
            depth += 1
            if depth > MAX_DEPTH:
                return Fault(found.start(), f"array or object {depth:,} levels deep; expected at most {MAX_DEPTH:,}")
        elif found[0] in b"]}":
            depth -= 1
    return None
