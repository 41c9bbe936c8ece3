"""Tells what a JSON value looks like, so that the values of a column can be counted by it. No I/O."""

import re
from typing import Literal

from compactor.core.text.json_numbers import significant
from compactor.schema.column_types import ColumnType, value_of

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
    "nested",
]
"""What a value looks like. `integer` is beyond 64 bits; `number` has a fraction, an exponent, or is -0.
`distant_timestamp` is beyond the years of a `timestamp_ns`; `nanoseconds` has digits beyond microseconds; `local_time`
is a time without a zone, which is no instant."""

NUMBERS: tuple[Shape, ...] = ("long", "integer", "number")
INSTANTS: tuple[Shape, ...] = ("timestamp", "distant_timestamp", "nanoseconds")
TIMES: tuple[Shape, ...] = (*INSTANTS, "local_time")

_LONG, _DATE, _TIMESTAMP = ColumnType("long"), ColumnType("date"), ColumnType("timestamp")
_LOCAL_TIME, _NANOSECONDS = ColumnType("timestamp_ntz"), ColumnType("timestamp_ns")
_YEAR = re.compile(r"[0-9]{4}-")
_INTEGER = re.compile(r"0|-?[1-9][0-9]*")
_SURELY_DOUBLE = re.compile(r"-?[0-9.]{1,15}")  # a double gives back 15 digits
_TIME_PARTS = re.compile(r".{10}(?P<separator>.).{5}(?P<seconds>:..)?(?P<fraction>\.[0-9]+)?(?P<offset>Z|.*)")
_DIGIT = re.compile(r"[0-9]")
_FORMAT_FRACTION = len(".sssssssss")  # further digits are zeros


def shape_of(source: str, text: str) -> Shape:
    """What a value that is not null looks like.

    A JSON string is never a number or a boolean: `"007"` and `"12345"` are codes as well as numbers, and only their
    writer knows.
    """
    if source == "nested":
        return "nested"
    if source == "string":
        return _shape_of_text(text)
    if text in {"true", "false"}:
        return "boolean"
    if _INTEGER.fullmatch(text):
        return "long" if value_of(text, _LONG) is not None else "integer"
    return "number"


def _shape_of_text(text: str) -> Shape:
    if not _YEAR.match(text):
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
    """Whether the shortest spelling of the nearest double is this number, so that nothing of it is lost."""
    if _SURELY_DOUBLE.fullmatch(text):
        return True
    parts = significant(text)
    return parts is not None and parts == significant(repr(float(text)))


def time_format(text: str) -> str:
    """The format of a time, such as `yyyy-mm-ddThh:mm:ss.sssZ`."""
    parts = _TIME_PARTS.fullmatch(text)
    if parts is None:  # never: every time has these parts
        return text
    seconds = ":ss" if parts["seconds"] else ""
    fraction = f".{'s' * (len(parts['fraction']) - 1)}" if parts["fraction"] else ""
    offset = parts["offset"] if parts["offset"] in {"Z", ""} else _offset_format(parts["offset"])
    return f"yyyy-mm-dd{parts['separator']}hh:mm{seconds}{fraction[:_FORMAT_FRACTION]}{offset}"


def _offset_format(offset: str) -> str:
    return "±" + _DIGIT.sub("h", offset[1:3]) + _DIGIT.sub("m", offset[3:])
