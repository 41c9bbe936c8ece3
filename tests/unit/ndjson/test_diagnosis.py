"""Promises of what is said of a rejected line, for each reason."""

import orjson
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from compactor.ndjson.diagnosis import Fault, column_of, diagnosed, json_fault
from compactor.ndjson.inspection import REASONS, refusals

FAULTS = [
    ('{"a" 1}', 5, "found '1'; expected ':' after the key"),
    ('{"a": 1 "b": 2}', 8, "found '\"'; expected a comma, or the end of the object or array"),
    ("{“a”: 1}", 1, "found '“'; expected a key in double quotes"),
    ('{"a": NaNs}', 6, "NaN is not valid JSON; expected null"),
    ('{"NaN": NaN}', 8, "NaN is not valid JSON; expected null"),
    ('{"ä": -Infinity}', 7, "-Infinity is not valid JSON; expected null"),
    ('{"a": True}', 6, "found 'T'; expected a value"),
    ('{"a": 01}', 7, "found '1'; expected a comma, or the end of the object or array"),
    ('{"ä": [1', 9, "the line ends; expected a comma, or the end of the object or array"),
    ('{"ä": "x', 7, "found '\"'; expected a closing quote for the string that starts here"),
    ('{"a": "\t"}', 7, "found '\t'; expected an escape of the control character, such as \\t"),
    ('{"a": "\\x"}', 7, "found '\\'; expected a JSON escape"),
    ('{"a": "\\ud800x"}', 7, "\\ud800 is half of a surrogate pair"),
    ('{"a": "\\udc00"}', 7, "\\udc00 is half of a surrogate pair"),
    ('{"a": 1} {"b": 2}', 9, "found '{'; expected a line feed before a second value"),
    ("plain text", 0, "found 'p'; expected a value"),
    ("", 0, "the line ends; expected a value"),
]


@pytest.mark.parametrize(("line", "offset", "message"), FAULTS, ids=[each[0] for each in FAULTS])
def test_faults(line: str, offset: int, message: str) -> None:
    """The first place, and what was found and expected there."""
    assert json_fault(line.encode()) == Fault(offset, message)


PIECES = [
    *'{}[]",:\\ \t\r',
    *"019-+.eE",
    "true",
    "null",
    '"a"',
    '"a": 1',
    "\\ud83d",
    "\\udE00",
    "\\n",
    "é",
    "\x01",
    "NaN",
]


@given(st.lists(st.sampled_from(PIECES), max_size=12).map("".join))
@example('{"a": 1e400}')
@example('{"a": "\\ud83d\\ude00"}')
@example('{"a": "\\\\ud800"}')
def test_one_opinion_with_the_parser(text: str) -> None:
    """A line has a fault exactly if inspection refuses it as JSON, and the fault lies in the line."""
    line = text.encode()
    found = json_fault(line)
    assert (found is not None) == any(reason in {"invalid_json", ""} for _, reason in refusals([line]))
    assert found is None or 0 <= (found.offset or 0) <= len(line)


def test_deep_and_long_lines() -> None:
    """No error, and no more than linear time."""
    assert json_fault(b"[" * 200_000) is None
    assert json_fault(b'{"a": ' + b'"\\"' * 200_000) is not None
    assert json_fault(orjson.dumps({"a": ["x"] * 200_000})) is None


CASES = {
    "invalid_utf8": (b'{"a": "caf\xe9"}', 10, "byte 0xe9 is not UTF-8 (invalid continuation byte); in Latin-1 it is é"),
    "invalid_json": (b"{", 1, "the line ends; expected a key in double quotes"),
    "too_deep": (b'["[[",' + b"[" * 1025, 1029, "array or object 1,025 levels deep; expected at most 1,024"),
    "not_an_object": (b" [1]", 1, "an array; expected an object in braces"),
    "line_too_long": (b'{"a": 1}', 4, "the line has 8 bytes; expected at most 4"),
}


@pytest.mark.parametrize("reason", REASONS)
def test_each_reason(reason: str) -> None:
    """Every reason has words: of what the line has and where, or else those of all such lines."""
    line, offset, message = CASES.get(reason, (b'{"a": 1}', None, REASONS[reason]))
    assert diagnosed(line, reason, max_line_bytes=4) == Fault(offset, message)


@pytest.mark.parametrize(
    ("line", "kind"), [(b'"x"', "a string"), (b"-1", "a number"), (b"true", "a boolean"), (b"null", "null")]
)
def test_values_that_are_no_objects(line: bytes, kind: str) -> None:
    assert diagnosed(line, "not_an_object").message == f"{kind}; expected an object in braces"


def test_utf_16() -> None:
    """A line of UTF-16 is told from one with a few wrong bytes."""
    assert diagnosed('{"a": 1}'.encode("utf-16"), "invalid_utf8").message.startswith("a UTF-16 byte order mark")


@pytest.mark.parametrize("reason", ["invalid_utf8", "invalid_json", "too_deep", "reason_of_another_release"])
def test_a_line_without_a_fault(reason: str) -> None:
    """Where this release finds no fault, the meaning of the reason is said."""
    assert diagnosed(b'{"a": 1}', reason) == Fault(None, REASONS.get(reason, reason))


def test_columns_are_characters() -> None:
    assert column_of('{"ä日"'.encode() + b"\xff\xff!", 9) == 7
