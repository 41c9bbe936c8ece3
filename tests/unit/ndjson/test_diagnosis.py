"""Promises of what is said of a rejected line, for each reason."""

import pytest

from compactor.ndjson.diagnosis import Fault, column_of, diagnosed
from compactor.ndjson.inspection import REASONS

CASES = {
    "invalid_utf8": (b'{"a": "caf\xe9"}', 10, "byte 0xe9 is not UTF-8 (invalid continuation byte); in Latin-1 it is é"),
    "invalid_json": (b"{", 1, "the line ends inside the object that begins at column 1"),
    "too_deep": (b'["[[",' + b"[" * 1025, 1029, "array or object 1,025 levels deep; expected at most 1,024"),
    "not_an_object": (b" [1]", 1, "an array; expected an object in braces"),
    "line_too_long": (b'{"a": 1}', 4, "the line has 8 bytes; expected at most 4"),
    "no_match": (b"x", None, "the line does not match the pattern in input.grok"),
    "match_too_costly": (b"x", None, REASONS["match_too_costly"]),
    "fields_too_large": (b"{}", None, REASONS["fields_too_large"]),
    "parsers_disagree": (b'{"a": 1}', None, "Spark and inspection read the line differently"),
}


@pytest.mark.parametrize("reason", REASONS)
def test_each_reason(reason: str) -> None:
    """Every reason has words, and a place if one is known."""
    line, offset, message = CASES[reason]
    assert diagnosed(line, reason, max_line_bytes=4) == Fault(offset, message)


@pytest.mark.parametrize(
    ("line", "kind"), [(b'"x"', "a string"), (b"-1", "a number"), (b"true", "a boolean"), (b"null", "null")]
)
def test_values_that_are_no_objects(line: bytes, kind: str) -> None:
    assert diagnosed(line, "not_an_object").message == f"{kind}; expected an object in braces"


def test_utf_16() -> None:
    """A line of UTF-16 is told from one with a few wrong bytes."""
    assert diagnosed('{"a": 1}'.encode("utf-16"), "invalid_utf8").message.startswith("the byte order mark of UTF-16")


@pytest.mark.parametrize("reason", ["invalid_utf8", "invalid_json", "too_deep", "reason_of_another_release"])
def test_a_line_without_a_fault(reason: str) -> None:
    """Where this release finds no fault, the meaning of the reason is said."""
    assert diagnosed(b'{"a": 1}', reason) == Fault(None, REASONS.get(reason, reason))


def test_columns_are_characters() -> None:
    assert column_of('{"ä日"'.encode() + b"\xff\xff!", 9) == 7
