"""Recognises files that are not NDJSON by their beginning. When in doubt, a file is NDJSON with bad lines."""

import csv
import re
from dataclasses import dataclass, field
from itertools import islice

import orjson

from compactor.core.inputs.record_place import KNOWN_PLACES
from compactor.core.rules.next_steps import READ_AS_JSON
from compactor.ndjson.inspection import BLANK, MAX_DEPTH, refusals
from compactor.ndjson.kinds.binary_kinds import Kind, archive, binary_kind
from compactor.ndjson.line_splitting import BOM

MAX_TOKENS = 8192
"""How many strings, numbers, brackets and commas to examine. The rest counts as cut off."""

_TOKEN = re.compile(rb'"(?:[^"\\]++|\\.|)*+"?+|[\[\]{},]|[^ \t\r\n"\[\]{},]++', re.DOTALL)
_CLOSING = {b"{": b"}", b"[": b"]"}
_ARRAY = [b"]"]
_RECOGNISED_ARRAYS = frozenset({"Records", "logEvents", "resourceLogs"})


@dataclass(slots=True)
class JsonValues:
    """Arrays and objects, separated only by white space, and by commas between array elements.

    Attributes:
        closed: Start and end of each whole value.
        open_at: Start of the unfinished last value; None if the last value is whole.
        valid: How many whole objects, and whole arrays and objects in an array, are valid JSON.
    """

    closed: list[tuple[int, int]] = field(default_factory=list)
    open_at: int | None = None
    valid: int = 0
    invalid: int = 0
    end: int = 0


def json_values(data: bytes) -> JsonValues | None:
    """Find the values in some bytes; the last may be cut off anywhere. None if the bytes hold anything else.

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
        closing: The closing bracket of each open array and object, innermost last.
    """

    def __init__(self, data: bytes) -> None:
        self.found = JsonValues()
        self.closing: list[bytes] = []
        self.start = 0
        self.checked = 0
        self._data = data
        self._element = 0  # start of the last element of a top-level array
        self._has_element = False  # whether a comma must come next in such an array

    def take(self, token: re.Match[bytes]) -> bool:
        """Process a token; return False if it is invalid at this point."""
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
        """Start an element of an array; return False if no comma precedes it."""
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


MIN_LINES = 3
"""How many lines of one unfinished document prove it. Fewer could be a bad line and the good one after it."""

JSON_ARRAY = Kind("one JSON array", READ_AS_JSON, is_json=True)
PRETTY_JSON = Kind("pretty-printed JSON", READ_AS_JSON, is_json=True)
JSON_ARRAYS = Kind("several JSON arrays", READ_AS_JSON, is_json=True)
JSON_IN_A_ROW = Kind("JSON documents without line feeds between them", READ_AS_JSON, is_json=True)
HTML = Kind("an HTML page", "check where it was downloaded from")
XML = Kind("XML", "convert it to NDJSON")
CSV = Kind("CSV", "convert it to NDJSON")
TSV = Kind("TSV", "convert it to NDJSON")

_FIRST_LINE = re.compile(rb"(?:\xef\xbb\xbf)?[ \t\r\n]*+([^\n]*+)")
_ARRAY_OF_OBJECTS = re.compile(rb"\[[ \t\r\n]*+[{\]]")
_HTML = re.compile(
    rb"\s*+(?:<\?xml[^>]*+>\s*+|<!--.*?-->\s*+|)*+<(?:!doctype\s++html|html|head|body)[\s>]", re.IGNORECASE | re.DOTALL
)
_XML = re.compile(rb"\s*+(?:<\?xml\s|<!DOCTYPE\s|<[A-Za-z_][\w:.-]*+(?:\s++[\w:.-]++\s*+=|\s*+/?+>))")
_DELIMITERS = {",": CSV, ";": CSV, "|": CSV, "\t": TSV}
_MAX_ROWS = 100


@dataclass(frozen=True, slots=True)
class _Lines:
    all: list[bytes]
    good: int


def recognise(head: bytes, *, is_whole: bool) -> Kind | None:
    """The kind of a file if it is not NDJSON, else None.

    A file with records is of a different kind only if it is an archive, if it is one JSON array, or if most of its
    lines belong to multi-line documents.

    Args:
        head: The first bytes of the decoded file.
        is_whole: Whether this is the whole file.
    """
    text = head.removeprefix(BOM)
    first = _first_line(text)
    if not first or begins_with_record(text):
        return None
    if found := archive(head):
        return found
    lines = _lines(text, is_whole=is_whole)
    if first[:1] in b"[{" and (found := _json_kind(text, lines)):
        return found
    if lines.good:
        return None
    return binary_kind(head) or _text_kind(text, lines, is_whole=is_whole)


