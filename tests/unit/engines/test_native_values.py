"""The native rules of the types, and those that prove them: any text is the same value, or none, as in Python."""

import re
from collections.abc import Iterator
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal, localcontext
from typing import Any

import orjson
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from compactor.schema.column_types import (
    DATE,
    EPOCHS,
    FIRST_MICROSECOND,
    LAST_MICROSECOND,
    LOCAL_TIMESTAMP,
    LONG,
    NUMBER,
    TIMESTAMP,
    TIMESTAMP_WITHOUT_SECONDS,
    ColumnType,
    Kind,
    Value,
    parse_type,
    value_of,
)
from tests.support import extras
from tests.support.hostile_texts import HOSTILE_TEXTS
from tests.support.row_sums import read, sums_of_type

native = pytest.importorskip("compactor_native", reason=extras.NATIVE.reason)

TIMES: tuple[Kind, ...] = ("timestamp", "timestamp_ntz", "timestamp_ns")
SHAPES = [(1, 0), (1, 1), (9, 3), (18, 2), (18, 18), (19, 0), (20, 4), (38, 0), (38, 10), (38, 37), (38, 38)]
TYPES = [
    *(parse_type(kind) for kind in ("long", "double", "boolean", "date", "objectid", *TIMES)),
    *(parse_type(kind, epoch) for kind, epochs in EPOCHS.items() for epoch in epochs),
    *(parse_type(f"decimal({precision},{scale})") for precision, scale in SHAPES),
]
EPOCH_START = datetime(1970, 1, 1, tzinfo=UTC)


def stored(value: Value | None, column_type: ColumnType) -> object:
    """The form of a value that Parquet stores."""
    match value:
        case Decimal():
            with localcontext(prec=60):
                return int(value.scaleb(column_type.scale))
        case datetime():
            if column_type.kind == "timestamp_ntz":
                value = value.replace(tzinfo=UTC)
            return (value - EPOCH_START) // timedelta(microseconds=1)
        case date():
            return (value - EPOCH_START.date()).days
    return value


def agree(text: str, column_type: ColumnType) -> None:
    expected = stored(value_of(text, column_type), column_type)
    kind, epoch = column_type.kind, column_type.epoch
    found = native.typed_value(text.encode(), kind, column_type.precision, column_type.scale, epoch)
    # `repr` distinguishes -0.0 from 0.0, and True from 1.
    assert repr(found) == repr(expected), f"{text[:100]!r} as {column_type}, epoch {epoch}"
    # What proves the values has rules of its own.
    sums, line = sums_of_type(str(column_type), epoch), orjson.dumps({"v": text}) + b"\n"
    assert read(sums.lines({}), line) == read(sums.slow_lines({}), line), f"{text[:100]!r} as {column_type}, {epoch}"


def matching(pattern: str) -> st.SearchStrategy[str]:
    return st.from_regex(re.compile(pattern, re.ASCII), fullmatch=True)


@st.composite
def numbers(draw: st.DrawFn) -> str:
    """Numbers whose zeros and exponent make up for each other, or nearly."""
    sign, digits = draw(st.sampled_from(["", "-"])), str(draw(st.integers(0, 10**40)))
    zeros = "0" * draw(st.integers(0, 50))
    shift = draw(st.integers(-400, 400) | st.integers(-3, 3).map(lambda more: more - len(zeros)))
    whole = draw(st.sampled_from([digits + zeros, f"0.{zeros}{digits}", f"{digits}.{zeros}", f"{digits}.5{zeros}"]))
    return f"{sign}{whole}{draw(st.sampled_from(['', f'e{shift}', f'E{shift:+04}']))}"


@st.composite
def changed(draw: st.DrawFn, texts: st.SearchStrategy[str]) -> str:
    """Texts of which at most one character is another, or missing, or too much."""
    text = draw(texts)
    start = draw(st.integers(0, len(text)))
    end = min(len(text), start + draw(st.integers(0, 1)))
    return text[:start] + draw(st.text("0123456789+-.:eETZtz \n\0\u0661", max_size=1)) + text[end:]


