"""Says what is wrong with a rejected line, and where in the line."""

import re
from dataclasses import dataclass

from compactor.ndjson.inspection import BLANK, REASONS
from compactor.ndjson.json_faults import json_fault

MAX_DEPTH = 1024
"""Levels of arrays and objects that a line may have."""

_STRUCTURE = re.compile(rb'"(?:[^"\\]++|\\.?|)*+(?:"|\Z)|[\[\]{}]')
_KINDS = {b"[": "an array", b'"': "a string", b"t": "a boolean", b"f": "a boolean", b"n": "null"}


@dataclass(frozen=True, slots=True)
class Fault:
    """What is wrong with a line.

    Attributes:
        offset: The byte of the line that it is about, from 0, or the end of the line; None if none is known.
        message: What was found, and what was expected.
    """

    offset: int | None
    message: str


def diagnosed(line: bytes, reason: str, *, length_bytes: int | None = None, max_line_bytes: int = 0) -> Fault:
    """Find out what is wrong with a line.

    Args:
        line: Its bytes, without the line feed; of a line that is too long, the first ones are enough.
        reason: Why it was rejected, one of `REASONS`.
        length_bytes: The length of the whole line, if `line` is only a part of it.
        max_line_bytes: The limit of a line that is too long.
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
        at = json_fault(line)
        found = None if at is None else Fault(*at)
    else:
        found = None
    return found or Fault(None, REASONS.get(reason, reason))


def column_of(line: bytes, offset: int) -> int:
    """The column of a byte, in characters from 1. What is no UTF-8 counts as one character a byte."""
    return len(line[:offset].decode(errors="surrogateescape")) + 1


def _utf8_fault(line: bytes) -> Fault | None:
    try:
        line.decode()
    except UnicodeDecodeError as exc:
        byte = line[exc.start]
        if line.startswith((b"\xff\xfe", b"\xfe\xff")):
            return Fault(0, "the byte order mark of UTF-16; expected UTF-8")
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
