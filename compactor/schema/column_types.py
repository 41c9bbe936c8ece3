"""The column types: their spelling, and a text's value in each type. No I/O.

Only a value's text counts, so the JSON string "5" and the number 5 are the same value. The patterns match whole texts,
and have the same meaning in Python's and Java's regular expressions.
"""

import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from functools import lru_cache
from typing import Any, Literal

import orjson

from compactor.core.text.json_numbers import LONG_BITS, MAX_PRECISION, NUMBER, significant

_PlainKind = Literal[
    "string", "long", "double", "decimal", "boolean", "date", "timestamp", "timestamp_ntz", "timestamp_ns", "objectid"
]
Kind = Literal[_PlainKind, "list", "struct", "map"]
"""A `timestamp` is an instant, to the microsecond; a `timestamp_ns` one to the nanosecond, in the years 1677 to 2262. A
`timestamp_ntz` is a time without a zone, to the microsecond. An `objectid` is the id of a document in MongoDB."""

STORED_AS: dict[str, str] = {"objectid": "string"}
"""The types that files have under another name."""

Epoch = Literal["seconds", "milliseconds", "microseconds", "nanoseconds"]
"""The unit of a numeric timestamp: the time since 1970-01-01T00:00:00Z."""

Value = str | int | float | Decimal | bool | date | datetime | tuple[Any, ...]
"""A list's value has its elements, a struct's the value of each of its keys, a map's its keys with their values."""

EXPECTED = (
    "string, long, double, decimal(p,s) with 1 <= p <= 38 and 0 <= s <= p, boolean, date, timestamp, timestamp_ntz, "
    "timestamp_ns or objectid; or list<T>, struct<key: T, ...> or map<string, T> of these, but of no objectid"
)

MAX_LEVELS = 5
"""How deep lists, structs and maps may be nested in a type."""

MAX_PARTS = 500
"""How many parts a type may have: each takes space in every row."""

MAX_SLOTS = 1 << 23
"""How many parts a value may have: a short text such as `[{},{}]` has those of its type for each brace."""

FRACTION_DIGITS: dict[Epoch, int] = {"seconds": 6, "milliseconds": 3, "microseconds": 0, "nanoseconds": -3}
"""The decimal places of a microsecond."""

EPOCHS: dict[str, tuple[Epoch, ...]] = {
    "timestamp": ("seconds", "milliseconds", "microseconds"),
    "timestamp_ns": ("seconds", "milliseconds", "microseconds", "nanoseconds"),
}
"""The units of each type that has them."""

EPOCH_PRECISION = 18
"""Enough digits for any number of seconds in the years 0001 to 9999, down to a microsecond."""

LONG = r"(?:0|-?[1-9][0-9]{0,18})"
"""Integers in their only valid spelling. Some with 19 digits exceed 64 bits."""

DATE = r"(?!0000)[0-9]{4}-[0-9]{2}-[0-9]{2}"
"""A date, which may not exist, for instance 2023-02-30."""

_TO_THE_MINUTE = DATE + r"[T ](?:[01][0-9]|2[0-3]):[0-5][0-9]"
_OFFSET = r"(?:Z|[+-](?:(?:0[0-9]|1[0-7])(?::?[0-5][0-9])?|18(?::?00)?))"
_TO_THE_MICROSECOND = _TO_THE_MINUTE + r":[0-5][0-9](?:\.[0-9]{1,6}0*)?"
TIMESTAMP = _TO_THE_MICROSECOND + _OFFSET
"""A timestamp with seconds, whose date may not exist."""

TIMESTAMP_WITHOUT_SECONDS = _TO_THE_MINUTE + _OFFSET
LOCAL_TIMESTAMP = _TO_THE_MICROSECOND
"""A time without a zone, whose date may not exist."""

MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")

_MONTH_AND_YEAR = rf"{{separator}}({'|'.join(MONTHS)}){{separator}}((?!0000)[0-9]{{{{4}}}})"
_CLOCK = r"(?:[01][0-9]|2[0-3]):[0-5][0-9]"
_FOUR_DIGITS = r"[+-](?:(?:0[0-9]|1[0-7])[0-5][0-9]|1800)"
_IN_HEADERS = (
    rf"(?:(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun), )?([0-9]{{1,2}}){_MONTH_AND_YEAR.format(separator=' ')} "
    rf"({_CLOCK}(?::[0-5][0-9])?) ({_FOUR_DIGITS}|GMT|UTC?)"
)
_IN_COMMON_LOGS = rf"([0-9]{{2}}){_MONTH_AND_YEAR.format(separator='/')}:({_CLOCK}:[0-5][0-9]) ({_FOUR_DIGITS})"
TIMESTAMPS_WITH_MONTHS = (_IN_HEADERS, _IN_COMMON_LOGS)
"""A timestamp as in mail and HTTP headers [RFC 5322, 3.3; RFC 9110, 5.6.7], and in the common log format. The groups
are the day, month, year, time and offset. The date may not exist, and the day of the week is not checked."""