CLOCKS = st.datetimes().flatmap(
    lambda clock: st.builds(
        lambda separator, precision, offset: clock.isoformat(separator, precision) + offset,
        st.sampled_from("T "),
        st.sampled_from(["minutes", "seconds", "milliseconds", "microseconds"]),
        st.sampled_from(["", "Z", "123Z", "1230", "+18:00", "-18", "-0001"]) | matching("[+-][0-9]{2}:?[0-9]{2}"),
    )
)
SINCE_EPOCH = st.builds(
    lambda microseconds, digits: f"{Decimal(microseconds).scaleb(-digits):f}",
    st.integers(FIRST_MICROSECOND - 2, FIRST_MICROSECOND + 2)
    | st.integers(LAST_MICROSECOND - 2, LAST_MICROSECOND + 2)
    | st.integers(10 * FIRST_MICROSECOND, 10 * LAST_MICROSECOND),
    st.integers(2, 7),
)
PATTERNS = (LONG, NUMBER, DATE, TIMESTAMP, TIMESTAMP_WITHOUT_SECONDS, LOCAL_TIMESTAMP)
VALID = st.one_of(
    *map(matching, PATTERNS),
    numbers(),
    CLOCKS,
    SINCE_EPOCH,
    st.integers(-(2**65), 2**65).map(str),
    st.floats(allow_nan=False).map(repr),
    st.dates().map(str),
    st.sampled_from(["true", "false"]),
    st.sampled_from(HOSTILE_TEXTS),
)
ANY_TYPE = st.sampled_from(TYPES) | st.integers(1, 38).flatmap(
    lambda precision: st.integers(0, precision).map(lambda scale: parse_type(f"decimal({precision},{scale})"))
)


def long_texts(count: int) -> Iterator[str]:
    """Numbers of so many digits, around where another digit far behind decides."""
    middles = ["1.00000000000000011102230246251565404236316680908203125", f"{(2**54 - 1) * 5**1075}e-1075"]
    zeros = "0" * count
    yield from (f"1{zeros}e-{count}", f"-0.{zeros}1e{count + 1}", f"0.{zeros}1e{count - 300}", f"1e{zeros}2")
    yield from (f"-0.{zeros}", f"1{zeros}", f"1.5{zeros}1", "3" * count + f"e-{count}", f"1e{'9' * count}")
    yield from (f"2026-01-02T03:04:05.5{zeros}Z", f"2026-01-02T03:04:05.5{zeros}1Z")
    for middle in middles:
        digits, _, exponent = middle.partition("e")
        digits, shift = (digits, 0) if "." in digits else (f"{digits}.", int(exponent))
        yield from (f"{digits}{zeros}{last}e{shift}" for last in ("0", "1"))
        below = f"{digits.rstrip('.')[:-1]}{int(digits.rstrip('.')[-1]) - 1}"
        yield f"{below}{'' if '.' in below else '.'}{'9' * count}e{shift}"


def _called(column_type: ColumnType) -> str:
    return "-".join(filter(None, (str(column_type), column_type.epoch)))


@pytest.mark.parametrize("column_type", TYPES, ids=_called)
def test_hostile_texts(column_type: ColumnType) -> None:
    """Texts that try the rules are the same values natively."""
    for text in HOSTILE_TEXTS:
        agree(text, column_type)


def _longest(column_type: ColumnType) -> Any:
    """One type of each kind in short."""
    is_first = column_type is next(each for each in TYPES if each.kind == column_type.kind)
    return pytest.param(
        column_type, 700_000, marks=() if is_first else pytest.mark.full, id=f"{_called(column_type)}-700k"
    )


@pytest.mark.parametrize(
    ("column_type", "count"),
    [*(pytest.param(each, 5_000, id=_called(each)) for each in TYPES), *map(_longest, TYPES)],
)
def test_long_texts(column_type: ColumnType, count: int) -> None:
    """No digit of a long text is lost, however far in front or behind."""
    for text in long_texts(count):
        agree(text, column_type)


@given(text=VALID | changed(VALID) | changed(changed(VALID)), column_type=ANY_TYPE)
@example("1.e2", parse_type("double"))
@example("2026-01-02T03:04:05*05:30", parse_type("timestamp"))
def test_texts_near_values(text: str, column_type: ColumnType) -> None:
    """Any text is the same value natively, also where a single character makes it one or none."""
    agree(text, column_type)


@given(text=st.binary(max_size=30), column_type=ANY_TYPE)
def test_any_bytes(text: bytes, column_type: ColumnType) -> None:
    """No bytes make a rule fail."""
    kind, epoch = column_type.kind, column_type.epoch
    found = native.typed_value(text, kind, column_type.precision, column_type.scale, epoch)
    assert found is None or text.isascii()


@pytest.mark.parametrize(
    ("kind", "precision", "scale", "epoch"),
    [("string", 0, 0, None), ("decimal", 39, 0, None), ("decimal", 5, 6, None), ("long", 0, 0, "seconds")],
)
def test_unknown_types(kind: str, precision: int, scale: int, epoch: str | None) -> None:
    """A type that cannot be is refused with what was expected."""
    with pytest.raises(ValueError, match=f"no type {kind} with precision {precision}.*expected long, double, decimal"):
        native.typed_value(b"1", kind, precision, scale, epoch)
