"""What records have beside their values, as fields of their lines."""

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from compactor.core.logs.names import RECORD_COLUMNS, RecordColumn
from compactor.core.logs.ports import LogRecord
from compactor.ndjson.codecs import decode
from compactor.sources.landing import lines as landing_lines
from compactor.sources.landing.lines import ValueLines


def lines_of(
    records: list[LogRecord], columns: tuple[RecordColumn, ...] = RECORD_COLUMNS, *, has_lines: bool = False
) -> list[bytes]:
    lines = ValueLines(columns=columns, has_lines=has_lines)
    lines.add(records)
    return b"".join(decode("zstd", [lines.to_bytes()])).split(b"\n")[:-1]


def test_fields_come_last() -> None:
    """A value cannot pass for what its record has, and keeps its own fields as they are written."""
    spoof = b'{"_kafka_key": "false", "a": 1.10}'
    [line] = lines_of([LogRecord(1, spoof, None, b"true", 1_700_000_000_123, (("h", b"1"), ("h", None)))])
    assert line.startswith(b'{"_kafka_key": "false", "a": 1.10,')
    assert orjson.loads(line) == {
        "_kafka_key": "true",
        "a": 1.1,
        "_kafka_timestamp": "2023-11-14T22:13:20.123Z",
        "_kafka_headers": [["h", "1"], ["h", None]],
        "_kafka_offset": 0,
    }


@pytest.mark.parametrize(
    ("record", "column", "expected"),
    [
        (LogRecord(1, b"{}"), "key", None),
        (LogRecord(1, b"{}", None, b"\xff\x00"), "key", "base64:/wA="),
        (LogRecord(1, b" { } ", None, b"a"), "key", "a"),
        (LogRecord(1, b"{}", None, None, None), "timestamp", None),
        (LogRecord(1, b"{}", None, None, -1), "timestamp", "1969-12-31T23:59:59.999Z"),
        (LogRecord(1, b"{}", None, None, 10**18), "timestamp", "1000000000000000000"),
        (LogRecord(1, b"{}"), "headers", []),
        (LogRecord(1, b"{}", None, None, None, (("h", b"\xff"),)), "headers", [["h", "base64:/w=="]]),
        (LogRecord(1, b"{}", None, None, None, b"\xff"), "headers", {"unreadable": "base64:/w=="}),
        (LogRecord(1, b"{}"), "offset", 0),
    ],
)
def test_values(record: LogRecord, column: RecordColumn, expected: object) -> None:
    """Absent is null; what no text can hold is in base 64; a time that no calendar has is its number."""
    [line] = lines_of([record], (column,))
    assert orjson.loads(line) == {f"_kafka_{column}": expected}


@given(st.binary(max_size=30).filter(lambda value: b"\n" not in value), st.binary(max_size=8))
def test_no_line_becomes_a_record(value: bytes, key: bytes) -> None:
    """Whatever it holds: it is one with the fields if and only if it is one without them."""
    [line] = lines_of([LogRecord(1, value, None, key)])

    def is_record(text: bytes) -> bool:
        try:
            return isinstance(orjson.loads(text), dict)
        except orjson.JSONDecodeError:
            return False

    assert is_record(line) == is_record(value)


def test_each_value_is_one_line() -> None:
    """A line feed is white space between tokens, as a carriage return is; a tombstone has no line."""
    values = [b'{"a": 1}\n', None, b'{"a":\n2}', b"", b"\xef\xbb\xbf{}"]
    lines = ValueLines()
    lines.add(LogRecord(at + 1, value) for at, value in enumerate(values))
    assert lines_of([LogRecord(at + 1, value) for at, value in enumerate(values)], ()) == [
        b'{"a": 1}\r', b'{"a":\r2}', b"", b"\xef\xbb\xbf{}",
    ]  # fmt: skip
    assert (lines.records, lines.tombstones, lines.lines) == (5, 1, 4)


def test_a_byte_order_mark_of_the_first_record_is_none_of_the_object() -> None:
    """Else it would be valid where another one was landed before it, and not here."""
    assert lines_of([LogRecord(1, b"\xef\xbb\xbf{}")], ()) == [b" \xef\xbb\xbf{}"]


def test_values_that_are_lines() -> None:
    """A line feed ends one, also at the end of a value; all get the fields of their record."""
    records = [LogRecord(1, b'{"a": 1}\n{"a": 2}\n'), LogRecord(5, b'{"a": 3}')]
    assert lines_of(records, ("offset",), has_lines=True) == [
        b'{"a": 1,"_kafka_offset":0}', b'{"a": 2,"_kafka_offset":0}', b'{"a": 3,"_kafka_offset":4}',
    ]  # fmt: skip


def test_a_value_of_too_many_lines_for_its_fields(monkeypatch: pytest.MonkeyPatch) -> None:
    """It is one line, and so rejected as a whole: its lines would not tell their record."""
    monkeypatch.setattr(landing_lines, "FIELDS_BYTES", 100)
    found = lines_of([LogRecord(1, b"{}\n{}\n", None, b"k" * 60), LogRecord(2, b"{}\n{}")], ("key",), has_lines=True)
    assert found == [b"{}\r{}\r", b'{"_kafka_key":null}', b'{"_kafka_key":null}']