LOCAL_TIMESTAMP_WITHOUT_SECONDS = _TO_THE_MINUTE
MINUTE_CHARACTERS = len("yyyy-mm-ddThh:mm")
"""Where seconds are inserted into a timestamp that lacks them."""

FIRST_MICROSECOND = -62_135_596_800_000_000
"""0001-01-01T00:00:00Z, in microseconds since 1970."""

LAST_MICROSECOND = 253_402_300_799_999_999
"""9999-12-31T23:59:59.999999Z, in microseconds since 1970."""

_SPACE = r"[ \t\r\n]*"
_KEY_AND = rf'\{{{{{_SPACE}"\${{key}}"{_SPACE}:{_SPACE}{{value}}{_SPACE}\}}}}'
_QUOTED = r'"([^"\\]*)"'
WRAPPED_NUMBER = _KEY_AND.format(key="number(?:Int|Long|Double|Decimal)", value=_QUOTED)
"""A number in MongoDB's extended JSON; the group is its text."""

_IN_DATE = rf"(?:{_QUOTED}|([-+.0-9eE]+)|{_KEY_AND.format(key='numberLong', value=_QUOTED)})"
WRAPPED_DATE = _KEY_AND.format(key="date", value=_IN_DATE)
"""An instant in MongoDB's extended JSON. One of the groups is its text, in which a number counts milliseconds."""

OBJECT_ID_DIGITS = "[0-9a-fA-F]{24}"
WRAPPED_OBJECT_ID = _KEY_AND.format(key="oid", value=f'"({OBJECT_ID_DIGITS})"')
"""An id in MongoDB's extended JSON; the group has its digits."""

_NUMBER, _LONG, _DATE = re.compile(NUMBER), re.compile(LONG), re.compile(DATE)
_TIMESTAMP, _TIMESTAMP_WITHOUT_SECONDS = re.compile(TIMESTAMP), re.compile(TIMESTAMP_WITHOUT_SECONDS)
_LOCAL, _LOCAL_WITHOUT_SECONDS = re.compile(LOCAL_TIMESTAMP), re.compile(LOCAL_TIMESTAMP_WITHOUT_SECONDS)
_WITH_MONTHS = tuple(map(re.compile, TIMESTAMPS_WITH_MONTHS))
_NANOSECONDS = re.compile(
    rf"(?P<to_second>{_TO_THE_MINUTE}(?::[0-5][0-9])?)(?:(?<=:[0-9]{{2}}:[0-9]{{2}})\.(?P<fraction>[0-9]{{1,9}})0*)?"
    rf"(?P<offset>{_OFFSET})"
)
_WRAPPED_NUMBER, _WRAPPED_DATE = re.compile(WRAPPED_NUMBER), re.compile(WRAPPED_DATE)
_OBJECT_ID = re.compile(f"({OBJECT_ID_DIGITS})|{WRAPPED_OBJECT_ID}")
_DECIMAL_TYPE = re.compile(r"decimal\(([0-9]{1,2}), ?([0-9]{1,2})\)")
_NESTED: dict[str, Kind] = {"list": "list", "struct": "struct", "map": "map"}
_TYPE = re.compile(r"\s*([a-z_]+(?:\([0-9, ]*\))?)\s*")
_OPENING, _CLOSING, _NEXT = (re.compile(rf"\s*({each})\s*") for each in ("<", ">", "[,>]"))
_STRING_KEYS = re.compile(r"\s*(string)\s*,\s*")
_PLAIN_KEY = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_KEY = re.compile(rf"\s*({_PLAIN_KEY.pattern}|`(?:[^`]|``)+`)\s*:\s*")
_EPOCH_START = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND_DIGITS, _NANOSECOND_DIGITS = 6, 9
_LONG_DIGITS = 19