def known_path(head: bytes) -> str:
    """The path to the records of CloudTrail, of a CloudWatch Logs subscription or of OTLP logs; empty if it is neither.

    Args:
        head: The first bytes of the decoded file, of whose first document the top-level keys are examined.
    """
    depth, key = 0, b""
    for token in islice(_TOKEN.finditer(head.removeprefix(BOM)), MAX_TOKENS):
        text = token[0]
        if text in _CLOSING:
            name = key[1:-1].decode(errors="replace")
            if (depth, text) == (1, b"[") and name in _RECOGNISED_ARRAYS:
                return KNOWN_PLACES[name]
            depth += 1
        elif text in {b"}", b"]"}:
            depth -= 1
        elif depth == 1 and text != b":":
            key = text
        if depth < 1:
            break
    return ""


def begins_with_record(head: bytes) -> bool:
    """Whether the first non-blank line is a record."""
    line = _first_line(head)
    if not line.startswith(b"{"):
        return False
    try:
        return isinstance(orjson.loads(line), dict)
    except orjson.JSONDecodeError:
        return False


def _first_line(head: bytes) -> bytes:
    match = _FIRST_LINE.match(head)
    return match[1] if match else b""


def _lines(text: bytes, *, is_whole: bool) -> _Lines:
    lines = text.split(b"\n")
    if not is_whole and len(lines) > 1:
        lines.pop()
    lines = [line for line in lines if line.strip()]
    begun = [line for line in lines if line.lstrip(BLANK).startswith(b"{")]
    return _Lines(lines, len(begun) - sum(1 for _ in refusals(begun)))


def _json_kind(text: bytes, lines: _Lines) -> Kind | None:
    values = json_values(text)
    if values is None:
        return None
    read = text[: values.end]
    if b"\n" not in read and begins_with_record(text.partition(b"\n")[2]):
        return None  # only the first line is not a record
    if len(values.closed) + (values.open_at is not None) == 1:
        return _kind_of_one(read, values)
    return _kind_of_several(text, values, lines)


def _kind_of_several(text: bytes, values: JsonValues, lines: _Lines) -> Kind | None:
    if any(b"\n" in text[start:end] for start, end in values.closed):
        return PRETTY_JSON if lines.good * 2 < len(lines.all) else None
    if lines.good:
        return None
    first = values.closed[0][0]
    if text[first] == ord("{"):
        return JSON_IN_A_ROW
    return JSON_ARRAYS if _ARRAY_OF_OBJECTS.match(text, first) else None


def _kind_of_one(text: bytes, values: JsonValues) -> Kind | None:
    start, end = values.closed[0] if values.closed else (values.open_at or 0, len(text))
    is_array = text[start] == ord("[")
    if b"\n" not in text[start:end]:
        return JSON_ARRAY if is_array and _ARRAY_OF_OBJECTS.match(text, start) else None
    whole_lines = text.split(b"\n")[:-1]
    if not values.closed and sum(bool(line.strip()) for line in whole_lines) < MIN_LINES:
        return None
    return JSON_ARRAY if is_array else PRETTY_JSON


def _text_kind(text: bytes, lines: _Lines, *, is_whole: bool) -> Kind | None:
    if _HTML.match(text):
        return HTML
    if _XML.match(text):
        return XML
    if any(line.lstrip()[:1] in {b"{", b"["} for line in lines.all):
        return None
    return next((kind for each, kind in _DELIMITERS.items() if _is_table(lines.all, each, is_whole=is_whole)), None)


def _is_table(lines: list[bytes], delimiter: str, *, is_whole: bool) -> bool:
    """Whether the lines are at least two rows with the same number of fields, at least two."""
    shown = lines[:_MAX_ROWS]
    try:
        rows = list(csv.reader((line.decode("latin-1") + "\n" for line in shown), delimiter=delimiter))
    except csv.Error:
        return False
    if not (is_whole and len(shown) == len(lines)):
        rows = rows[:-1]  # a quoted field may continue
    return len(rows) > 1 and len(rows[0]) > 1 and len({len(row) for row in rows}) == 1
