"""Finds the records of JSON documents, passes them to a judge, each as one line, and counts them."""

import json
import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import NamedTuple, Protocol

import orjson

from compactor.core.documents.records import FileStatus
from compactor.core.errors import FileError
from compactor.core.inputs.record_place import DOCUMENTS, RecordPlace
from compactor.ndjson.inspection import refusals
from compactor.ndjson.line_splitting import Splitting
from compactor.ndjson.lines import LineCounts, Receiver, on_one_line, with_fields


class ElementBlock(Protocol):
    """Elements that follow each other.

    Attributes:
        lines: The elements with the fields carried into them, each on one line with its line feed.
    """

    @property
    def lines(self) -> bytes: ...

    def __len__(self) -> int: ...

    def element(self, number: int) -> tuple[int, bytes, bytes]:
        """The offset, the exact bytes, and the carried fields of an element, by its number in the block, from 0."""


class Refusal(NamedTuple):
    """An element that is refused before any judge sees it, or a part of one.

    Attributes:
        begins: Whether this is its first part.
    """

    offset: int
    reason: str
    raw: bytes
    fields: bytes
    begins: bool


class Fault(NamedTuple):
    """Why a file cannot be read on.

    Attributes:
        kind: A key of `_FAULTS`.
        key: The key concerned, if any.
    """

    kind: str
    offset: int
    key: str


class Scanner(Protocol):
    """Finds elements. Every byte of a file is fed once."""

    @property
    def is_open(self) -> bool:
        """Whether the bytes so far end inside an element, an array or a document."""

    def feed(self, piece: bytes) -> Iterator[ElementBlock | Refusal | Fault]:
        """What this piece completes, in order. Nothing follows a fault."""

    def finish(self) -> Iterator[ElementBlock | Refusal | Fault]:
        """The rest at the end of the file."""


NewScanner = Callable[[RecordPlace, int, int], Scanner]
"""Makes a scanner. Arguments: where the records are; the length in bytes beyond which an element comes in parts, all of
which except the last are multiples of it; and the length of a block."""

MAX_HELD = 16_384
"""The most elements of a block, each of which is an object in memory."""

_FAULTS = {
    "malformed": (FileStatus.UNREADABLE, "no JSON on the path to the records"),
    "late": (
        FileStatus.NOT_NDJSON,
        "the key {key!r} comes after records that it belongs to; keep carries earlier keys",
    ),
    "kept": (
        FileStatus.NOT_NDJSON,
        "the value of {key!r} is invalid, or longer than max_line_bytes; it cannot be kept",
    ),
    "key": (FileStatus.NOT_NDJSON, "a key on the path to the records is longer than max_line_bytes"),
    "no_records": (FileStatus.NOT_NDJSON, "a document longer than max_line_bytes has no array of records there"),
}


def _file_error(fault: Fault, path: str) -> FileError:
    """The error of a file with a fault."""
    status, words = _FAULTS[fault.kind]
    where = f"byte {fault.offset:,}, records at {path}"
    return FileError(status, f"{where}: {words.format(key=fault.key)}")


_STRUCTURE = re.compile(rb'[^"{}\[\]]*+')
_BETWEEN = re.compile(rb"[ \t\r\n,]*+")
_SPACE = re.compile(rb"[ \t\r\n]*+")
_IN_STRING = re.compile(rb'(?:[^"\\]++|\\.|)*+', re.DOTALL)
_BARE = re.compile(rb'[^,\[\]{}" \t\r\n]*+')

_OPENING, _QUOTE, _COMMA, _ESCAPE = frozenset(b"{["), *b'",\\'
_OBJECT, _END_OF_OBJECT, _ARRAY, _END_OF_ARRAY = b"{}[]"
_NO_VALUE = frozenset(b",:]}")

_JSON = json.JSONDecoder(parse_int=str, parse_float=str, strict=False)