@dataclass(frozen=True, slots=True)
class ColumnType:
    """A column type.

    Attributes:
        precision: A decimal's number of digits; 0 for other types.
        scale: A decimal's number of decimal places; 0 for other types.
        epoch: The unit of a timestamp column's numbers, one of its `EPOCHS`; None if numbers do not fit.
        names: A struct's keys.
        parts: The type of a list's elements, of each of a struct's keys, or of a map's values; none for other types.
    """

    kind: Kind
    precision: int = 0
    scale: int = 0
    epoch: Epoch | None = None
    names: tuple[str, ...] = ()
    parts: tuple["ColumnType", ...] = ()

    def __str__(self) -> str:
        return self.spelled({})

    def spelled(self, names: Mapping[Kind, str]) -> str:
        """Its text, with other names for some kinds."""
        name, parts = names.get(self.kind, self.kind), [part.spelled(names) for part in self.parts]
        match self.kind:
            case "decimal":
                return f"{name}({self.precision},{self.scale})"
            case "map":
                return f"{name}<string,{parts[0]}>"
            case "struct":
                parts = [f"{spelled_key(key)}:{part}" for key, part in zip(self.names, parts, strict=True)]
        return f"{name}<{','.join(parts)}>" if parts else name

    def part(self, key: str) -> "ColumnType | None":
        """The type of a key's value in a struct or map; None if it has none."""
        if self.kind == "struct":
            return dict(zip(self.names, self.parts, strict=True)).get(key)
        return self.parts[0] if self.kind == "map" else None

    @property
    def kinds(self) -> frozenset[Kind]:
        """Its own kind, and those of all its parts."""
        return frozenset({self.kind}).union(*(part.kinds for part in self.parts))

    @property
    def field_ids(self) -> int:
        """How many field ids a column of this type takes: one, and one for each of its parts, in reading order."""
        return 1 + sum(part.field_ids for part in self.parts) + (self.kind == "map")  # a map's keys have one


@lru_cache(maxsize=256)
def parse_type(text: str, epoch: Epoch | None = None) -> ColumnType:
    """Parse a type.

    Args:
        text: One of `Kind`; a decimal with its precision and scale, the nested kinds with the types of their parts.
            In a struct, keys other than words are in backquotes.
        epoch: The unit of a timestamp column's numbers.

    Raises:
        ValueError: The text is not a type. The message says what was expected.
    """
    if epoch is not None and epoch not in EPOCHS.get(text, ()):
        raise ValueError(f'no epoch in {epoch} with type "{text}"; {epochs_expected(text)}')
    match text:
        case "string" | "long" | "double" | "boolean" | "date" | "objectid":
            return ColumnType(text)
        case "timestamp" | "timestamp_ntz" | "timestamp_ns":
            return ColumnType(text, epoch=epoch)
    if "<" in text:
        return _TypeReader(text).whole()
    found = _DECIMAL_TYPE.fullmatch(text)
    if found is None:
        raise ValueError(EXPECTED)
    precision, scale = int(found[1]), int(found[2])
    if not (1 <= precision <= MAX_PRECISION and scale <= precision):
        raise ValueError(EXPECTED)
    return ColumnType("decimal", precision, scale)


class _TypeReader:
    """Reads a nested type from its text."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._at = 0

    def whole(self) -> ColumnType:
        found = self._type(MAX_LEVELS)
        if self._at < len(self._text):
            raise self._fault("the end", self._at)
        if found.field_ids > MAX_PARTS:
            raise ValueError(f"a type of at most {MAX_PARTS} parts")
        return found

    def _type(self, levels: int) -> ColumnType:
        start, word = self._at, self._token(_TYPE, EXPECTED)
        kind = _NESTED.get(word)
        if word == "objectid":
            raise self._fault("string, or another type: an objectid is no part of others", start)
        if kind is None:
            try:
                return parse_type(word)
            except ValueError:
                raise self._fault(EXPECTED, start) from None
        if not levels:
            raise self._fault(f"at most {MAX_LEVELS} levels of lists, structs and maps, and a plain type", start)
        self._token(_OPENING, "<")
        if kind == "map":
            self._token(_STRING_KEYS, "string, as all keys are, and a comma")
        names, parts, end = list[str](), list[ColumnType](), ","
        while end == ",":
            if kind == "struct":
                names.append(self._key(names))
            parts.append(self._type(levels - 1))
            end = self._token(_NEXT, ", or >") if kind == "struct" else self._token(_CLOSING, ">")
        return ColumnType(kind, names=tuple(names), parts=tuple(parts))

    def _key(self, others: Sequence[str]) -> str:
        start, written = self._at, self._token(_KEY, "a key, in backquotes unless it is a word, and a colon")
        key = written[1:-1].replace("``", "`") if written[0] == "`" else written
        if key.lower() in (each.lower() for each in others):
            raise self._fault("a key that differs from the others, ignoring case", start)
        return key

    def _token(self, pattern: re.Pattern[str], expected: str) -> str:
        found = pattern.match(self._text, self._at)
        if found is None:
            raise self._fault(expected, self._at)
        self._at = found.end()
        return found[1]

    def _fault(self, expected: str, at: int) -> ValueError:
        return ValueError(f"{expected} at character {at + 1}")


def spelled_key(key: str) -> str:
    """A struct's key as in the text of its type."""
    return key if _PLAIN_KEY.fullmatch(key) else f"`{key.replace('`', '``')}`"


