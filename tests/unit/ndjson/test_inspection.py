import tracemalloc
from unittest.mock import patch

import orjson
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from compactor.core.errors import FileError
from compactor.ndjson import line_splitting
from compactor.ndjson.inspection import REASONS, Inspected, inspect_lines
from compactor.ndjson.line_splitting import split_lines
from compactor.ndjson.lines import Judged, Limits, Receiver, Reject
from compactor.schema.schema import NO_NEW_KEYS, KeyLimits

BOM = b"\xef\xbb\xbf"
WIDE = Limits(max_line_bytes=1 << 20, max_decompressed_bytes=1 << 30)
FRAGMENTS = [
    b"{}",
    b'{"a":1}',
    b'{"b":"x"} ',
    b"\n",
    b"\n\n",
    b"\r\n",
    b" ",
    b"x",
    b"[1]",
    b"1",
    b"\xff",
    b"\0",
    b"{",
    BOM,
]
SOUP = st.one_of(st.binary(max_size=80), st.lists(st.sampled_from(FRAGMENTS), max_size=30).map(b"".join))


def run(data, limits=WIDE, *, size=None, **options) -> tuple[Inspected, list[Reject], bytes]:
    rejects, good = [], []
    pieces = (data[at : at + size] for at in range(0, len(data), size)) if size else [data]
    found = inspect_lines(pieces, limits, on_reject=rejects.append, on_good=good.append, **options)
    return found, rejects, b"".join(good)


def expected_fate(line: bytes) -> str:
    if not line.strip(b" \t\r"):
        return "blank"
    try:
        return "good" if isinstance(orjson.loads(line), dict) else "reject"
    except orjson.JSONDecodeError:
        return "reject"


@given(SOUP)
@example(BOM)
@example(BOM + b"\n{}")
@example(BOM[:2])
@example(BOM + BOM + b"{}\n")
def test_every_byte_is_accounted_for(data):
    """Any bytes at all become records, rejects and blanks that add up and re-assemble the input."""
    found, rejects, good = run(data)
    body = data.removeprefix(BOM)
    lines = body.split(b"\n")
    if lines[-1] == b"":
        lines.pop()
    fates = [expected_fate(line) for line in lines]
    assert found.has_bom == data.startswith(BOM)
    assert found.decoded_bytes == len(data)
    assert (found.lines, found.blank_lines) == (len(lines), fates.count("blank"))
    assert found.records + found.rejected_lines + found.blank_lines == found.lines
    assert found.rejected_lines == fates.count("reject") == sum(found.rejects.values())
    assert good == b"".join(line + b"\n" for line, fate in zip(lines, fates, strict=True) if fate == "good")
    assert [reject.raw for reject in rejects] == [
        line for line, fate in zip(lines, fates, strict=True) if fate == "reject"
    ]
    for reject in rejects:
        assert lines[reject.line_number - 1] == reject.raw
        assert data[reject.byte_offset :].startswith(reject.raw)
        assert reject.reason in REASONS


@given(SOUP, st.integers(1, 12), st.integers(1, 20), st.integers(1, 13))
def test_pieces_change_nothing(data, size, max_line_bytes, large_bytes):
    """Where the bytes are cut on their way makes no difference, over-long lines included, held as they came or not."""
    limits = Limits(max_line_bytes, 1 << 20)
    expected = run(data, limits)
    with patch.object(line_splitting, "_LARGE_BYTES", large_bytes):
        assert run(data, limits, size=size) == expected


def test_a_line_in_tiny_pieces_takes_little_memory():
    """A producer may compress a file so that two bytes come at a time: a list of these takes 30 times as much."""
    line = b'{"a":"%s"}\n' % (b"x" * 300_000)

    def peak_bytes(size: int) -> int:
        tracemalloc.start()
        try:
            assert run(line, size=size)[0].records == 1
            return tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()

    assert peak_bytes(2) < peak_bytes(len(line)) + 3 * len(line)