@dataclass(frozen=True, slots=True)
class _Block:
    lines: bytes
    elements: list[tuple[int, bytes, bytes]]

    def __len__(self) -> int:
        return len(self.elements)

    def element(self, number: int) -> tuple[int, bytes, bytes]:
        return self.elements[number]


@dataclass(slots=True)
class _Frame:
    """An open object or array on the path.

    Attributes:
        level: The number of steps that lead into it.
        fields_before: The length of the carried fields before it.
        next: What must come next in an object: `first` is a key or the end.
        has_records: Whether an element was found in it.
        has_values: Whether an array has any.
    """

    is_object: bool
    level: int
    fields_before: int
    next: str = "first"
    has_records: bool = False
    has_values: bool = False


@dataclass(slots=True)
class ElementScanner:
    """A `Scanner` in Python. The native engine has the same in Rust.

    Elements and top-level values may be separated by any commas and white space. Both kinds of brackets count alike
    inside a value, because the judge of the elements parses it.

    `_buffer` has the bytes still needed, starting at `_offset` and scanned up to `_at`. `_start` is where the current
    value, or the rest of it, starts there; -1 between values. `_document` is where the current document starts in the
    file, until its records are found; -1 then. `_text` is a copy of the buffer from `_text_at` on, for Python's parser.
    """

    place: RecordPlace
    max_bytes: int
    block_bytes: int
    _steps: tuple[str | None, ...] = ()
    _buffer: bytearray = field(default_factory=bytearray)
    _offset: int = 0
    _at: int = 0
    _start: int = -1
    _value: str = ""  # what the current value is: record, aside, key, kept, or other
    _depth: int = 0
    _in_string: bool = False
    _is_over_long: bool = False
    _in_array: bool = False
    _frames: list[_Frame] = field(default_factory=list)
    _document: int = -1
    _key: str | None = None
    _fields: bytes = b""
    _found: list[ElementBlock | Refusal | Fault] = field(default_factory=list)
    _held: list[tuple[int, bytes, bytes]] = field(default_factory=list)
    _lines: list[bytes] = field(default_factory=list)
    _held_bytes: int = 0
    _text: str | None = None
    _text_at: int = 0

    def __post_init__(self) -> None:
        self._steps = self.place.steps

    def feed(self, piece: bytes) -> Iterator[ElementBlock | Refusal | Fault]:
        """See `Scanner`."""
        self._buffer += piece
        self._text = None
        while self._at < len(self._buffer):
            if self._start < 0:
                self._pass_between()
            elif self._reaches_end():
                self._end_value()
            else:
                break
            yield from self._taken()
        self._part()
        yield from self._taken()
        self._forget()

    def finish(self) -> Iterator[ElementBlock | Refusal | Fault]:
        """See `Scanner`."""
        if self._start >= 0 and not (self._depth or self._in_string or self._frames):
            self._end_value()
        self._pass_on()
        yield from self._taken()

    @property
    def is_open(self) -> bool:
        """See `Scanner`."""
        return self._start >= 0 or self._in_array or bool(self._frames)

    def _taken(self) -> list[ElementBlock | Refusal | Fault]:
        found, self._found = self._found, []
        return found

    def _pass_between(self) -> None:
        """Go on to the next value, or into or out of the next object or array on the path."""
        frame = self._frames[-1] if self._frames else None
        if frame is not None and frame.is_object:
            self._pass_in_object(frame)
            return
        level = 0 if frame is None else frame.level
        if level == len(self._steps):
            self._take_objects()
        self._at = _end(_BETWEEN, self._buffer, self._at)
        if self._at == len(self._buffer):
            return
        first = self._buffer[self._at]
        if first == _END_OF_ARRAY and frame is not None:
            self._leave(frame)
        elif first == _END_OF_ARRAY and self._in_array:
            self._in_array = False
            self._at += 1
        elif first == _ARRAY and frame is None and not self._in_array:
            self._in_array = True
            self._at += 1
        else:
            if frame is None:
                self._document = self._offset + self._at
            else:
                frame.has_values = True
            self._begin_on_path(level)

    def _pass_in_object(self, frame: _Frame) -> None:
        self._at = _end(_SPACE, self._buffer, self._at)
        if self._at == len(self._buffer):
            return
        first = self._buffer[self._at]
        match frame.next:
            case "first" | "comma" if first == _END_OF_OBJECT:
                self._leave(frame)
            case "first" | "key" if first == _QUOTE:
                self._begin("key")
            case "colon" if first == ord(":"):
                frame.next = "value"
                self._at += 1
            case "value" if first not in _NO_VALUE:
                self._begin_in_object(frame)
            case "comma" if first == _COMMA:
                frame.next = "key"
                self._at += 1
            case _:
                self._fail("malformed", self._at)

    def _begin_in_object(self, frame: _Frame) -> None:
        if self._key is not None and self._key == self._steps[frame.level - 1]:
            self._begin_on_path(frame.level)
        elif self._key is None or self._key not in self.place.keep:
            self._begin("other")
        elif frame.has_records:
            self._fail("late", self._at)
        else:
            self._begin("kept")

    def _begin_on_path(self, level: int) -> None:
        """Begin an element, or enter an object or array."""
        if level == len(self._steps):
            self._begin("record")
            return
        is_object = self._steps[level] is not None
        if self._buffer[self._at] != (_OBJECT if is_object else _ARRAY):
            self._begin("aside")
            return
        self._at += 1
        self._frames.append(_Frame(is_object, level + 1, len(self._fields)))
        if not is_object and level + 1 == len(self._steps):
            self._document = -1

    def _begin(self, value: str) -> None:
        first = self._buffer[self._at]
        self._start, self._value = self._at, value
        self._depth, self._in_string = int(first in _OPENING), first == _QUOTE
        end = self._parsed_end(self._at) if first in _OPENING else -1
        if end < 0:
            self._at += 1
        else:
            self._at, self._depth = end, 0
            self._end_value()

    def _parsed_end(self, start: int) -> int:
        """The end of a value, found by Python's parser, faster than bracket by bracket; -1 if it fails."""
        if self._text is None:
            self._text, self._text_at = self._buffer[self._at :].decode("latin-1"), self._at
        try:
            return self._text_at + _JSON.raw_decode(self._text, start - self._text_at)[1]
        except (ValueError, RecursionError):
            return -1

    def _take_objects(self) -> None:
        """Take the next elements that are whole objects."""
        buffer, offset = self._buffer, self._offset
        while True:
            start = self._at = _end(_BETWEEN, buffer, self._at)
            if start == len(buffer) or buffer[start] != _OBJECT:
                return
            end = self._parsed_end(start)
            if not 0 <= end - start <= self.max_bytes:
                return
            self._at = end
            self._add(offset + start, bytes(buffer[start:end]))
            if self._found:
                return

    def _reaches_end(self) -> bool:
        """Continue scanning; return whether the value ends there."""
        buffer, size = self._buffer, len(self._buffer)
        while True:
            is_bare = not (self._in_string or self._depth)
            inside = _IN_STRING if self._in_string else _BARE if is_bare else _STRUCTURE
            self._at = _end(inside, buffer, self._at)
            if self._at == size or (self._in_string and buffer[self._at] == _ESCAPE):  # half an escape
                return False
            if is_bare:
                return True
            found = buffer[self._at]
            self._at += 1
            if found == _QUOTE:
                self._in_string = not self._in_string
            else:
                self._depth += 1 if found in _OPENING else -1
            if not (self._in_string or self._depth):
                return True

    def _end_value(self) -> None:
        start, self._start = self._start, -1
        value, offset = self._value, self._offset + start
        if value in {"record", "aside"}:
            self._end_element(offset, bytes(self._buffer[start : self._at]))
        if not self._frames:
            self._document = -1
            return
        frame = self._frames[-1]
        if not frame.is_object:
            return
        frame.next = "colon" if value == "key" else "comma"
        if value in {"key", "kept"} and self._at - start > max(self.max_bytes, len(b"null")):
            self._fail(value, start)
        elif value == "key":
            self._key = _decoded(self._buffer[start + 1 : self._at - 1])
        elif value == "kept":
            self._keep(self._buffer[start : self._at], start)

    def _end_element(self, offset: int, raw: bytes) -> None:
        if self._value == "aside":
            if not self._frames or self._is_over_long or raw != b"null":  # null is as good as no array
                self._refuse("no_records", offset, raw, is_last=True)
        elif self._is_over_long or len(raw) > self.max_bytes:
            self._refuse("line_too_long", offset, raw, is_last=True)
        else:
            self._add(offset, raw)

    def _add(self, offset: int, raw: bytes) -> None:
        """Add an element to the block."""
        if self._frames:
            frame = self._frames[-1]
            frame.has_records = frame.has_values = True
        line, fields = on_one_line(raw), self._fields
        if fields:
            line = with_fields(line, fields[1:])
        self._held.append((offset, raw, fields[1:]))
        self._lines.append(line)
        self._held_bytes += len(line) + 1
        if self._held_bytes >= self.block_bytes or len(self._held) == MAX_HELD:
            self._pass_on()

    def _refuse(self, reason: str, offset: int, raw: bytes, *, is_last: bool) -> None:
        self._pass_on()
        self._document = -1
        if self._frames:
            self._frames[-1].has_records = True
        for at in range(0, len(raw), self.max_bytes):
            part = raw[at : at + self.max_bytes]
            self._found.append(Refusal(offset + at, reason, part, self._fields[1:], begins=not self._is_over_long))
            self._is_over_long = True
        self._is_over_long = not is_last

    def _pass_on(self) -> None:
        if self._held:
            self._lines.append(b"")
            self._found.append(_Block(b"\n".join(self._lines), self._held))
            self._held, self._lines, self._held_bytes = [], [], 0

    def _keep(self, value: bytearray, start: int) -> None:
        key = orjson.dumps(self._key)
        text = on_one_line(bytes(value))
        if next(refusals([b"{%s:%s}" % (key, text)]), None) is not None:
            self._fail("kept", start)
        self._fields += b",%s:%s" % (key, text)

    def _leave(self, frame: _Frame) -> None:
        """Leave the innermost object or array."""
        self._frames.pop()
        self._at += 1
        self._fields = self._fields[: frame.fields_before]
        if not (frame.is_object or frame.has_values):
            self._document = -1  # an empty array is no reason to refuse its document
        if self._frames:
            outer = self._frames[-1]
            outer.has_records |= frame.has_records
            outer.next = "comma"
        elif self._document >= 0:
            start = self._document - self._offset
            if start < 0 or self._at - start > self.max_bytes:
                self._fail("no_records", start)
            else:
                self._refuse("no_records", self._document, bytes(self._buffer[start : self._at]), is_last=True)

    def _part(self) -> None:
        """Pass on the held part of an element that is already too long."""
        if self._start < 0 or self._at - self._start <= max(self.max_bytes, len(b"null")):
            return
        if self._value in {"key", "kept"}:
            self._fail(self._value, self._start)
        elif self._value != "other":
            whole = (self._at - self._start) // self.max_bytes * self.max_bytes
            raw = bytes(self._buffer[self._start : self._start + whole])
            reason = "no_records" if self._value == "aside" else "line_too_long"
            self._refuse(reason, self._offset + self._start, raw, is_last=False)
            self._start += whole

    def _forget(self) -> None:
        """Forget bytes that are no longer needed."""
        if self._value == "other" and self._start >= 0:
            self._start = self._at
        done = self._at if self._start < 0 else self._start
        if self._frames and 0 <= self._document - self._offset < done:
            # A document without records is a reject, if it is no longer than a line may be.
            kept_from = self._document - self._offset
            if self._at - kept_from <= self.max_bytes:
                done = kept_from
        del self._buffer[:done]
        self._offset += done
        self._at -= done
        self._start = max(self._start - done, -1)

    def _fail(self, kind: str, at: int) -> None:
        self._pass_on()
        self._found.append(Fault(kind, self._offset + at, (self._key or "") if kind in {"late", "kept"} else ""))
        self._at = len(self._buffer)