def value_of(text: str, column_type: ColumnType) -> Value | None:
    """A text's value in a type without parts; None if it does not fit. `ndjson.nested_values` has the other types.

    A number or instant in MongoDB's extended JSON, such as `{"$numberLong": "5"}`, has the value of its text. A
    `timestamp` is in UTC, a `timestamp_ntz` has no zone, and a `timestamp_ns` is the number of nanoseconds since
    1970-01-01T00:00:00Z, since a `datetime` has no nanoseconds.
    """
    value = _RULES[column_type.kind](text, column_type)
    if value is None and column_type.kind != "objectid" and (found := unwrapped(text)) is not None:
        inner, is_instant = found
        if not is_instant:
            return _RULES[column_type.kind](inner, column_type)
        if column_type.kind in EPOCHS:
            return _RULES[column_type.kind](inner, replace(column_type, epoch="milliseconds"))
    return value


def unwrapped(text: str) -> tuple[str, bool] | None:
    """The text in a value of MongoDB's extended JSON, and whether it is an instant; None for any other text."""
    if not text.startswith("{"):
        return None
    if (found := _WRAPPED_NUMBER.fullmatch(text)) is not None:
        return found[1], False
    found = _WRAPPED_DATE.fullmatch(text)
    return None if found is None else (next(each for each in found.groups() if each is not None), True)


def canonical_text(value: Value, column_type: ColumnType) -> str:
    """A value's canonical text: different values have different texts, and a text's value is the value again.

    For nested types it is JSON, with the canonical texts of their parts as strings, and without a struct's nulls.

    Args:
        value: From `ndjson.nested_values.fitted`, or from a file by `engines.parquet_files.python_values`.
        column_type: Its type.
    """
    if column_type.parts:
        return _canonical_json(value, column_type)
    match column_type.kind:
        case "decimal":
            return f"{value:.{column_type.scale}f}"
        case "boolean":
            return "true" if value else "false"
        case "timestamp_ns" if isinstance(value, int):
            seconds, fraction = divmod(value, 10**_NANOSECOND_DIGITS)
            to_second = _EPOCH_START.replace(tzinfo=None) + timedelta(seconds=seconds)
            return f"{to_second.isoformat()}.{fraction:0{_NANOSECOND_DIGITS}}Z"
        case "date" | "timestamp" | "timestamp_ntz" if isinstance(value, date):
            return value.isoformat().replace("+00:00", "Z")
    return value if isinstance(value, str) else repr(value)


def _canonical_json(value: Any, column_type: ColumnType) -> str:
    if value is None:
        return "null"
    parts = column_type.parts
    match column_type.kind:
        case "list":
            return f"[{','.join(_canonical_json(each, parts[0]) for each in value)}]"
        case "map":
            pairs = [(key, each, parts[0]) for key, each in value]
        case "struct":
            values = value.values() if isinstance(value, dict) else value
            named = zip(column_type.names, values, parts, strict=True)
            pairs = [(key, each, part) for key, each, part in named if each is not None]
        case _:
            return orjson.dumps(canonical_text(value, column_type)).decode()
    return f"{{{','.join(f'{orjson.dumps(key).decode()}:{_canonical_json(each, part)}' for key, each, part in pairs)}}}"


def plain_decimal(precision: int, scale: int) -> str:
    """A pattern for fitting numbers without an exponent; further decimal places must be zeros."""
    whole_digits = precision - scale
    whole = f"(?:0|[1-9][0-9]{{0,{whole_digits - 1}}})" if whole_digits else "0"
    return rf"-?{whole}(?:\.(?=[0-9])[0-9]{{0,{scale}}}0*)?"


def _long(text: str, _: ColumnType) -> int | None:
    return _in_64_bits(int(text)) if _LONG.fullmatch(text) else None


def _double(text: str, _: ColumnType) -> float | None:
    # A number beyond a double's range does not fit; one too close to 0 becomes 0.
    number = float(text) if _NUMBER.fullmatch(text) else math.inf
    return number if math.isfinite(number) else None


