"""The rules of the types: which texts are values, and the canonical text of each value."""

import re
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal, localcontext
from fractions import Fraction

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from compactor.schema.column_types import NUMBER, Epoch, Kind, canonical_text, parse_type, plain_decimal, value_of
from tests.support.hostile_texts import HOSTILE_TEXTS

NINES = "9" * 38

TIMES = ("timestamp", "timestamp_ntz", "timestamp_ns")


def value(text: str, kind: str, epoch: Epoch | None = None) -> object:
    return value_of(text, parse_type(kind, epoch))


@pytest.mark.parametrize(
    ("kind", "expected"),
    [
        ("string", "string"),
        ("decimal(1,0)", "decimal(1,0)"),
        ("decimal(38, 38)", "decimal(38,38)"),
        ("decimal(0,0)", None),
        ("decimal(39,0)", None),
        ("decimal(5,6)", None),
        ("decimal(18)", None),
        ("decimal", None),
        ("DECIMAL(1,0)", None),
        ("decimal(1,-1)", None),
        ("int", None),
        ("Long", None),
        ("", None),
    ],
)
def test_types(kind: str, expected: str | None) -> None:
    """A type has one spelling; any other text is refused, with the list of types."""
    if expected is None:
        with pytest.raises(ValueError, match=r"string, long, double, decimal\(p,s\) with 1 <= p <= 38"):
            parse_type(kind)
    else:
        assert str(parse_type(kind)) == expected


def test_only_timestamps_have_an_epoch() -> None:
    """An epoch beside any other type is refused."""
    for kind, epoch in (("long", "seconds"), ("timestamp_ntz", "seconds"), ("timestamp", "nanoseconds")):
        with pytest.raises(ValueError, match=f'no epoch in {epoch} with type "{kind}"; expected'):
            parse_type(kind, epoch)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("kind", "text", "expected"),
    [
        ("long", "0", 0),
        ("long", "-1", -1),
        ("long", "9223372036854775807", 2**63 - 1),
        ("long", "-9223372036854775808", -(2**63)),
        *[("long", text, None) for text in ("9223372036854775808", "-9223372036854775809", "-0", "+1", "01", "1e2")],
        *[("long", text, None) for text in ("", " 1", "1\n", "\u0661", "1_000", "9" * 5000)],
        ("double", "1.10", 1.1),
        ("double", "1e308", 1e308),
        ("double", "1e-400", 0.0),
        *[("double", text, None) for text in ("1e400", "-1e400", "NaN", "Infinity", "1d", "0x10", ".5", "+1", "")],
        ("decimal(18,2)", "1.105", None),
        ("decimal(18,2)", "1.100", Decimal("1.10")),
        ("decimal(18,2)", "1e2", Decimal(100)),
        ("decimal(18,2)", "125e-2", Decimal("1.25")),
        ("decimal(18,2)", "125e-3", None),
        ("decimal(18,2)", "9999999999999999.99", Decimal("9999999999999999.99")),
        ("decimal(18,2)", "10000000000000000", None),
        ("decimal(38,0)", NINES, Decimal(NINES)),
        ("decimal(38,0)", NINES + "9", None),
        ("decimal(38,38)", f"0.{NINES}", Decimal(f"0.{NINES}")),
        ("decimal(38,38)", f"0.{NINES}00", Decimal(f"0.{NINES}")),
        ("decimal(38,38)", "1", None),
        ("decimal(1,0)", "0e99999999999999999999", Decimal(0)),
        *[("decimal(38,0)", text, None) for text in ("1e99999999999999999999", "1e-99999999", "01", "1e")],
        ("boolean", "true", True),
        ("boolean", "false", False),
        *[("boolean", text, None) for text in ("True", "1", "", " true", "true\n")],
        ("date", "2024-02-29", date(2024, 2, 29)),
        ("date", "0001-01-01", date.min),
        ("date", "9999-12-31", date.max),
        *[("date", text, None) for text in ("2023-02-29", "0000-01-01", "10000-01-01", "20240229", "2024-2-29")],
    ],
)  # fmt: skip
def test_values(kind: str, text: str, expected: object) -> None:
    """A text is exactly its value, or none; never a value close to it."""
    found = value(text, kind)
    assert (found, type(found)) == (expected, type(expected))


