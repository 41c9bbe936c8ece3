"""What records have beside their values, as fields of their lines."""

from dataclasses import replace

import orjson
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from compactor.core.documents.manifest import ManifestFile
from compactor.core.kafka.ports import Record
from compactor.core.kafka.record_columns import RECORD_COLUMNS, RecordColumn, are_record_columns
from compactor.ndjson.files import line_fields
from compactor.ndjson.files.line_fields import (
    PathValues,
    RecordValues,
    RedrivenValues,
    WithRecordValues,
    places_in,
    redriven_values,
)
from compactor.ndjson.inspection import inspect_lines, refusals
from compactor.ndjson.line_splitting import split_lines
from compactor.ndjson.lines import Judged, Limits, Receiver, Reject
from compactor.ndjson.rawjson import texts
from compactor.schema.schema import NO_NEW_KEYS

COLUMNS = {"year": "2026", 'a"\n': "\u00e9"}
LINES = st.lists(
    st.one_of(
        st.sampled_from(
            [b"", b"{}", b" { } \r", b"{}x", b"{", b"[1]", b"null", b'{"year":null}', b'{"year": 1}', b"{,}", b" {{"]
        ),
        st.binary(max_size=12).map(lambda line: line.replace(b"\n", b"")),
        st.dictionaries(st.text(max_size=4), st.integers()).map(lambda found: str(found).replace("'", '"').encode()),
    ),
    max_size=6,
)


@given(LINES)
@example([b'{"a":1}', b'{"b":2}'])
def test_lines_with_values_of_the_path(lines: list[bytes]) -> None:
    """The same lines are records, with the values of the path before their own."""
    values = PathValues(COLUMNS)
    block = b"".join(line + b"\n" for line in lines)
    changed = values.lines(block).split(b"\n")[:-1]
    reasons = dict(refusals(lines))
    assert dict(refusals(changed)) == reasons
    for index, (line, made) in enumerate(zip(lines, changed, strict=True)):
        if index not in reasons:
            assert texts(made) == {**COLUMNS, **texts(line)}
            assert values.original(made.strip(b" \t\r")) == line.strip(b" \t\r")
    places = [(index, 0, 0, reason) for index, reason in reasons.items()]
    found = [(number, block[start:end], reason) for number, start, end, reason in places_in(block, places)]
    assert found == [(index, lines[index], reason) for index, reason in reasons.items()]


def test_a_line_of_another_file() -> None:
    """A line that has no values of the path is its own original."""
    assert PathValues(COLUMNS).original(b'{"b":1}') == b'{"b":1}'


LIMITS = Limits(max_line_bytes=64, max_decompressed_bytes=1 << 20)


def values_of(records: list[Record], columns: tuple[RecordColumn, ...] = RECORD_COLUMNS) -> RecordValues:
    values = RecordValues(columns)
    values.begin()
    values.note(0, records)
    return values


def lines_of(records: list[Record], columns: tuple[RecordColumn, ...] = RECORD_COLUMNS) -> list[bytes]:
    block = b"".join((each.value or b"") + b"\n" for each in records)
    return judged(WithRecordValues(split_lines, values_of(records, columns)), block)


def judged(split: WithRecordValues, text: bytes) -> list[bytes]:
    """The lines that a judge is given, which takes all of them."""
    found = list[bytes]()

    def judge(block: bytes) -> Judged:
        found.extend(block.split(b"\n")[:-1])
        return Judged(block.count(b"\n"), 0, ())

    split([text], Receiver(replace(LIMITS, max_line_bytes=1 << 16), judge, lambda reject: pytest.fail(str(reject))))
    return found