def _exact_decimal(text: str, precision: int, scale: int) -> Decimal | None:
    parts = significant(text)
    if parts is None:
        return None
    sign, digits, shift = parts
    if not digits:
        return Decimal(0)
    if shift < -scale or len(digits) + shift > precision - scale:
        return None
    return Decimal(f"{sign}{digits}e{shift}")


def _decimal(text: str, column_type: ColumnType) -> Decimal | None:
    return _exact_decimal(text, column_type.precision, column_type.scale)


def _boolean(text: str, _: ColumnType) -> bool | None:
    return {"true": True, "false": False}.get(text)


def _date(text: str, _: ColumnType) -> date | None:
    try:
        return date.fromisoformat(text) if _DATE.fullmatch(text) else None
    except ValueError:
        return None


def epochs_expected(kind: str) -> str:
    """The units that a type may have, in words."""
    return f"expected one of {', '.join(EPOCHS[kind])}" if kind in EPOCHS else "expected none"


def _timestamp(text: str, column_type: ColumnType) -> datetime | None:
    found = _iso_timestamp(text) or _iso_timestamp(_in_iso_form(text))
    return _since_epoch(text, column_type.epoch) if found is None and column_type.epoch else found


def _in_iso_form(text: str) -> str:
    """One of the `TIMESTAMPS_WITH_MONTHS` in the form of ISO 8601; empty for any other text."""
    found = next(filter(None, (pattern.fullmatch(text) for pattern in _WITH_MONTHS)), None)
    if found is None:
        return ""
    day, month, year, time, offset = found.groups()
    zone = offset if offset[0] in "+-" else "Z"
    return f"{year}-{MONTHS.index(month) + 1:02}-{day:0>2}T{time}{zone}"


def _iso_timestamp(text: str) -> datetime | None:
    if _TIMESTAMP_WITHOUT_SECONDS.fullmatch(text):
        text = f"{text[:MINUTE_CHARACTERS]}:00{text[MINUTE_CHARACTERS:]}"
    elif not _TIMESTAMP.fullmatch(text):
        return None
    try:
        return datetime.fromisoformat(text).astimezone(UTC)
    except (ValueError, OverflowError):  # the date does not exist, or the year is out of range in UTC
        return None


def _local_timestamp(text: str, _: ColumnType) -> datetime | None:
    if not (_LOCAL.fullmatch(text) or _LOCAL_WITHOUT_SECONDS.fullmatch(text)):
        return None
    try:
        return datetime.fromisoformat(text)
    except ValueError:  # the date does not exist
        return None


def _nanoseconds(text: str, column_type: ColumnType) -> int | None:
    parts = _NANOSECONDS.fullmatch(text) or _NANOSECONDS.fullmatch(_in_iso_form(text))
    if parts is None:
        return _nanoseconds_since_epoch(text, column_type.epoch) if column_type.epoch else None
    instant = _iso_timestamp(f"{parts['to_second']}{parts['offset']}")
    if instant is None:
        return None
    fraction = int((parts["fraction"] or "").ljust(_NANOSECOND_DIGITS, "0"))
    return _in_64_bits((instant - _EPOCH_START) // timedelta(seconds=1) * 10**_NANOSECOND_DIGITS + fraction)


def _nanoseconds_since_epoch(text: str, epoch: Epoch) -> int | None:
    digits = FRACTION_DIGITS[epoch] + _NANOSECOND_DIGITS - _MICROSECOND_DIGITS
    number = _exact_decimal(text, _LONG_DIGITS, digits)
    return None if number is None else _in_64_bits(int(number.scaleb(digits)))


def _object_id(text: str, _: ColumnType) -> str | None:
    found = _OBJECT_ID.fullmatch(text)
    return None if found is None else (found[1] or found[2]).lower()


def _in_64_bits(number: int) -> int | None:
    return number if -(1 << LONG_BITS) <= number < 1 << LONG_BITS else None


def _since_epoch(text: str, epoch: Epoch) -> datetime | None:
    digits = FRACTION_DIGITS[epoch]
    number = _exact_decimal(text, EPOCH_PRECISION, digits)
    if number is None:
        return None
    try:
        return _EPOCH_START + timedelta(microseconds=int(number.scaleb(digits)))
    except OverflowError:
        return None


_RULES: dict[Kind, Callable[[str, ColumnType], Value | None]] = {
    "string": lambda text, _: text,
    "long": _long,
    "double": _double,
    "decimal": _decimal,
    "boolean": _boolean,
    "date": _date,
    "timestamp": _timestamp,
    "timestamp_ntz": _local_timestamp,
    "timestamp_ns": _nanoseconds,
    "objectid": _object_id,
}