def _decoded(key: bytearray) -> str | None:
    """The text of a key; None if it is not text."""
    try:
        return str(orjson.loads(b'"%s"' % key)) if _ESCAPE in key else key.decode()
    except ValueError:
        return None


def _end(pattern: re.Pattern[bytes], buffer: bytearray, start: int) -> int:
    """The end of a match of a pattern that always matches."""
    match = pattern.match(buffer, start)
    return match.end() if match else start


@dataclass(frozen=True, slots=True)
class ElementSplitter:
    """A `compactor.ndjson.lines.Splitter` for the elements of JSON arrays, or for documents.

    Attributes:
        place: Where the records are.
        new_scanner: Makes what finds them.
    """

    place: RecordPlace = DOCUMENTS
    new_scanner: NewScanner = ElementScanner

    def __call__(self, pieces: Iterable[bytes], receiver: Receiver) -> LineCounts:
        """Pass on every element of a file, each as a line. Holds at most one piece, one block and one element.

        The line feeds of an element become spaces, or carriage returns if one is inside a string, which makes it
        invalid JSON. A reject has the exact bytes, and the number of its element. What has no element where it should
        is refused as `no_records`, and counts as one.

        Raises:
            FileError: `too_large`: more bytes than `max_decompressed_bytes`, decoded or passed on; `unreadable`: the
                file ends inside an element or an array; another fault of what surrounds the elements; or an error
                raised by the judge.
        """
        return _ElementSplitting(self, receiver).run(pieces)


