"""Says what is wrong with a rejected line, and where in the line."""

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NoReturn

from compactor.ndjson.inspection import BLANK, REASONS

# Finds the first place at which a line is not JSON (RFC 8259), and says what was expected there.
#
# A parser gives up with few words. This scanner reads a line again when a person asks, in linear time and without
# recursion.


_BLANK = re.compile(rb"[ \t\r\n]*+")
_STRING = re.compile(rb'"(?:[^"\\\x00-\x1f]++|\\["\\/bfnrt]|\\u[0-9a-fA-F]{4}|)*+')
_NUMBER = re.compile(rb"-?(?:0|[1-9][0-9]*+)(?:\.[0-9]++)?(?:[eE][+-]?[0-9]++)?")
_WORD = re.compile(rb"-?[A-Za-z_$][A-Za-z0-9_$]*+")
_ESCAPE = re.compile(rb"\\(?:u([0-9a-fA-F]{4})|.)")
_INSTEAD = {b"True": "true", b"False": "false", b"None": "null", b"undefined": "null", b"nil": "null", b"NULL": "null"}
_NOT_NUMBERS = {b"nan", b"infinity", b"inf"}
_OTHER_QUOTES = "'`\N{LEFT SINGLE QUOTATION MARK}\N{LEFT DOUBLE QUOTATION MARK}\N{RIGHT DOUBLE QUOTATION MARK}"
_SHOWN_CHARACTERS = 20
_HIGH, _LOW, _AFTER = 0xD800, 0xDC00, 0xE000  # where the halves of surrogate pairs begin and end
_SPACE = 0x20  # the first character that a string may have

At = tuple[int, str]
"""The offset of a fault, and what is wrong there."""

_Step = Callable[[], Any] | None
"""Reads one token and returns what to expect next; None after a whole value."""


def json_fault(line: bytes) -> At | None:
    """The first fault of a line, which is valid UTF-8; None if the line is exactly one JSON value."""
    try:
        _Scan(line).read()
    except _FaultError as exc:
        return exc.at
    return None


class _FaultError(Exception):
    def __init__(self, offset: int, message: str) -> None:
        super().__init__(message)
        self.at = (offset, message)