def test_minus_zero_of_a_double_is_kept() -> None:
    """The sign of -0 is part of a double, and of its canonical text."""
    kind = parse_type("double")
    found = [value_of(text, kind) for text in ("-0", "0")]
    assert [canonical_text(each, kind) for each in found if each is not None] == ["-0.0", "0.0"]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("2026-01-02T03:04:05Z", "2026-01-02T03:04:05Z"),
        ("2026-01-02 03:04+05:30", "2026-01-01T21:34:00Z"),
        ("2026-01-02T03:04:05.5-0530", "2026-01-02T08:34:05.500000Z"),
        ("2026-01-02T03:04:05.123456000+01", "2026-01-02T02:04:05.123456Z"),
        ("1500-03-01T00:00:00Z", "1500-03-01T00:00:00Z"),
        ("0001-01-01T00:00:00-18:00", "0001-01-01T18:00:00Z"),
        ("9999-12-31T23:59:59.999999Z", "9999-12-31T23:59:59.999999Z"),
        *[
            (text, None)
            for text in (
                *("2026-01-02T03:04:05", "2026-01-02", "2026-01-02t03:04:05Z", "2026-01-02T03:04:05z", "1767323045"),
                *("2026-01-02T03:04:60Z", "2026-01-02T24:00:00Z", "2026-02-29T00:00:00Z", "2026-01-02T03:04:05 Z"),
                *("2026-01-02T03:04:05.1234567Z", "2026-01-02T03:04:05+18:01", "2026-01-02T03:04:05+19"),
                *("0001-01-01T00:00:00+00:01", "9999-12-31T23:59:59-00:01", "0000-12-31T23:00:00-05:00"),
            )
        ],
    ],
)
def test_timestamps(text: str, expected: str | None) -> None:
    """A timestamp says its offset, and is of the years 0001 to 9999 in UTC."""
    found = value(text, "timestamp")
    assert expected == (found and canonical_text(found, parse_type("timestamp")))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("text", "epoch", "expected"),
    [
        ("0", "seconds", "1970-01-01T00:00:00Z"),
        ("1.7e9", "seconds", "2023-11-14T22:13:20Z"),
        ("-0.000001", "seconds", "1969-12-31T23:59:59.999999Z"),
        ("1700000000123.456", "milliseconds", "2023-11-14T22:13:20.123456Z"),
        ("253402300799.999999", "seconds", "9999-12-31T23:59:59.999999Z"),
        ("-62135596800000", "milliseconds", "0001-01-01T00:00:00Z"),
        ("2026-01-02T03:04Z", "seconds", "2026-01-02T03:04:00Z"),
        ("1.0000001", "seconds", None),
        ("1.0001", "milliseconds", None),
        ("253402300800", "seconds", None),
        ("-62135596800.000001", "seconds", None),
        ("01", "seconds", None),
        ("1767323045123456", "microseconds", "2026-01-02T03:04:05.123456Z"),
        ("1767323045123456.1", "microseconds", None),
        ("Fri, 02 Jan 2026 03:04:05 +0100", "seconds", "2026-01-02T02:04:05Z"),
        ("2 Jan 2026 03:04 GMT", "seconds", "2026-01-02T03:04:00Z"),
        ("02/Jan/2026:03:04:05 +0000", "seconds", "2026-01-02T03:04:05Z"),
    ],
)
def test_numbers_as_timestamps(text: str, epoch: Epoch, expected: str | None) -> None:
    """Where a column has an epoch, a number is a timestamp if it is exact to the microsecond."""
    found = value(text, "timestamp", epoch)
    assert expected == (found and canonical_text(found, parse_type("timestamp")))  # type: ignore[arg-type]


SCALES = st.integers(1, 38).flatmap(lambda p: st.tuples(st.just(p), st.integers(0, p)))
NUMBERS = st.from_regex(re.compile(NUMBER, re.ASCII), fullmatch=True)


@given(value=st.integers(-(2**63), 2**63 - 1))
def test_longs_come_back(value: int) -> None:
    """Every whole number of 64 bits has one text, which gives it back."""
    kind = parse_type("long")
    assert value_of(canonical_text(value, kind), kind) == value


@given(value=st.floats(allow_nan=False, allow_infinity=False))
@example(5e-324)
def test_doubles_come_back(value: float) -> None:
    """Every finite double has one text, which gives it back."""
    kind = parse_type("double")
    assert repr(value_of(canonical_text(value, kind), kind)) == repr(value)


@given(bounds=SCALES, data=st.data())
def test_decimals_come_back(bounds: tuple[int, int], data: st.DataObject) -> None:
    """Every decimal of a type has one text, which gives it back with all of its digits."""
    precision, scale = bounds
    kind = parse_type(f"decimal({precision},{scale})")
    unscaled = data.draw(st.integers(-(10**precision) + 1, 10**precision - 1))
    with localcontext(prec=60):
        number = Decimal(unscaled).scaleb(-scale)
    found = value_of(canonical_text(number, kind), kind)
    assert found == number
    assert canonical_text(found, kind) == canonical_text(number, kind)