class _ElementSplitting(Splitting):
    def __init__(self, splitter: ElementSplitter, receiver: Receiver) -> None:
        super().__init__(receiver)
        self.place = place = splitter.place
        self._path = place.path
        self._scanner = splitter.new_scanner(place, receiver.limits.max_line_bytes, receiver.block_bytes)
        self._passed_bytes = 0

    def _split(self, piece: bytes) -> None:
        self._take(self._scanner.feed(piece))

    def _finish(self) -> None:
        self._take(self._scanner.finish())
        if self._scanner.is_open:
            raise FileError("unreadable", f"it ends inside an array or element after element {self.lines}: truncated")

    def _take(self, found: Iterator[ElementBlock | Refusal | Fault]) -> None:
        for each in found:
            if isinstance(each, Fault):
                raise _file_error(each._replace(offset=self._bom_bytes + each.offset), self._path)
            if isinstance(each, Refusal):
                if each.begins:
                    self.lines += 1
                    self.rejects[each.reason] += 1
                self._reject(self.lines, each.offset, each.reason, each.raw, each.fields)
            else:
                self._judge(each)

    def _judge(self, block: ElementBlock) -> None:
        lines = block.lines
        self._passed_bytes += len(lines)
        limit = self._limits.max_decompressed_bytes
        if self._passed_bytes > limit + len(block):
            found = f"at least {self._passed_bytes} bytes with what is carried into its records"
            raise FileError(FileStatus.TOO_LARGE, f"{found}; expected at most max_decompressed_bytes = {limit}")
        for number, _, reason, _ in self._receiver.judge(lines).refused:
            self.rejects[reason] += 1
            offset, raw, fields = block.element(number)
            self._reject(self.lines + number + 1, offset, reason, raw, fields)
        self.lines += len(block)
