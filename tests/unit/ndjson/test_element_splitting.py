"""Promises of element splitting: every element once, with its number and place, in bounded memory."""

import json
import tracemalloc

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from compactor.core.errors import FileError
from compactor.ndjson.inspection import inspect_lines
from compactor.ndjson.kinds.element_splitting import ElementSplitter
from compactor.ndjson.lines import Judged, Limits, Receiver

WIDE = Limits(max_line_bytes=1 << 20, max_decompressed_bytes=1 << 30)
FRAGMENTS = [
    b"[",
    b"]",
    b"{",
    b"}",
    b",",
    b":",
    b'"',
    b'"a"',
    b"\\",
    b"1",
    b"\n",
    b" ",
    b'{"a":1}',
    b'{"b":["}"]}',
    b"x",
]
SOUP = st.lists(st.sampled_from(FRAGMENTS), max_size=30).map(b"".join)
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=12,
)
RECORDS = st.lists(st.dictionaries(st.text(max_size=3), VALUES, max_size=4), max_size=6)


def run(data, limits=WIDE, *, size=None, **options):
    rejects, good = [], []
    pieces = [data[at : at + size] for at in range(0, len(data), size)] if size else [data]
    found = inspect_lines(
        pieces, limits, on_reject=rejects.append, on_good=good.append, split=ElementSplitter(), **options
    )
    return found, rejects, b"".join(good).split(b"\n")[:-1]


@settings(max_examples=40)
@given(RECORDS, st.sampled_from([None, 0, 1, 4]), st.integers(1, 40))
def test_the_elements_of_an_array_are_its_records(records, indent, size):
    """However the array is printed, and split into pieces."""
    found, rejects, good = run(json.dumps(records, indent=indent).encode(), size=size)
    assert [json.loads(each) for each in good] == records
    assert (found.lines, found.records, rejects, found.format) == (len(records), len(records), [], "json")


@settings(max_examples=40)
@given(RECORDS, st.sampled_from([None, 1]), st.sampled_from(["", "\n", " ", ",\n", "\r\n\r\n"]), st.integers(1, 40))
def test_documents_may_stand_in_a_row(records, indent, between, size):
    """With white space, commas or nothing between them."""
    _, rejects, good = run(between.join(json.dumps(each, indent=indent) for each in records).encode(), size=size)
    assert ([json.loads(each) for each in good], rejects) == (records, [])


@given(SOUP, st.integers(1, 20), st.integers(1, 40))
@example(b'[{"a":"\n"}]', 9, 3)
@example(b'[[[[["\\"]', 3, 1)
def test_pieces_and_blocks_change_nothing(data, size, longest):
    """Whatever the bytes are, the result depends on them alone; rejects have exact bytes."""
    limits = Limits(max_line_bytes=longest, max_decompressed_bytes=1 << 30)
    results = []
    for options in ({}, {"size": size}, {"size": size, "block_bytes": 1}):
        try:
            found, rejects, good = run(data, limits, **options)
        except FileError as exc:
            results.append(str(exc))
            continue
        for each in rejects:
            raw = data[each.byte_offset : each.byte_offset + len(each.raw)]
            assert each.raw == raw
        assert found.records == len(good) == found.lines - found.rejected_lines
        results.append((found, rejects, good))
    assert results[0] == results[1] == results[2]


def test_elements_have_numbers_and_places():
    """What is no object is rejected with the number of its element and its place in the file."""
    data = b'\xef\xbb\xbf[ 1.10, {"a":1}, [2], "x, y",\n{"a" 2}, NaN ]\n{"b":3} }'
    found, rejects, good = run(data)
    assert good == [b'{"a":1}', b'{"b":3}']
    assert [(each.line_number, each.reason, each.raw) for each in rejects] == [
        (1, "not_an_object", b"1.10"),
        (3, "not_an_object", b"[2]"),
        (4, "not_an_object", b'"x, y"'),
        (5, "invalid_json", b'{"a" 2}'),
        (6, "invalid_json", b"NaN"),
        (8, "invalid_json", b"}"),
    ]
    assert all(data[each.byte_offset :].startswith(each.raw) for each in rejects)
    assert (found.lines, found.blank_lines, found.has_bom) == (8, 0, True)


def test_a_line_feed_in_a_string_stays_wrong():
    """It is no JSON, and is not made JSON; other line feeds become spaces."""
    _, rejects, good = run(b'[{"a":\n1,\r\n"b": "x"}, {"a": "x\ny"}, {"a": "\\\n"}]')
    assert good == [b'{"a": 1,\r "b": "x"}']
    assert [(each.reason, each.raw) for each in rejects] == [
        ("invalid_json", b'{"a": "x\ny"}'),
        ("invalid_json", b'{"a": "\\\n"}'),
    ]


def test_a_long_element_is_kept_in_pieces():
    """It is one reject of several rows, and those around it are records."""
    limits = Limits(max_line_bytes=10, max_decompressed_bytes=1 << 30)
    found, rejects, good = run(b'[{"a":1},{"b":[1,2,3,4]},{"c":2}]', limits, size=7)
    assert good == [b'{"a":1}', b'{"c":2}']
    assert [(each.line_number, each.byte_offset, each.raw) for each in rejects] == [
        (2, 9, b'{"b":[1,2,'),
        (2, 19, b"3,4]}"),
    ]
    assert (found.rejects, found.rejected_lines) == ({"line_too_long": 1}, 1)


@pytest.mark.parametrize("cut", [b'[{"a":1}', b'[{"a":1},', b'[{"a":1}, {"b', b'{"a":1}{"b":"x', b'[{"a":1}] "x'])
def test_a_file_that_ends_too_early_is_unreadable(cut):
    """As a truncated archive is: nothing tells how much is missing."""
    with pytest.raises(FileError, match="after element 1: truncated") as caught:
        run(cut, size=3)
    assert caught.value.status == "unreadable"


def test_a_file_may_be_too_large():
    """All bytes count, also those between elements."""
    with pytest.raises(FileError, match="max_decompressed_bytes = 99") as caught:
        run(b"[" + b" " * 99, Limits(max_line_bytes=10, max_decompressed_bytes=99))
    assert caught.value.status == "too_large"


@pytest.mark.parametrize(
    ("element", "file_bytes"),
    [
        pytest.param(b"{}", 1 << 19, id="small elements"),
        pytest.param(b'{"a":"' + b"x" * 3000 + b'"}', 12 << 20, id="usual elements"),
        pytest.param(b'{"a":"' + b"x" * 99_999, 32 << 20, id="an element without an end"),
    ],
)
def test_memory_does_not_grow_with_the_file(element, file_bytes):
    """It holds a piece, a block and an element, and no more objects than a block may have."""
    limits = Limits(max_line_bytes=1 << 20, max_decompressed_bytes=1 << 30)
    piece = (element + b",") * (200_000 // len(element))
    pieces = (b"[" if not number else piece for number in range(file_bytes // len(piece)))

    def judge(block):
        return Judged(block.count(b"\n"), 0, ())

    tracemalloc.start()
    try:
        with pytest.raises(FileError, match="truncated"):
            ElementSplitter()(pieces, Receiver(limits, judge, lambda _: None))
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 6 << 20