class _Scan:
    """One pass over a line. `_at` is the offset so far, `_open` has those of the brackets that are open."""

    def __init__(self, line: bytes) -> None:
        self._line = line
        self._at = 0
        self._open: list[int] = []

    def read(self) -> None:
        """Read the line to its end; raises a `_FaultError`."""
        expect = self._value
        while True:
            self._skip()
            if self._at == len(self._line):
                self._cut()
            following = expect()
            if following is not None:
                expect = following
            elif self._open:
                expect = self._after_value
            else:
                break
        self._skip()
        if self._at < len(self._line):
            self._after_end()

    def _skip(self) -> None:
        found = _BLANK.match(self._line, self._at)
        self._at = found.end() if found else self._at

    def _fail(self, message: str, offset: int | None = None) -> NoReturn:
        raise _FaultError(self._at if offset is None else offset, message)

    def _next(self) -> bytes:
        return self._line[self._at : self._at + 1]

    def _value(self) -> _Step:
        """Read a value, or the opening bracket of one. Returns what is expected next; None after a whole value."""
        line, character = self._line, self._next()
        if character in b"{[":
            self._open.append(self._at)
            self._at += 1
            return self._key_or_end if character == b"{" else self._value_or_end
        if character == b'"':
            self._string()
            return None
        if found := _NUMBER.match(line, self._at):
            self._at = found.end()
            self._check_number(found.start())
            return None
        for literal in (b"true", b"false", b"null"):
            if line.startswith(literal, self._at) and not _WORD.match(line, self._at + len(literal)):
                self._at += len(literal)
                return None
        return self._no_value()

    def _key_or_end(self) -> _Step:
        return self._closed() if self._next() == b"}" else self._key()

    def _value_or_end(self) -> _Step:
        return self._closed() if self._next() == b"]" else self._value()

    def _closed(self) -> _Step:
        self._open.pop()
        self._at += 1
        return None

    def _key(self) -> _Step:
        if self._next() == b'"':
            self._string()
            return self._colon
        if self._next() == b"}":
            self._fail("a comma before '}'; expected another key, or no comma")
        if found := _WORD.match(self._line, self._at):
            self._fail(f"the key {_shown(found[0])} has no double quotes")
        return self._unexpected("a key in double quotes")

    def _colon(self) -> _Step:
        if self._next() != b":":
            self._unexpected("':' after the key")
        self._at += 1
        return self._value

    def _after_value(self) -> _Step:
        in_object = self._line[self._open[-1] : self._open[-1] + 1] == b"{"
        end, character = (b"}" if in_object else b"]"), self._next()
        if character == end:
            return self._closed()
        if character != b",":
            missing = "; is a comma missing?" if character == b'"' else ""
            self._unexpected(f"',' or '{end.decode()}' after the value", missing)
        self._at += 1
        return self._key if in_object else self._value

    def _string(self) -> None:
        start = self._at
        found = _STRING.match(self._line, start)
        end = found.end() if found else start + 1
        wrong = self._line[end : end + 1]
        if wrong == b"":
            self._fail(f"the line ends inside the string that begins at column {self._column(start)}", end)
        if wrong == b"\\":
            self._fail(f"{_shown(self._line[end : end + 2])} is no escape of JSON", end)
        if wrong[0] < _SPACE:
            escape = {b"\t": "\\t", b"\r": "\\r"}.get(wrong, f"\\u{wrong[0]:04x}")
            self._fail(f"a control character (0x{wrong[0]:02x}) in a string; expected {escape}", end)
        self._check_surrogates(start, end)
        self._at = end + 1

    def _check_surrogates(self, start: int, end: int) -> None:
        """Check that each half of a surrogate pair has its other half: alone it stands for no character."""
        high = None
        for found in _ESCAPE.finditer(self._line, start, end) if b"\\u" in self._line[start:end] else ():
            code = int(found[1], 16) if found[1] else 0
            if high is not None and not (_LOW <= code < _AFTER and found.start() == high.end()):
                self._fail(f"{_shown(high[0])} is half of a surrogate pair", high.start())
            if high is None and _LOW <= code < _AFTER:
                self._fail(f"{_shown(found[0])} is half of a surrogate pair", found.start())
            high = found if _HIGH <= code < _LOW else None
        if high is not None:
            self._fail(f"{_shown(high[0])} is half of a surrogate pair", high.start())

    def _check_number(self, start: int) -> None:
        """Check what follows a number: digits, points and letters are part of a wrong one."""
        digits, follows = self._line[start : self._at].lstrip(b"-"), self._next()
        if digits == b"0" and follows.isdigit():
            self._fail("a number may have no leading zero (RFC 8259)", start)
        if follows and follows in b".eE":
            self._fail("the number is cut off: expected a digit", min(self._at + 1, len(self._line)))
        if follows.isalnum() or (follows and follows in b"_"):
            self._fail(f"a number is followed by {_shown(follows)}; expected text in double quotes")

    def _no_value(self) -> NoReturn:
        """Say what stands where a value is expected."""
        if not self._open and self._next().isalnum():
            self._fail("found text; expected an object in braces")
        if found := _WORD.match(self._line, self._at):
            word = found[0]
            if word.lstrip(b"-").lower() in _NOT_NUMBERS:
                self._fail(f"{_shown(word)} is no number of JSON; expected null")
            instead = _INSTEAD.get(word, "text in double quotes")
            self._fail(f"{_shown(word)} is no value of JSON; expected {instead}")
        if self._next() in b"}]" and self._line[: self._at].rstrip().endswith(b","):
            self._fail(f"a comma before '{self._next().decode()}'; expected another value, or no comma")
        if self._next() in b"+." or self._line.startswith(b"-.", self._at):
            self._fail("a number begins with a digit or '-' and a digit")
        self._unexpected("a value")

    def _after_end(self) -> NoReturn:
        if self._next() in b"{[":
            self._fail("a second value on the line; expected a line feed before it")
        if self._next() in b",;":
            self._fail(f"'{self._next().decode()}' after the value; expected a line feed alone between two values")
        self._unexpected("the end of the line after the value")

    def _cut(self) -> NoReturn:
        if not self._open:
            self._fail("the line ends; expected a value")
        start = self._open[-1]
        kind = "object" if self._line[start : start + 1] == b"{" else "array"
        self._fail(f"the line ends inside the {kind} that begins at column {self._column(start)}")

    def _unexpected(self, expected: str, hint: str = "") -> NoReturn:
        character = self._line[self._at : self._at + 4].decode(errors="replace")[:1]
        names = {'"': "a string", "\ufeff": "a byte order mark", "\0": "a NUL character"}
        what = names.get(character, f"'{character}'" if character != "'" else "a single quote")
        if self._line[self._at : self._at + 2] in {b"//", b"/*"} or character == "#":
            what = "a comment"
        elif character in _OTHER_QUOTES:
            hint = "; JSON has double quotes"
        self._fail(f"found {what}; expected {expected}{hint}")

    def _column(self, offset: int) -> int:
        return len(self._line[:offset].decode(errors="replace")) + 1


def _shown(text: bytes) -> str:
    word = text.decode(errors="replace")
    return word if len(word) <= _SHOWN_CHARACTERS else f"{word[:_SHOWN_CHARACTERS]}..."


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
