"""Counts a column's values by shape, in bounded memory. No I/O."""

import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal, NamedTuple

from compactor.core.text.json_numbers import significant
from compactor.schema.column_types import ColumnType, unwrapped, value_of

Shape = Literal[
    "long",
    "integer",
    "number",
    "boolean",
    "date",
    "timestamp",
    "distant_timestamp",
    "nanoseconds",
    "local_time",
    "text",
    "object_id",
    "nested",
]
"""The form of a value. `integer` exceeds 64 bits; `number` has a fraction, an exponent, or is -0. `distant_timestamp`
is beyond the years of a `timestamp_ns`; `nanoseconds` has digits beyond microseconds; `local_time` has no zone, so it
is not an instant."""

NUMBERS: tuple[Shape, ...] = ("long", "integer", "number")
INSTANTS: tuple[Shape, ...] = ("timestamp", "distant_timestamp", "nanoseconds")
TIMES: tuple[Shape, ...] = (*INSTANTS, "local_time")

_LONG, _DATE, _TIMESTAMP = ColumnType("long"), ColumnType("date"), ColumnType("timestamp")
_OBJECT_ID = ColumnType("objectid")
_LOCAL_TIME, _NANOSECONDS = ColumnType("timestamp_ntz"), ColumnType("timestamp_ns")
_BEGINS_A_TIME = re.compile(r"[0-9]{4}-|[0-9]{1,2}[ /][A-Z]|[A-Z][a-z]{2}, [0-9]")
_INTEGER = re.compile(r"0|-?[1-9][0-9]*")
_SURELY_DOUBLE = re.compile(r"-?[0-9.]{1,15}")  # a double preserves 15 digits
_TIME_PARTS = re.compile(r".{10}(?P<separator>.).{5}(?P<seconds>:..)?(?P<fraction>\.[0-9]+)?(?P<offset>Z|.*)")
_DIGIT = re.compile(r"[0-9]")
_FORMAT_FRACTION = len(".sssssssss")  # further digits are zeros


def shape_of(source: str, text: str) -> Shape:
    """The shape of a non-null value.

    A JSON string is never a number or a boolean: `"007"` and `"12345"` may be codes or numbers.
    """
    if source == "nested":
        return _shape_of_wrapped(text)
    if source == "string":
        return _shape_of_text(text)
    if text in {"true", "false"}:
        return "boolean"
    if _INTEGER.fullmatch(text):
        return "long" if value_of(text, _LONG) is not None else "integer"
    return "number"


def _shape_of_wrapped(text: str) -> Shape:
    if value_of(text, _OBJECT_ID) is not None:
        return "object_id"
    inner, is_instant = unwrapped(text) or ("", False)
    if is_instant and value_of(text, _TIMESTAMP) is not None:
        return "timestamp"
    return shape_of("word", inner) if not is_instant and significant(inner) is not None else "nested"


def _shape_of_text(text: str) -> Shape:
    if not _BEGINS_A_TIME.match(text):
        return "text"
    if value_of(text, _DATE) is not None:
        return "date"
    is_to_nanosecond = value_of(text, _NANOSECONDS) is not None
    if value_of(text, _TIMESTAMP) is not None:
        return "timestamp" if is_to_nanosecond else "distant_timestamp"
    if is_to_nanosecond:
        return "nanoseconds"
    return "local_time" if value_of(text, _LOCAL_TIME) is not None else "text"


def is_exact_double(text: str) -> bool:
    """Whether the shortest spelling of the nearest double is this number, so that no digit is lost."""
    if _SURELY_DOUBLE.fullmatch(text):
        return True
    parts = significant(text)
    return parts is not None and parts == significant(repr(float(text)))


def time_format(text: str) -> str:
    """A time's format, such as `yyyy-mm-ddThh:mm:ss.sssZ`."""
    if not text[:4].isdigit():
        return _format_with_month(text)
    parts = _TIME_PARTS.fullmatch(text)
    if parts is None:  # never: every time has these parts
        return text
    seconds = ":ss" if parts["seconds"] else ""
    fraction = f".{'s' * (len(parts['fraction']) - 1)}" if parts["fraction"] else ""
    offset = parts["offset"] if parts["offset"] in {"Z", ""} else _offset_format(parts["offset"])
    return f"yyyy-mm-dd{parts['separator']}hh:mm{seconds}{fraction[:_FORMAT_FRACTION]}{offset}"


