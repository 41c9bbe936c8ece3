"""Finds the arrays and objects that bytes hold one after the other, each over any number of lines."""

import re
from dataclasses import dataclass, field
from itertools import islice

import orjson

MAX_DEPTH = 1024
"""Levels of arrays and objects: the limit of orjson."""

MAX_TOKENS = 8192
"""How many strings, numbers, brackets and commas are looked at. What follows counts as cut off."""

_TOKEN = re.compile(rb'"(?:[^"\\]++|\\.|)*+"?+|[\[\]{},]|[^ \t\r\n"\[\]{},]++', re.DOTALL)
_CLOSING = {b"{": b"}", b"[": b"]"}
_ARRAY = [b"]"]


@dataclass(slots=True)
class JsonValues:
    """Arrays and objects with nothing but white space between them, and commas between the elements of the arrays.

    Attributes:
        closed: Where each whole value begins and ends.
        open_at: Where the value begins that the bytes end in; None if they end behind a whole one.
        valid: How many whole objects, and whole arrays and objects in an array, are JSON.
        invalid: How many are not.
        end: How far the bytes were read.
    """

    closed: list[tuple[int, int]] = field(default_factory=list)
    open_at: int | None = None
    valid: int = 0
    invalid: int = 0
    end: int = 0


def json_values(data: bytes) -> JsonValues | None:
    """Find the values that bytes hold, of which the last may be cut off anywhere; None if they hold anything else.

    Some of the values may be invalid. If none is whole, the last one is checked up to its last comma or bracket.
    """
    search, tokens = _Search(data), _TOKEN.finditer(data)
    if not all(map(search.take, islice(tokens, MAX_TOKENS))):
        return None
    found, further = search.found, next(tokens, None)
    found.end = len(data) if further is None else further.start()
    if search.closing:
        found.open_at = search.start
    if not (found.valid or found.invalid):
        ending = b"".join(reversed(search.closing))
        found.valid += _is_json(data[search.start : search.checked] + ending)
    return found if found.valid and found.valid >= found.invalid else None


class _Search:
    """The state between two tokens.

    Attributes:
        closing: What ends each open array and object, the innermost last.
        start: Where the current value begins.
        checked: The end of what can be checked of it.
    """

    def __init__(self, data: bytes) -> None:
        self.found = JsonValues()
        self.closing: list[bytes] = []
        self.start = 0
        self.checked = 0
        self._data = data
        self._element = 0  # where the last element of an array outside all others begins
        self._has_element = False  # whether a comma has to come next in such an array

    def take(self, token: re.Match[bytes]) -> bool:
        """Take note of a token; return False if it cannot stand where it does."""
        text = token[0]
        if text in _CLOSING:
            return self._opened(text, token.start(), token.end())
        if text in {b"}", b"]"}:
            return bool(self.closing) and text == self.closing.pop() and self._closed(token.end())
        if text == b",":
            self.checked = token.start()
            return bool(self.closing) and self._passed_comma()
        return bool(self.closing) and self._begun(token.start())

    def _opened(self, text: bytes, start: int, end: int) -> bool:
        may_stand = len(self.closing) < MAX_DEPTH and self._begun(start)
        if not self.closing:
            self.start, self._has_element = start, False
        self.closing.append(_CLOSING[text])
        self.checked = end
        return may_stand

    def _passed_comma(self) -> bool:
        if self.closing != _ARRAY:
            return True
        had_one, self._has_element = self._has_element, False
        return had_one

    def _begun(self, start: int) -> bool:
        """Begin an element of an array; return False if there is no comma before it."""
        if self.closing != _ARRAY:
            return True
        had_one, self._has_element, self._element = self._has_element, True, start
        return not had_one

    def _closed(self, end: int) -> bool:
        self.checked = end
        if not self.closing:
            self.found.closed.append((self.start, end))
        if self.closing == _ARRAY:
            self._count(self._element, end)
        elif not self.closing and self._data[self.start] == ord("{"):
            self._count(self.start, end)
        return True

    def _count(self, start: int, end: int) -> None:
        if _is_json(self._data[start:end]):
            self.found.valid += 1
        else:
            self.found.invalid += 1


def _is_json(text: bytes) -> bool:
    try:
        orjson.loads(text)
    except orjson.JSONDecodeError:
        return False
    return True