def test_fields_come_last() -> None:
    """A value cannot pass for what its record has, and keeps its own fields as they are written."""
    spoof = b'{"_kafka_key": "false", "a": 1.10}'
    [line] = lines_of([Record(0, spoof, b"true", 1_700_000_000_123, (("h", b"1"), ("h", None)))])
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
        (Record(0, b"{}"), "key", None),
        (Record(0, b"{}", b"\xff\x00"), "key", "base64:/wA="),
        (Record(0, b" { } ", b"a"), "key", "a"),
        (Record(0, b"{}", None, None), "timestamp", None),
        (Record(0, b"{}", None, -1), "timestamp", "1969-12-31T23:59:59.999Z"),
        (Record(0, b"{}", None, 10**18), "timestamp", "1000000000000000000"),
        (Record(0, b"{}"), "headers", []),
        (Record(0, b"{}", None, None, (("h", b"\xff"),)), "headers", [["h", "base64:/w=="]]),
        (Record(0, b"{}", None, None, b"\xff"), "headers", {"unreadable": "base64:/w=="}),
        (Record(0, b"{}"), "offset", 0),
    ],
)
def test_values(record: Record, column: RecordColumn, expected: object) -> None:
    """Absent is null; what no text can hold is in base 64; a time that no calendar has is its number."""
    [line] = lines_of([record], (column,))
    assert orjson.loads(line) == {f"_kafka_{column}": expected}


@given(st.binary(max_size=30).filter(lambda value: b"\n" not in value), st.binary(max_size=8))
def test_no_line_becomes_a_record(value: bytes, key: bytes) -> None:
    """Whatever it holds: it is one with the fields if and only if it is one without them."""
    [line] = lines_of([Record(0, value, key)])

    def is_record(text: bytes) -> bool:
        try:
            return isinstance(orjson.loads(text), dict)
        except orjson.JSONDecodeError:
            return False

    assert is_record(line) == is_record(value)


def test_each_line_gets_what_its_own_record_has() -> None:
    """Also behind tombstones, offsets without a record, lines that are too long, and in blocks of any length."""
    records = [
        Record(0, b'{"a": 0}', b"0"),
        Record(1, None, b"1"),
        Record(4, b'{"a": "' + b"x" * 200 + b'"}', b"4"),
        Record(5, b'{"a": 5}', b"5"),
        Record(6, b"none", b"6"),
        Record(7, b'{"a": 7}', b"7"),
    ]
    by_offset = {each.offset: each.value or b"" for each in records}
    text = b"".join(by_offset.get(offset, b"") + b"\n" for offset in range(8))
    for block_bytes in (1, 16, 1 << 16):
        found, rejects = list[bytes](), list[Reject]()
        split = WithRecordValues(split_lines, values_of(records, ("key", "offset")), frozenset({b'{"a": 7}'}))
        counts = split_lines_with(split, text, found, rejects, block_bytes)
        assert [orjson.loads(line) for line in found] == [
            {"a": 0, "_kafka_key": "0", "_kafka_offset": 0},
            {"a": 5, "_kafka_key": "5", "_kafka_offset": 5},
        ]
        assert counts == (8, 3, 2, {"line_too_long": 1, "invalid_json": 1, "parsers_disagree": 1})
        assert [(each.line_number, each.raw) for each in rejects if each.reason != "line_too_long"] == [
            (7, b"none"),
            (8, b'{"a": 7}'),
        ]
        for each in rejects:
            assert text[each.byte_offset :].startswith(each.raw)