def _format_with_month(text: str) -> str:
    if "/" in text:
        return "dd/Mon/yyyy:hh:mm:ss ±hhmm"
    seconds = ":ss" if text.count(":") > 1 else ""
    zone = text.rpartition(" ")[2]
    return f"{'Ddd, ' if ',' in text else ''}dd Mon yyyy hh:mm{seconds} {zone if zone.isalpha() else '±hhmm'}"


def _offset_format(offset: str) -> str:
    return "±" + _DIGIT.sub("h", offset[1:3]) + _DIGIT.sub("m", offset[3:])


SHOWN_CHARACTERS = 60
"""How much of a value is kept as an example."""


class Place(NamedTuple):
    """The location of a value. Places sort in reading order; lines count from 1."""

    file: int
    line: int


class Example(NamedTuple):
    """A value as written in the line; for a string its decoded text. Long values are truncated."""

    place: Place
    text: str
    is_string: bool


@dataclass(slots=True)
class Digits:
    """The digits needed to store a column's numbers exactly.

    Attributes:
        whole: The most digits before the decimal point.
        scale: The most digits after it.
        beyond_double: How many numbers a double would change.
        beyond_decimal: How many a decimal of any precision would change: -0, and those with huge exponents.
    """

    whole: int = 0
    scale: int = 0
    beyond_double: int = 0
    first_beyond_double: Example | None = None
    beyond_decimal: int = 0

    def add(self, example: Example, text: str) -> None:
        parts = significant(text)
        if parts is None or (parts[0] and not parts[1]):
            self.beyond_decimal += 1
        else:
            _, digits, shift = parts
            self.whole = max(self.whole, len(digits) + shift)
            self.scale = max(self.scale, -shift)
        if not is_exact_double(text):
            self.beyond_double += 1
            self.first_beyond_double = self.first_beyond_double or example


@dataclass(slots=True)
class ColumnProfile:
    """A key's values.

    Attributes:
        shapes: Number of non-null values by shape.
        examples: The first value with each shape.
        formats: Number of times by format.
        arrays: Number of arrays among the values whose parts were added.
        parts: The values of objects by key; with None the elements of arrays, or the values of further keys. None if no
            parts were added.
    """

    nulls: int = 0
    shapes: Counter[Shape] = field(default_factory=Counter)
    examples: dict[Shape, Example] = field(default_factory=dict)
    formats: Counter[str] = field(default_factory=Counter)
    digits: Digits = field(default_factory=Digits)
    arrays: int = 0
    parts: "dict[str | None, ColumnProfile] | None" = None

    @property
    def values(self) -> int:
        """Number of non-null values."""
        return self.shapes.total()

    def add(self, place: Place, source: str, text: str) -> None:
        """Add a value from `compactor.ndjson.rawjson.values`."""
        if source == "null":
            self.nulls += 1
            return
        shape = shape_of(source, text)
        self.shapes[shape] += 1
        example = Example(place, text[:SHOWN_CHARACTERS], source == "string")
        self.examples.setdefault(shape, example)
        text, is_instant = (unwrapped(text) if source == "nested" else None) or (text, False)
        if shape in NUMBERS:
            self.digits.add(example, text)
        elif shape in TIMES:
            self.formats["$date" if is_instant else time_format(text)] += 1


@dataclass(slots=True)
class TableProfile:
    """The columns in some lines, added in the order of their places.

    Attributes:
        max_keys: The most keys to count, to limit memory.
        records: Number of lines that are records.
        other_lines: Number of lines that are neither records nor blank.
        columns: By key, in first-seen order.
        has_further_keys: There were more than `max_keys` keys; the others are not counted.
    """

    max_keys: int
    records: int = 0
    other_lines: int = 0
    columns: dict[str, ColumnProfile] = field(default_factory=dict)
    has_further_keys: bool = False

    def add(self, place: Place, values: Mapping[str, tuple[str, str]]) -> None:
        """Add a record from `compactor.ndjson.rawjson.values`."""
        self.records += 1
        for key, (source, text) in values.items():
            column = self.columns.get(key)
            if column is None:
                if len(self.columns) >= self.max_keys:
                    self.has_further_keys = True
                    continue
                column = self.columns[key] = ColumnProfile()
            column.add(place, source, text)