@given(SOUP, st.integers(1, 20), st.integers(1, 7), st.integers(1, 12))
def test_blocks_change_nothing(data, max_line_bytes, block_bytes, size):
    """The number of lines inspected at once makes no difference."""
    limits = Limits(max_line_bytes, 1 << 20)
    expected = run(data, limits)
    assert run(data, limits, block_bytes=block_bytes, size=size) == expected


@given(SOUP, st.integers(1, 20))
def test_over_long_lines_are_kept_in_pieces(data, max_line_bytes):
    """A line longer than the limit is one rejected line, and its pieces join to its exact bytes."""
    found, rejects, _ = run(data, Limits(max_line_bytes, 1 << 20))
    lines = data.removeprefix(BOM).split(b"\n")
    pieces: dict[int, list[Reject]] = {}
    for reject in rejects:
        pieces.setdefault(reject.line_number, []).append(reject)
        assert data[reject.byte_offset :].startswith(reject.raw)
        assert 0 < len(reject.raw) <= max_line_bytes
    for number, line in enumerate(lines, 1):
        if len(line) > max_line_bytes:
            assert b"".join(piece.raw for piece in pieces[number]) == line
            assert {piece.reason for piece in pieces[number]} == {"line_too_long"}
            assert len(pieces[number]) == -(-len(line) // max_line_bytes)
        else:
            assert len(pieces.get(number, [])) <= 1
    assert found.rejected_lines == len(pieces)
    assert found.records + found.rejected_lines + found.blank_lines == found.lines


@pytest.mark.parametrize("size", [None, 1, 5])
@pytest.mark.parametrize("neighbour", [b"", b'{"b":"%s"}\n' % (b"x" * 99)], ids=["alone", "beside a longer line"])
def test_a_line_of_exactly_the_limit_is_a_record(size, neighbour):
    """One byte more is rejected, however the line arrives."""
    line = b'{"a":123}'
    for data in (line + b"\n" + neighbour, neighbour + line):
        for limit, records in ((len(line), 1), (len(line) - 1, 0)):
            found, _, good = run(data, Limits(limit, 1 << 20), size=size)
            assert (found.records, good) == (records, (line + b"\n") * records)


@given(SOUP, st.integers(1, 20))
def test_only_a_single_line_makes_a_longer_block(data, block_bytes):
    """What is judged in one call is bounded by the block size, unless it is one line."""
    blocks = []

    def judge(block):
        blocks.append(block)
        return Judged(block.count(b"\n"), 0, ())

    split_lines([data], Receiver(WIDE, judge, lambda _: None, block_bytes))
    assert all(len(block) <= block_bytes or block.count(b"\n") == 1 for block in blocks)


INVALID = {
    "trailing garbage": (b'{"a":1}x', "invalid_json"),
    "second object": (b'{"a":1}{"b":2}', "invalid_json"),
    "second object behind a space": (b'{"a":1} {"b":2}', "invalid_json"),
    "NaN": (b'{"a":NaN}', "invalid_json"),
    "Infinity": (b'{"a":-Infinity}', "invalid_json"),
    "single quotes": (b"{'a':1}", "invalid_json"),
    "bare key": (b"{a:1}", "invalid_json"),
    "comment": (b'{"a":1} // one', "invalid_json"),
    "block comment": (b'{"a":/* one */1}', "invalid_json"),
    "trailing comma": (b'{"a":1,}', "invalid_json"),
    "truncated": (b'{"a":"b', "invalid_json"),
    "leading zero": (b'{"a":01}', "invalid_json"),
    "lone high surrogate": (b'{"a":"\\ud800"}', "invalid_json"),
    "lone low surrogate": (b'{"a":"\\udc00"}', "invalid_json"),
    "encoded surrogate": (b'{"a":"\xed\xa0\x80"}', "invalid_utf8"),
    "broken UTF-8": (b'{"a":"\xff"}', "invalid_utf8"),
    "cut UTF-8": (b'{"a":"\xc3"}', "invalid_utf8"),
    "over-long UTF-8": (b'{"a":"\xc0\xaf"}', "invalid_utf8"),
    "UTF-16": ('{"a":1}'.encode("utf-16"), "invalid_utf8"),
    "NUL in a string": (b'{"a":"\0"}', "invalid_json"),
    "NUL behind": (b'{"a":1}\0', "invalid_json"),
    "tab in a string": (b'{"a":"\t"}', "invalid_json"),
    "form feed behind": (b'{"a":1}\x0c', "invalid_json"),
    "byte order mark inside": (BOM + b'{"a":1}', "invalid_json"),
    "array": (b'[{"a":1}]', "not_an_object"),
    "number": (b"1", "not_an_object"),
    "string": (b'"{}"', "not_an_object"),
    "null": (b"null", "not_an_object"),
    "true": (b"true", "not_an_object"),
    "deep": (b'{"a":' + b"[" * 1100 + b"]" * 1100 + b"}", "too_deep"),
}


@pytest.mark.parametrize(("line", "reason"), INVALID.values(), ids=INVALID)
def test_an_invalid_line_is_rejected_with_its_reason(line, reason):
    """Each kind of invalid line keeps its reason, its place and its exact bytes, and leaves its neighbours alone."""
    found, rejects, good = run(b'{"first":1}\n' + line + b'\r\n{"last":1}')
    assert rejects == [Reject(2, 12, reason, line + b"\r")]
    assert good == b'{"first":1}\n{"last":1}\n'
    assert found.rejects == {reason: 1}
    assert found.keys == ("first", "last")


VALID = {
    "white space around": b' \t{"a":1} \t\r',
    "white space inside": b'{ "a" :\t[ 1 ,2 ] }',
    "duplicate key": b'{"a":1,"a":2}',
    "empty object": b"{}",
    "empty key": b'{"":1}',
    "surrogate pair": b'{"a":"\\ud83d\\ude00"}',
    "unicode": '{"ключ":"日本 😀"}'.encode(),
    "escaped NUL": b'{"a":"\\u0000"}',
    "large integer": b'{"a":' + b"9" * 40 + b"}",
    "deep": b'{"a":' + b"[" * 1023 + b"]" * 1023 + b"}",
}


@pytest.mark.parametrize("line", VALID.values(), ids=VALID)
def test_a_valid_line_is_kept_byte_for_byte(line):
    """A record is never touched, whatever its white space and spelling."""
    found, rejects, good = run(line)
    assert (found.records, rejects, good) == (1, [], line + b"\n")
    assert found.keys == tuple(orjson.loads(line))


@pytest.mark.parametrize(
    ("data", "lines", "blank"),
    [
        (b"", 0, 0),
        (b"\n", 1, 1),
        (b"\r\n \t\n\n", 3, 3),
        (b"{}\n\n", 2, 1),
        (b"{}\n ", 2, 1),
        (b"{}", 1, 0),
        (BOM, 0, 0),
    ],
)
def test_lines_are_counted(data, lines, blank):
    """A last line without a line feed counts, and the empty rest after a last line feed does not."""
    found, _, _ = run(data)
    assert (found.lines, found.blank_lines, found.records) == (lines, blank, lines - blank)


def test_offsets_start_behind_the_byte_order_mark():
    """The byte order mark is skipped but counted: the first line begins at byte 3."""
    found, rejects, good = run(BOM + b"x\n\n{}\ny")
    assert rejects == [Reject(1, 3, "invalid_json", b"x"), Reject(4, 9, "invalid_json", b"y")]
    assert (found.has_bom, good) == (True, b"{}\n")


def test_keys_come_in_first_seen_order():
    """No key is lost because it came late or in one line only, and each is named once."""
    lines = [{"b": 1, "a": 2}, {"a": 1}, {"c": 1, "b": 2, "A": 3}, {}, {"ä": None}]
    found, _, _ = run(b"\n".join(map(orjson.dumps, lines)))
    assert found.keys == ("b", "a", "c", "A", "ä")


def test_keys_of_rejected_lines_do_not_count():
    """A refused line does not make columns."""
    found, rejects, good = run(b'{"a":1}\n \t{"b":2}\r\n{"c":3}', refused=frozenset({b'{"b":2}'}))
    assert found.keys == ("a", "c")
    assert rejects == [Reject(2, 8, "parsers_disagree", b' \t{"b":2}\r')]
    assert good == b'{"a":1}\n{"c":3}\n'


def test_a_key_too_long_for_a_column_is_not_collected():
    """Its line is a record like any other. A key of exactly the limit is collected; characters count, not bytes."""
    longest = "ü" * 9
    lines = [{"a": 1}, {"b": 1, longest + "x": 2}, {longest: 1}, {"a": 2, longest + "x": 2}, {"c": 1, "a": 2}]
    found, rejects, _ = run(b"\n".join(map(orjson.dumps, lines)), key_limits=KeyLimits(10, 9))
    assert (found.keys, found.has_further_keys) == (("a", "b", longest, "c"), True)
    assert (found.records, rejects) == (5, [])
    assert not run(b'{"%s":1}' % longest.encode(), key_limits=KeyLimits(10, 9))[0].has_further_keys


def test_of_a_flood_of_keys_the_first_ones_are_collected():
    """The file is read to its end with all its lines; the memory for keys has an end."""
    limits = KeyLimits(max_new_columns=2)
    lines = [orjson.dumps({f"key-{number}": 1, f"kez-{number}": 1}) for number in range(limits.max_keys)]
    found, rejects, _ = run(b"\n".join(lines), key_limits=limits)
    assert (found.records, rejects, found.has_further_keys) == (len(lines), [], True)
    assert found.keys[:3] == ("key-0", "kez-0", "key-1")
    assert len(found.keys) == limits.max_keys
    assert not run(b"\n".join(lines[: limits.max_keys // 2]), key_limits=limits)[0].has_further_keys


def test_keys_with_a_column_are_not_collected():
    """However long or many they are, and also behind a key that is not collected."""
    known = frozenset(["x" * 300, "known"])
    lines = [{"y" * 300: 1, "known": 1}, {"known": 1, "new": 1}, {"x" * 300: 1}]
    found, _, _ = run(b"\n".join(map(orjson.dumps, lines)), known_keys=known)
    assert (found.keys, found.has_further_keys) == (("new",), True)
    assert not run(orjson.dumps(dict.fromkeys(known, 1)), known_keys=known)[0].has_further_keys


def test_the_keys_with_a_column_that_records_have():
    """Without those of rejected lines. Where not every record was searched, they may have any of them."""
    columns = frozenset(["a", "b", "late", "unused"])
    data = b'{"a":1}\n{"refused":1,"unused":2}\n{"new":1,"b":2}\n{"a":3,"late":null}'
    refused = frozenset([b'{"refused":1,"unused":2}'])
    assert run(data, known_keys=columns, refused=refused)[0].present_keys == {"a", "b", "late"}
    assert run(data, known_keys=columns, refused=refused, discovery="declared")[0].present_keys == columns
    assert run(data, known_keys=columns, refused=refused, key_limits=NO_NEW_KEYS)[0].present_keys == columns


@pytest.mark.parametrize("size", [None, 1, 1000])
def test_a_file_that_decodes_to_too_much_is_refused(size):
    """The limit on decoded bytes stops a bomb; a file of exactly the limit is read."""
    data = b"{}\n" * 1000
    assert run(data, Limits(100, len(data)), size=size)[0].records == 1000
    with pytest.raises(FileError, match="expected at most max_decompressed_bytes = 2999") as caught:
        run(data, Limits(100, len(data) - 1), size=size)
    assert caught.value.status == "too_large"


@pytest.mark.parametrize(
    ("line", "repeats"),
    [(b"x" * 16384, 1024), (b"x\n", 6), (b"\n", 6), (b"{}\n", 16)],
    ids=["endless", "bad", "blank", "good"],
)
def test_memory_does_not_grow_with_the_file(line, repeats):
    """A file of any shape is inspected within the size of a piece and of a line."""
    piece = line * (16384 // len(line))
    tracemalloc.start()
    try:
        inspect_lines((piece for _ in range(repeats)), WIDE, on_reject=lambda _: None, on_good=lambda _: None)
        assert tracemalloc.get_traced_memory()[1] < 5 << 20
    finally:
        tracemalloc.stop()


def test_declared_discovery_only_counts():
    """Without full discovery, a line that begins with a brace is a record unless it is over-long or refused."""
    data = b'{"a":1}\n\n \r\n {not json\n{"b":2}\n\n' + b"x" * 40 + b"\n[{},{}]\nnot json\n[]\n1e400"
    found, rejects, good = run(data, Limits(30, 1000), refused=frozenset({b'{"b":2}'}), discovery="declared")
    assert (found.lines, found.blank_lines, found.records, found.keys) == (11, 3, 2, ())
    assert good == b'{"a":1}\n {not json\n'
    assert [(reject.line_number, reject.reason) for reject in rejects] == [
        (5, "parsers_disagree"),
        (7, "line_too_long"),
        (7, "line_too_long"),
        (8, "not_an_object"),
        (9, "invalid_json"),
        (10, "not_an_object"),
        (11, "not_an_object"),
    ]


@settings(max_examples=50)
@given(SOUP, st.integers(1, 12))
def test_declared_discovery_counts_the_same_lines(data, size):
    """The discovery mode may change the classification of lines, but not their number."""
    full, declared = run(data, size=size)[0], run(data, size=size, discovery="declared")[0]
    assert (full.lines, full.blank_lines) == (declared.lines, declared.blank_lines)
    assert full.records <= declared.records
    assert full.records + full.rejected_lines == declared.records + declared.rejected_lines


@pytest.mark.parametrize(
    "text",
    [
        '{"a":1e400}',
        '{"a":-1e400,"b":[1E+999]}',
        '{"a":"1e400","b":1e400}',
        '{"a":%s}' % ("9" * 5000),
        '{"a":"\\"","b":1e400}',
    ],
)
def test_numbers_beyond_a_double_are_records(text):
    """JSON sets no limit to numbers, and the compactor keeps their text."""
    found, rejects, _ = run(text.encode() + b"\n", Limits(1 << 20, 1 << 20))
    assert (found.records, rejects) == (1, [])


def test_quotes_without_end_cost_no_more_than_their_length():
    """An unterminated string after a number beyond a double is rejected quickly, however many quotes it has."""
    line = b'{"a":1e400,"' + b'\\"' * 2_000_000
    found, _, _ = run(line + b"\n", Limits(1 << 23, 1 << 24))
    assert (found.records, found.rejects) == (0, {"invalid_json": 1})


@pytest.mark.parametrize(
    "text",
    [
        "01e400",
        "--1e400",
        "1e400.5",
        "1e400x",
        ".1e400",
        "1.e400",
        "1e400e1",
        "1-1e400",
        "+1e400",
        "1e400 1e400",
        '1e400"',
    ],
)
def test_what_is_no_number_stays_a_reject(text):
    """A number beyond a double does not hide another error in its line."""
    found, _, _ = run(b'{"a":%s,"b":1e400}\n' % text.encode(), Limits(1 << 20, 1 << 20))
    assert (found.records, found.rejects) == (0, {"invalid_json": 1})