@pytest.mark.parametrize(
    ("kind", "text", "expected"),
    [
        ("objectid", "507F1f77bcf86cd799439011", "507f1f77bcf86cd799439011"),
        ("objectid", '{"$oid": "507f1f77bcf86cd799439011"}', "507f1f77bcf86cd799439011"),
        ("objectid", '{"$numberLong": "507170778600799439011000"}', None),
        ("objectid", "507f1f77bcf86cd79943901", None),
        ("timestamp_ntz", "2026-01-02T03:04:05", "2026-01-02T03:04:05"),
        ("timestamp_ntz", "2026-01-02 03:04", "2026-01-02T03:04:00"),
        ("timestamp_ntz", "0001-01-01 00:00:00.500000000", "0001-01-01T00:00:00.500000"),
        ("timestamp_ntz", "2026-01-02T03:04:05Z", None),
        ("timestamp_ntz", "2026-01-02T03:04:05.1234567", None),
        ("timestamp_ntz", "2026-02-30T03:04:05", None),
        ("timestamp_ntz", "2026-01-02", None),
        ("timestamp_ns", "2026-01-02T03:04:05.123456789Z", "2026-01-02T03:04:05.123456789Z"),
        ("timestamp_ns", "2026-01-02 03:04+05:30", "2026-01-01T21:34:00.000000000Z"),
        ("timestamp_ns", "1969-12-31T23:59:59.9999999990Z", "1969-12-31T23:59:59.999999999Z"),
        ("timestamp_ns", "1677-09-21T00:12:43.145224192Z", "1677-09-21T00:12:43.145224192Z"),
        ("timestamp_ns", "2262-04-11T23:47:16.854775807Z", "2262-04-11T23:47:16.854775807Z"),
        ("timestamp_ns", "1677-09-21T00:12:43.145224191Z", None),
        ("timestamp_ns", "2262-04-11T23:47:16.854775808Z", None),
        ("timestamp_ns", "2026-01-02T03:04:05.0000000001Z", None),
        ("timestamp_ns", "2026-01-02T03:04.5Z", None),
        ("timestamp_ns", "2026-01-02T03:04:05.123456789", None),
    ],
)
def test_times_of_other_kinds(kind: Kind, text: str, expected: str | None) -> None:
    """A time without a zone has none, and nanoseconds are kept in the years of 64 bits."""
    found = value(text, kind)
    assert expected == (None if found is None else canonical_text(found, parse_type(kind)))


@given(value=st.dates())
def test_dates_come_back(value: date) -> None:
    """Every date has one text, which gives it back."""
    kind = parse_type("date")
    assert value_of(canonical_text(value, kind), kind) == value


@given(value=st.datetimes(timezones=st.just(UTC)), offset=st.integers(-18 * 60, 18 * 60))
def test_timestamps_come_back(value: datetime, offset: int) -> None:
    """Every microsecond has one text, which gives it back; so does any other spelling with an offset."""
    kind = parse_type("timestamp")
    assert value_of(canonical_text(value, kind), kind) == value
    hours, minutes = divmod(abs(offset), 60)
    try:
        local = value.replace(tzinfo=None) + timedelta(minutes=offset)
    except OverflowError:
        return
    text = f"{local.isoformat(sep=' ')}{'-' if offset < 0 else '+'}{hours:02}{minutes:02}"
    assert value_of(text, kind) == value


@given(text=NUMBERS, bounds=SCALES)
@example("1e400", (38, 0))
def test_no_digit_of_a_decimal_is_lost(text: str, bounds: tuple[int, int]) -> None:
    """Any number fits exactly where arithmetic without limits says so; the quick pattern never says otherwise."""
    precision, scale = bounds
    found = value_of(text, parse_type(f"decimal({precision},{scale})"))
    if not re.search("[eE].*[1-9][0-9]{3}", text):  # a fraction of a larger exponent takes too long
        unscaled = Fraction(text) * 10**scale
        fits = unscaled.denominator == 1 and abs(unscaled) < 10**precision
        assert (None if found is None else Fraction(found)) == (Fraction(text) if fits else None)
    if re.fullmatch(plain_decimal(precision, scale), text):
        assert found is not None
    elif "e" not in text.lower():
        assert found is None


@given(text=st.text(max_size=30) | st.sampled_from(HOSTILE_TEXTS) | NUMBERS)
@example("true")
@example("false")
def test_any_text_is_a_value_or_none(text: str) -> None:
    """No text makes a rule fail, and the canonical text of its value stands for the same value."""
    kinds = [parse_type(kind) for kind in ("long", "double", "boolean", "date", "decimal(9,3)", *TIMES)]
    for kind in [*kinds, parse_type("timestamp", "seconds"), parse_type("timestamp", "milliseconds")]:
        found = value_of(text, kind)
        if found is not None:
            written = canonical_text(found, kind)
            again = value_of(written, kind)
            assert again == found
            assert again is not None
            assert canonical_text(again, kind) == written
