"""The values to erase: tests whether JSON, or a line that is not JSON, contains one of them. No I/O."""

import json
import re
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from operator import itemgetter
from typing import Any

from compactor.schema.column_types import ColumnType, Value, value_of
from compactor.schema.schema import Column

_READINGS = 4  # as written, and unescaped up to three times: strings may hold JSON text, whose strings may again
_MAX_ESCAPED_BYTES = 12  # of one character: two halves of a surrogate pair
_UNICODE_RUN = re.compile(rb"(?:\\u[0-9a-fA-F]{4})+")
_ESCAPE = re.compile(rb'\\(["\\/bfnrt])')
_PLAIN = {b"b": b"\b", b"f": b"\f", b"n": b"\n", b"r": b"\r", b"t": b"\t"}
_WORD_EDGE = re.compile(rb"(?<![A-Za-z0-9_])|(?![A-Za-z0-9_])")
_WORD = frozenset(b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ_abcdefghijklmnopqrstuvwxyz")


class BrokenLines:
    """Finds values in bytes that are not JSON, but not inside longer words or numbers: `7` is not in `17`."""

    def __init__(self, values: Iterable[str]) -> None:
        by_length: dict[int, set[bytes]] = defaultdict(set)
        for value in values:
            data = value.encode(errors="surrogatepass")
            by_length[len(data)].add(data)
        self._by_length = {length: frozenset(found) for length, found in by_length.items() if length}
        self.overlap_bytes = _MAX_ESCAPED_BYTES * max(self._by_length, default=0)
        """Bytes at the end of a piece of a line that must be searched again with the next piece."""

    def holds(self, raw: bytes) -> bool:
        """Whether a line, or a piece of one, contains a value anywhere."""
        return any(map(self._is_in, _readings(raw)))

    def _is_in(self, text: bytes) -> bool:
        for match in _WORD_EDGE.finditer(text):
            start = match.start()
            for length, values in self._by_length.items():
                end = start + length
                if text[start:end] in values and _is_edge(text, end):
                    return True
        return False


def _is_edge(text: bytes, at: int) -> bool:
    return at >= len(text) or text[at] not in _WORD or text[at - 1] not in _WORD


def _readings(raw: bytes) -> Iterator[bytes]:
    text = raw
    for _ in range(_READINGS):
        yield text
        plain = _unescaped(text)
        if plain == text:
            return
        text = plain


def _unescaped(text: bytes) -> bytes:
    if b"\\" not in text:
        return text
    plain = _UNICODE_RUN.sub(_characters, text)
    return _ESCAPE.sub(lambda found: _PLAIN.get(found[1], found[1]), plain)


def _characters(found: re.Match[bytes]) -> bytes:
    characters: str = json.loads(b'"' + found[0] + b'"')
    return characters.encode(errors="surrogatepass")


_BRACKETS = ("{", "[")
BLANKS = "\t\n\r "
_FEW = 64  # up to this many values, searching the bytes is quicker than parsing


class _Pairs(list[tuple[str, Any]]):
    """The keys and values of a JSON object, including repeated keys."""


class _Number(str):
    """The text of a number. As a value it equals a string with this text; in a wanted object it does not."""

    __slots__ = ()


def compared_type(column: Column | None, path: Sequence[str]) -> ColumnType | None:
    """The type by which values of a key are compared, given its column; None to compare text, as for nested keys."""
    return column.column_type if column is not None and column.is_typed and len(path) == 1 else None


@dataclass(frozen=True)
class Wanted:
    """Values of a key.

    Arrays are searched element by element, and so is JSON text in strings, both on the path to the key and below it.

    Attributes:
        path: The key; or the keys of nested objects, the outermost first.
        values: The decoded text of strings; numbers and booleans as written.
        column_type: The type of the key's column, if it is not text. Then equal values count as well, such as 7.0 for
            7.
    """

    path: tuple[str, ...]
    values: frozenset[str]
    column_type: ColumnType | None = None

    @property
    def key(self) -> str:
        return self.path[0]

    def has(self, text: str) -> bool:
        """Whether the value of the top-level key, as in the output, is or contains a wanted one."""
        return self._in_text(text, self.path[1:])

    def in_line(self, line: bytes) -> bool:
        """Whether a line contains a value: of the key, or anywhere if the line is not a JSON object."""
        if not self.may_be_in(line):
            return False
        try:
            parsed = _parsed(line)
            if isinstance(parsed, _Pairs):
                return self._in_value(parsed, self.path)
        except (ValueError, RecursionError):
            pass
        return self.broken.holds(line)

    def may_be_in(self, data: bytes) -> bool:
        """Whether lines may contain a value. For few values, this quick test often avoids parsing."""
        # Without a backslash, each text is written as its own bytes.
        return self.few is None or b"\\" in data or any(value in data for value in self._few_bytes)

    def is_between(self, lowest: str, highest: str) -> bool:
        """Whether a text between `lowest` and `highest`, by code points, may be or contain a wanted one."""
        if lowest <= " \U0010ffff" and highest >= BLANKS[0]:
            return True  # JSON text behind blanks
        if any(lowest <= f"{bracket}\U0010ffff" and highest >= bracket for bracket in _BRACKETS):
            return True
        if len(self.path) > 1:
            return False
        at = bisect_left(self._sorted, lowest)
        return at < len(self._sorted) and self._sorted[at] <= highest

    @cached_property
    def broken(self) -> BrokenLines:
        return BrokenLines(self.values)

    @cached_property
    def meant(self) -> frozenset[Value]:
        """The values in the type of the column; empty for text, and for a nested key."""
        if self.column_type is None or len(self.path) > 1:
            return frozenset()
        found = (value_of(text, self.column_type) for text in self.values)
        return frozenset(value for value in found if value is not None)

    @cached_property
    def _containers(self) -> frozenset[Any]:
        """The wanted objects and arrays."""
        return frozenset(filter(None, map(self._container, self.values)))

    def _container(self, text: str) -> Any:
        """An object or an array, whatever the order of its keys; None for any other text."""
        if not text.lstrip(BLANKS).startswith(_BRACKETS):
            return None
        try:
            return _frozen(_parsed(text))
        except (ValueError, RecursionError):
            return None

    @cached_property
    def few(self) -> tuple[str, ...] | None:
        """The values, if they are few and each can be written in only one way.

        Then JSON text without a backslash and without any of these texts contains no value.
        """
        is_free = self.column_type is not None or bool(self._containers)
        return None if len(self.values) > _FEW or is_free else tuple(self.values)

    @cached_property
    def _few_bytes(self) -> list[bytes]:
        return [value.encode(errors="surrogatepass") for value in self.few or ()]

    @cached_property
    def _sorted(self) -> list[str]:
        return sorted(self.values)

    def _in_text(self, text: str, path: tuple[str, ...]) -> bool:
        if not path and text in self.values:
            return True
        if not path and self.column_type is not None and value_of(text, self.column_type) in self.meant:
            return True
        if not text.lstrip(BLANKS).startswith(_BRACKETS):
            return False
        try:
            return self._in_value(_parsed(text), path)
        except (ValueError, RecursionError):
            return self.broken.holds(text.encode(errors="surrogatepass"))

    def _in_value(self, value: Any, path: tuple[str, ...]) -> bool:
        if not path and isinstance(value, list) and self._containers and _frozen(value) in self._containers:
            return True
        if isinstance(value, _Pairs):
            return bool(path) and any(self._in_value(each, path[1:]) for key, each in value if key == path[0])
        if isinstance(value, list):
            return any(self._in_value(each, path) for each in value)
        if isinstance(value, bool):
            return self._in_value(str(value).lower(), path)
        return isinstance(value, str) and self._in_text(value, path)


def _frozen(value: Any) -> Any:
    """A hashable copy of a parsed value, with the pairs of objects sorted by key."""
    if isinstance(value, _Pairs):
        return frozenset, tuple(sorted(((key, _frozen(each)) for key, each in value), key=itemgetter(0)))
    if isinstance(value, list):
        return list, tuple(map(_frozen, value))
    return (_Number, str(value)) if isinstance(value, _Number) else value


def path_of(key: str) -> tuple[str, ...]:
    """The keys that lead to a value: a top-level key, or those of a JSON Pointer (RFC 6901), such as `/user/id`."""
    if not key.startswith("/"):
        return (key,)
    parts = key.removeprefix("/").split("/")
    return tuple(part.replace("~1", "/").replace("~0", "~") for part in parts)


def _parsed(text: str | bytes) -> Any:
    """Parse JSON, keeping the text of numbers and all pairs of objects."""
    return json.loads(text, object_pairs_hook=_Pairs, parse_int=_Number, parse_float=_Number, parse_constant=str)
