"""Passes the elements of JSON arrays and documents to a judge, each as one line, and counts them."""

import re
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from compactor.core.errors import FileError
from compactor.ndjson.line_splitting import Splitting
from compactor.ndjson.lines import LineCounts, Receiver

_STRING = rb'"(?:[^"\\]++|\\.|)*+"'
_FLAT = rb'[^"{}\[\]]++|' + _STRING
_NESTED = rb"[{\[](?:" + _FLAT + rb"|)*+[}\]]"
_TWICE_NESTED = rb"[{\[](?:" + _FLAT + rb"|" + _NESTED + rb"|)*+[}\]]"
# A shallow object is found by one search, faster than bracket by bracket.
_OBJECT = re.compile(rb"\{(?:" + _FLAT + rb"|" + _TWICE_NESTED + rb"|)*+\}", re.DOTALL)

_BETWEEN = re.compile(rb"[ \t\r\n,]*+")
_INSIDE = re.compile(rb"(?:" + _FLAT + rb"|)*+", re.DOTALL)
_IN_STRING = re.compile(rb'(?:[^"\\]++|\\.|)*+', re.DOTALL)
_BARE = re.compile(rb'[^,\[\]{}" \t\r\n]*+')

_OPENING, _QUOTE, _ARRAY, _END_OF_ARRAY = frozenset(b"{["), *b'"[]'


class Element(NamedTuple):
    """An element, or part of one that is too long to hold.

    Attributes:
        ends: Whether the element ends with these bytes.
    """

    offset: int
    data: bytes
    ends: bool


class ElementScanner:
    """Finds elements in pieces of a file.

    The elements are those of all top-level arrays, and all other top-level values. Any commas and white space may
    separate them. Both kinds of brackets count alike, because the element's judge parses it.

    Args:
        max_bytes: A longer element may come in parts, all of which except the last are multiples of this.

    `_buffer` has the bytes still needed, starting at `_offset` and scanned up to `_at`. `_start` is where the current
    element, or the rest of it, starts there; -1 between elements.
    """

    def __init__(self, max_bytes: int) -> None:
        self._max_bytes = max_bytes
        self._buffer = bytearray()
        self._offset = 0
        self._at = 0
        self._start = -1
        self._depth = 0
        self._in_string = False
        self._in_array = False

    def feed(self, piece: bytes) -> Iterator[Element]:
        """The elements, and parts of one, that this piece completes."""
        self._buffer += piece
        while self._at < len(self._buffer):
            if self._start < 0:
                yield from self._objects()
                self._begin()
            elif self._reaches_end():
                yield self._taken(self._at)
            else:
                break
        yield from self._parts()
        done = self._at if self._start < 0 else self._start
        del self._buffer[:done]
        self._offset += done
        self._at -= done
        self._start = min(self._start, 0)

    def finish(self) -> Iterator[Element]:
        """The last element, if only the end of the file ends it."""
        if self._start >= 0 and not (self._depth or self._in_string):
            yield self._taken(self._at)

    @property
    def is_open(self) -> bool:
        """Whether the bytes so far end inside an element or an array."""
        return self._start >= 0 or self._in_array

    def _objects(self) -> Iterator[Element]:
        """The next elements that are whole shallow objects."""
        buffer = self._buffer
        while True:
            self._at = _end(_BETWEEN, buffer, self._at)
            found = _OBJECT.match(buffer, self._at)
            if found is None:
                return
            yield Element(self._offset + self._at, bytes(found[0]), True)
            self._at = found.end()

    def _begin(self) -> None:
        """Begin an element, or enter or leave an array."""
        if self._at == len(self._buffer):
            return
        first = self._buffer[self._at]
        if first == _ARRAY and not self._in_array:
            self._in_array = True
        elif first == _END_OF_ARRAY and self._in_array:
            self._in_array = False
        else:
            self._start = self._at
            self._depth = int(first in _OPENING)
            self._in_string = first == _QUOTE
        self._at += 1

    def _reaches_end(self) -> bool:
        """Continue scanning; return whether the element ends there."""
        buffer, size = self._buffer, len(self._buffer)
        while True:
            is_bare = not (self._in_string or self._depth)
            inside = _IN_STRING if self._in_string else _BARE if is_bare else _INSIDE
            self._at = _end(inside, buffer, self._at)
            if self._at == size or (self._in_string and buffer[self._at] != _QUOTE):  # half an escape
                return False
            if is_bare:
                return True
            self._at += 1
            self._pass(buffer[self._at - 1])
            if not (self._in_string or self._depth):
                return True

    def _pass(self, found: int) -> None:
        if found == _QUOTE:
            self._in_string = not self._in_string
        else:
            self._depth += 1 if found in _OPENING else -1

    def _taken(self, end: int) -> Element:
        start, self._start = self._start, -1
        return Element(self._offset + start, bytes(self._buffer[start:end]), True)

    def _parts(self) -> Iterator[Element]:
        """Yield the held part of an element that is already too long."""
        if self._start >= 0 and self._at - self._start > self._max_bytes:
            whole = (self._at - self._start) // self._max_bytes * self._max_bytes
            part = bytes(self._buffer[self._start : self._start + whole])
            yield Element(self._offset + self._start, part, False)
            self._start += whole


