"""Which texts have a variant, and what it keeps of them."""

import json
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from compactor.schema.variants.json_values import MAX_DEPTH, MAX_TEXT_BYTES, canonical, number, parse

NINES = "9" * 38


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("0", 0),
        ("-9223372036854775808", -(2**63)),
        ("9223372036854775808", Decimal(2**63)),
        ("1.10", Decimal("1.10")),
        ("-0.0001", Decimal("-0.0001")),
        (NINES, Decimal(NINES)),
        (f"0.{NINES}", Decimal(f"0.{NINES}")),
        ("1e2", 100.0),
        ("1E-7", 1e-7),
        ("5e-324", 5e-324),
        ("1" + "0" * 60, 1e60),
        ("0.5" + "0" * 60, 0.5),
        ("0e99", 0.0),
    ],
)
def test_numbers(text: str, expected: float | Decimal) -> None:
    """A whole number of 64 bits, else a decimal with its places, else the double that is the same number."""
    found = number(text)
    assert (found, type(found)) == (expected, type(expected))
    assert str(found) == str(expected)  # of decimals, the places


@pytest.mark.parametrize("text", ["-0", "-0.0", "-0e5"])
def test_a_zero_keeps_its_sign(text: str) -> None:
    assert str(number(text)) == "-0.0"


@pytest.mark.parametrize(
    "text",
    [f"{NINES}9", f"0.{NINES}9", "1e400", "-1e400", "1e-400", "1.00000000000000001e0", "1e99999999999", "9" * 5000],
)
def test_numbers_that_nothing_keeps(text: str) -> None:
    with pytest.raises(
        ValueError, match="expected up to 38 digits without an exponent, or the shortest text of a double"
    ):
        number(text)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "1",
        '"a"',
        "null",
        '{"a":1',
        "[1]]",
        "[1] [2]",
        " [1]",
        "[1]\n",
        "[01]",
        "[NaN]",
        "[Infinity]",
        "[1,]",
        '{"a":1,}',
        "{1:2}",
        '["\t"]',
        r'["\x41"]',
        r'["\ud800"]',
        r'["\udc00\ud800"]',
        r'{"\ud800":1}',
        '{"a":1,"a":1}',
        r'{"a":1,"\u0061":2}',
        '[{"a":{"b":1,"b":2}}]',
        "[1e400]",
        "[" * (MAX_DEPTH + 1) + "]" * (MAX_DEPTH + 1),
        "[" * 100_000 + "]" * 100_000,
        f'["{"x" * MAX_TEXT_BYTES}"]',
    ],
    ids=lambda text: text[:20],
)
def test_texts_without_a_variant(text: str) -> None:
    """No object or array of JSON, or one of which something would be lost."""
    with pytest.raises(ValueError):  # noqa: PT011 - a text that does not fit has no message that anyone reads
        parse(text)


@pytest.mark.parametrize(
    ("one", "other", "is_same"),
    [
        ('{"a":1,"b":2}', '{ "b" : 2.0, "a" : 1e0 }', True),
        ("[1.10]", "[1.1]", True),
        (r'["\u0061\/"]', '["a/"]', True),
        ("[0]", "[-0]", False),
        ("[1]", '["1"]', False),
        ("[true]", "[1]", False),
        ("[null]", "[]", False),
        ("[1,2]", "[2,1]", False),
        ('{"a":null}', "{}", False),
        ("[123456789012345678901]", "[123456789012345678902]", False),
    ],
)
def test_canonical(one: str, other: str, is_same: bool) -> None:
    """The same values have the same canonical JSON, and others another."""
    assert (canonical(parse(one)) == canonical(parse(other))) is is_same


def test_the_deepest_and_the_longest() -> None:
    deepest = "[" * MAX_DEPTH + "]" * MAX_DEPTH
    assert canonical(parse(deepest)) == deepest
    longest = f'["{"x" * (MAX_TEXT_BYTES - 4)}"]'
    assert canonical(parse(longest)) == longest


NUMBERS = st.integers(-(2**70), 2**70) | st.floats(allow_nan=False, allow_infinity=False)
VALUES = st.recursive(
    st.none() | st.booleans() | NUMBERS | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
)


@given(st.lists(VALUES, max_size=4) | st.dictionaries(st.text(), VALUES, max_size=4))
def test_canonical_json_means_the_value(value: object) -> None:
    """Reading it gives the value again, whatever was read."""
    try:
        text = json.dumps(value, ensure_ascii=False)
        text.encode()
    except UnicodeEncodeError:
        return
    assert json.loads(canonical(parse(text)), parse_int=float) == json.loads(text, parse_int=float)
