"""How the scoreboard compares raw text with cells of Parquet files."""

from datetime import UTC, date, datetime
from decimal import Decimal
from uuid import UUID

import pytest

from bench.scoreboard.values import Match, at_path, identity, match, raw_members

HEX = "0123456789abcdef0123456789abcdef"


def test_raw_members_keep_their_text():
    """Numbers, escapes and blanks stay as they stand in the line."""
    line = '{ "a" : 17.50,"b":{"c" : [1, 2]}, "d":"\\u00e9" ,"e":null}\n'
    assert list(raw_members(line)) == [("a", "17.50"), ("b", '{"c" : [1, 2]}'), ("d", '"\\u00e9"'), ("e", "null")]
    assert list(raw_members("{ }")) == []


@pytest.mark.parametrize(
    ("raw", "cell", "expected"),
    [
        ('"\\u00e9"', "é", Match.TEXT),
        ("17.50", "17.50", Match.TEXT),
        ("17.50", "17.5", Match.VALUE),
        ("17.50", 17.5, Match.VALUE),
        ("17.50", Decimal("17.50"), Match.VALUE),
        ("5", 5, Match.TEXT),
        ("5", 5.0, Match.VALUE),
        ("1", True, Match.DIFFERENT),
        ("true", True, Match.TEXT),
        ("true", "true", Match.TEXT),
        ("9007199254740993", 9007199254740992.0, Match.DIFFERENT),
        ("null", None, Match.TEXT),
        ("null", "", Match.DIFFERENT),
        ('"a"', None, Match.DIFFERENT),
        ('"a"', '"a"', Match.VALUE),
        ('"12"', 12, Match.DIFFERENT),
        ('{"a":1,"b":[2]}', '{"a":1,"b":[2]}', Match.TEXT),
        ('{"a":1,"b":[2]}', '{"b": [2], "a": 1}', Match.VALUE),
        ('{"a":1,"b":[2]}', {"a": 1, "b": [2]}, Match.TEXT),
        ('{"a":1}', {"a": 1, "c": None}, Match.VALUE),
        ('{"a":1}', [("a", 1)], Match.VALUE),
        ('{"a":1}', {"a": None}, Match.DIFFERENT),
        ('{"a":1}', None, Match.DIFFERENT),
        ("[]", None, Match.DIFFERENT),
        ("[1,{}]", [1], Match.DIFFERENT),
        ('["a"]', "a", Match.DIFFERENT),
        ('"2026-01-02T03:04:05.600Z"', datetime(2026, 1, 2, 3, 4, 5, 600_000), Match.VALUE),  # noqa: DTZ001 - as DuckDB
        ('"2026-01-02T03:04:05.600Z"', datetime(2026, 1, 2, 3, 4, 5, 600_000, UTC), Match.VALUE),
        ('"2026-01-02T03:04:05.600Z"', datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC), Match.DIFFERENT),
        ('"2026-01-02"', date(2026, 1, 2), Match.VALUE),
        ('"soon"', date(2026, 1, 2), Match.DIFFERENT),
        (f'"{HEX}"', UUID(HEX), Match.VALUE),
    ],
)
def test_a_cell_matches(raw, cell, expected):
    """Text is more than value, and nothing else is equal."""
    assert match(raw, cell) is expected


def test_keys_have_one_form():
    """A key that became a UUID or bytes is still the key."""
    assert identity(UUID(HEX)) == identity(bytes.fromhex(HEX)) == identity(HEX)
    assert identity(7) == identity("7")


@pytest.mark.parametrize("cell", [{"b": {"c": 1}}, '{"b":{"c":1}}', {"b": '{"c":1}'}, {"b": [("c", 1)]}])
def test_a_path_leads_through_all_forms(cell):
    """Structures, JSON text and maps have members."""
    assert at_path({"a": cell}, ("a", "b", "c")) == 1
    assert at_path({"a": cell}, ("a", "x", "c")) is None