def _end(pattern: re.Pattern[bytes], buffer: bytearray, start: int) -> int:
    """The end of a match of a pattern that always matches."""
    match = pattern.match(buffer, start)
    return match.end() if match else start


_MAX_HELD = 16_384  # elements of a block, each of which is an object in memory
_LINE_FEEDS_ARE_SPACE = re.compile(rb'(?:[^"]++|"(?:[^"\\\n]++|\\[^\n]|)*+"|)*+')


def split_elements(pieces: Iterable[bytes], receiver: Receiver) -> LineCounts:
    """Pass on every element of a file, each as a line. Holds at most one piece, one block and one element of the file.

    The line feeds of an element become spaces, or carriage returns if one is inside a string, which makes it invalid
    JSON. A reject's line number is the number of its element.

    Raises:
        FileError: `too_large`: more decoded bytes than `max_decompressed_bytes`; `unreadable`: the file ends inside an
            element or an array; or an error raised by the judge.
    """
    return _ElementSplitting(receiver).run(pieces)


class _ElementSplitting(Splitting):
    format = "json"

    def __init__(self, receiver: Receiver) -> None:
        super().__init__(receiver)
        self._scanner = ElementScanner(receiver.limits.max_line_bytes)
        self._over_long = False
        self._block: list[Element] = []
        self._held_bytes = 0

    def _split(self, piece: bytes) -> None:
        for element in self._scanner.feed(piece):
            self._add(element)

    def _finish(self) -> None:
        for element in self._scanner.finish():
            self._add(element)
        self._pass_on()
        if self._scanner.is_open:
            raise FileError("unreadable", f"it ends inside an array or element after element {self.lines}: truncated")

    def _add(self, element: Element) -> None:
        if element.ends and not self._over_long and len(element.data) <= self._limits.max_line_bytes:
            self._block.append(element)
            self._held_bytes += len(element.data) + 1
            if self._held_bytes >= self._receiver.block_bytes or len(self._block) == _MAX_HELD:
                self._pass_on()
            return
        self._pass_on()
        if not self._over_long:
            self.lines += 1
            self.rejects["line_too_long"] += 1
        size = self._limits.max_line_bytes
        for at in range(0, len(element.data), size):
            raw = element.data[at : at + size].replace(b"\n", b"\r")
            self._reject(self.lines, element.offset + at, "line_too_long", raw)
        self._over_long = not element.ends

    def _pass_on(self) -> None:
        block, self._block, self._held_bytes = self._block, [], 0
        if not block:
            return
        judged = self._receiver.judge(b"".join(_line(element.data) for element in block))
        for line, _, reason, raw in judged.refused:
            self.rejects[reason] += 1
            self._reject(self.lines + line + 1, block[line].offset, reason, raw)
        self.lines += len(block)


def _line(element: bytes) -> bytes:
    """The element on one line, which is valid JSON exactly if the element is."""
    if b"\n" in element:
        element = element.replace(b"\n", b" " if _LINE_FEEDS_ARE_SPACE.fullmatch(element) else b"\r")
    return element + b"\n"