def test_a_value_of_too_many_lines_for_its_fields(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its lines are rejected, except blank ones: each of them would have the long key. Other records are not."""
    monkeypatch.setattr(line_fields, "RECORD_FIELDS_BYTES", 100)
    values = RecordValues(("key",), has_lines=True)
    records = [
        Record(0, b"{}\n\n[]", b"k" * 20),
        Record(1, b"{}\n{}", b"k" * 20),
        Record(2, b"{}", b"k" * 200),
    ]
    values.note(0, records)
    found, rejects = list[bytes](), list[Reject]()
    text = b"".join((each.value or b"") + b"\n" for each in records)
    counts = split_lines_with(WithRecordValues(split_lines, values), text, found, rejects, 1 << 16)
    assert counts == (6, 1, 3, {"fields_too_large": 2})
    assert rejects == [Reject(1, 0, "fields_too_large", b"{}"), Reject(3, 4, "fields_too_large", b"[]")]
    assert [len(orjson.loads(line)["_kafka_key"]) for line in found] == [20, 20, 200]


def test_lines_are_judged_some_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """However long their fields, so that no block takes many times its size; each fault keeps its place."""
    records = [Record(offset, b"no" if offset % 3 == 1 else b'{"a": %d}' % offset, b"k" * 30) for offset in range(9)]
    text = b"".join((each.value or b"") + b"\n" for each in records)
    whole, in_pieces = list[Reject](), list[Reject]()
    once = split_lines_with(WithRecordValues(split_lines, values_of(records)), text, [], whole, 1 << 16)
    monkeypatch.setattr(line_fields, "PIECE_BYTES", 100)
    sizes = list[int]()

    def judge(block: bytes) -> Judged:
        sizes.append(len(block))
        return Judged(block.count(b"\n"), 0, ())

    WithRecordValues(split_lines, values_of(records))([text], Receiver(LIMITS, judge, in_pieces.append))
    assert len(sizes) > 2
    assert max(sizes) < 400
    again = split_lines_with(WithRecordValues(split_lines, values_of(records)), text, [], in_pieces, 1 << 16)
    assert (again, in_pieces) == (once, whole)
    assert [each.line_number for each in whole] == [2, 5, 8]


def test_redriven_lines_have_no_fields_of_their_own() -> None:
    """The number of a line tells its offset, unless values are lines. Nothing else of its record is known."""
    spoof = b'{"_kafka_key": "admin", "_kafka_offset": 9}'
    lines = ManifestFile(
        uri="s3://state/redriven/a.gz",
        source_uri="kafka://main/events/0?from=40&to=50",
        record_columns=("key", "offset"),
    )
    values = redriven_values(lines)
    assert isinstance(values, RedrivenValues)
    _, line, _ = judged(WithRecordValues(split_lines, values), b"\n" + spoof + b"\n\n")
    assert orjson.loads(line) == {"_kafka_key": None, "_kafka_offset": 41}
    of_lines = redriven_values(lines.model_copy(update={"kafka_values": "lines"}))
    assert of_lines is not None
    assert orjson.loads(b"{" + of_lines.of_line(3) + b"}") == {"_kafka_key": None, "_kafka_offset": None}


@pytest.mark.parametrize(
    "change",
    [{"source_uri": None}, {"record_columns": None}, {"source_uri": "s3://raw/a"}],
    ids=["the input itself", "no columns", "lines of a file"],
)
def test_other_files_get_no_fields(change: dict[str, object]) -> None:
    """Only redriven lines of a range whose rows have columns of records."""
    lines = ManifestFile(uri="s3://s/a", source_uri="kafka://main/events/0?from=4&to=5", record_columns=("key",))
    assert redriven_values(lines.model_copy(update=change)) is None


def split_lines_with(
    split: WithRecordValues, text: bytes, found: list[bytes], rejects: list[Reject], block_bytes: int
) -> tuple[int, int, int, dict[str, int]]:
    counts = inspect_lines(
        [text],
        LIMITS,
        on_reject=rejects.append,
        on_good=lambda block: found.extend(block.split(b"\n")[:-1]),
        split=split,
        key_limits=NO_NEW_KEYS,
        block_bytes=block_bytes,
    )
    return counts.lines, counts.blank_lines, counts.records, counts.rejects


@pytest.mark.parametrize(
    ("found", "expected"),
    [
        (["key"], True),
        (["offset", "key"], True),
        ([], False),
        (["key", "key"], False),
        (["value"], False),
        ("key", False),
    ],
)
def test_columns_of_a_document(found: object, expected: bool) -> None:
    """Each once, and only those that there are."""
    assert are_record_columns(found) == expected
