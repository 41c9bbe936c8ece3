"""Promises of records in documents: each element once, by an oracle that parses the whole file; in both languages."""

import json

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from compactor.adapters.local.native.kernel import native_scanner
from compactor.core.errors import FileError
from compactor.core.inputs.record_place import DOCUMENTS, RecordPlace
from compactor.ndjson.inspection import inspect_lines
from compactor.ndjson.kinds.element_splitting import ElementScanner, ElementSplitter
from compactor.ndjson.lines import Limits
from tests.support import extras
from tests.support.record_oracle import REFUSED, LateError, plain, records

WIDE = Limits(max_line_bytes=1 << 20, max_decompressed_bytes=1 << 30)
PYTHON = pytest.param(ElementScanner, id="python")
NATIVE = pytest.param(native_scanner, marks=extras.NATIVE.needed, id="native")
SCANNERS = pytest.mark.parametrize("scanner", [PYTHON, NATIVE])
PLACES = ["Records[]", "a[].b[]", "a.b[]", "a[].b.Records[]", "a[][]", ""]
KEYS = st.sampled_from(["Records", "a", "b", "k", "own\\er", "\u00fc"])
SCALARS = (
    st.none() | st.booleans() | st.integers(-9, 99) | st.sampled_from(["", "x", '"', "\\", "]}", "a\nb", "\u00fc"])
)
JSON = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(KEYS, inner, max_size=4),
    max_leaves=25,
)
FILES = st.lists(JSON, min_size=1, max_size=4)


def run(data, place, scanner, limits=WIDE, *, size=None, **options):
    """The outcome, however the file comes in pieces."""
    rejects, good = [], []
    pieces = [data[at : at + size] for at in range(0, len(data), size)] if size else [data]
    split = ElementSplitter(place, scanner)
    try:
        found = inspect_lines(pieces, limits, on_reject=rejects.append, on_good=good.append, split=split, **options)
    except FileError as exc:
        return str(exc), exc.status
    return found, rejects, b"".join(good)


def on_path(path, leaves):
    """Documents that mostly have the arrays of a path."""
    shape = leaves
    for step in reversed(RecordPlace(path).steps):
        shape = (
            st.lists(shape | leaves, max_size=3)
            if step is None
            else st.tuples(leaves, shape, st.dictionaries(KEYS, leaves, max_size=2), st.booleans()).map(
                lambda each, step=step: _object(step, *each)
            )
        )
    return shape


def _object(step, first, inner, others, is_last):
    beside = {"k": first} | {key: value for key, value in others.items() if key != step}
    return {**beside, step: inner} if is_last else {step: inner, **beside}


CASES = st.sampled_from(PLACES).flatmap(
    lambda path: st.tuples(st.just(path), st.lists(on_path(path, JSON) | JSON, min_size=1, max_size=4))
)


@SCANNERS
@settings(max_examples=150, deadline=None)
@given(CASES, st.sampled_from([None, 1]), st.sampled_from(["", "\n", ", "]), st.integers(1, 60), st.booleans())
@example(("Records[]", [{"Records": [{"a": 1}, 5, None]}, {"Records": None}, {}]), None, "\n", 3, False)
@example(("a[].b[]", [{"a": [{"k": 1, "b": [{}]}, {"b": [{"k": 2}], "k": 3}]}]), None, "\n", 3, True)
def test_the_records_are_those_of_the_parsed_file(scanner, case, indent, between, size, has_kept):
    path, values = case
    place = RecordPlace.parse(path, ("k", "own\\er") if has_kept and path else ())
    data = between.join(json.dumps(each, indent=indent, ensure_ascii=False) for each in values)
    if between == "" and any(not isinstance(each, list | dict) for each in values):
        return
    found = run(data.encode(), place, scanner, size=size)
    try:
        expected = records(data, place.steps, place.keep)
    except LateError as late:
        expected = [str(late)]
    if isinstance(found[0], str):
        assert (f"the key {expected[0]!r} comes after" in found[0], found[1]) == (True, "not_ndjson")
        return
    counts, rejects, good = found
    assert [json.loads(each) for each in good.split(b"\n")[:-1]] == [
        plain(each) for each in expected if each is not REFUSED
    ]
    assert counts.lines == len(expected)
    assert [each.line_number for each in rejects] == [at for at, each in enumerate(expected, 1) if each is REFUSED]
    assert all(data.encode()[each.byte_offset :].startswith(each.raw) for each in rejects)


FRAGMENTS = [
    *(bytes([each]) for each in b'[]{},:"\\ \n1x'),
    b'"a":',
    b'"Records":[',
    b'{"Records":[',
    b'"k":"v",',
    b'"k":[1,2]',
    b'{"a":1}',
    b'{"b":["}"]}',
    b"null",
    b'"Record\\u0073":[{}]',
    b"\xff",
]
SOUP = st.lists(st.sampled_from(FRAGMENTS), max_size=30).map(b"".join)


@extras.NATIVE.needed
@settings(max_examples=400, deadline=None)
@given(SOUP, st.sampled_from(["Records[]", "a[].Records[]", ""]), st.booleans(), st.integers(1, 20), st.integers(4, 40))
@example(b'{"Records":[{"a":1}],"k":1}', "Records[]", True, 3, 40)
@example(b'{"k":{"a":1}x', "Records[]", True, 3, 4)
def test_both_scanners_find_the_same(data, path, has_kept, size, longest):
    """Whatever the bytes are, and in whatever pieces they come."""
    limits = Limits(max_line_bytes=longest, max_decompressed_bytes=1 << 30)
    place = RecordPlace(path, ("k",) if has_kept and path else ())
    first, *others = (
        run(data, place, scanner, limits, **options)
        for scanner in (ElementScanner, native_scanner)
        for options in ({}, {"size": size}, {"size": size, "block_bytes": 1})
    )
    assert all(each == first for each in others)


@SCANNERS
def test_refusals_have_reasons_places_and_what_is_carried(scanner):
    data = b'\xef\xbb\xbf{"k":"v\n","o":[1],"Records":[{"a":1},2,{"b" 3}, {"c":"\n"},{}]} {"x":1}\n {"Records":"no"} 7'
    place = RecordPlace("Records[]", ("o", "k"))
    found, rejects, good = run(data.replace(b"v\n", b"v"), place, scanner, size=5)
    data = data.replace(b"v\n", b"v")
    assert good == b'{"k":"v","o":[1],"a":1}\n{"k":"v","o":[1]}\n'
    assert [(each.line_number, each.reason, each.raw, each.fields) for each in rejects] == [
        (2, "not_an_object", b"2", b'"k":"v","o":[1]'),
        (3, "invalid_json", b'{"b" 3}', b'"k":"v","o":[1]'),
        (4, "invalid_json", b'{"c":"\n"}', b'"k":"v","o":[1]'),
        (6, "no_records", b'{"x":1}', b""),
        (7, "no_records", b'"no"', b""),
        (8, "no_records", b"7", b""),
    ]
    assert all(data[each.byte_offset :].startswith(each.raw) for each in rejects)
    assert (found.lines, found.format, found.place) == (8, "json", place)


@SCANNERS
@pytest.mark.parametrize(
    ("data", "status", "words"),
    [
        (b'{"Records":[{"a":1}', "unreadable", "after element 1: truncated"),
        (b'{"Records":[{"a":1}]', "unreadable", "after element 1: truncated"),
        (b'{"Records":[{"a":1}],', "unreadable", "truncated"),
        (b'{"Records":[{"a":1}] "k":1}', "unreadable", "byte 21, records at Records[]: no JSON"),
        (b'{"Records" [{"a":1}]}', "unreadable", "byte 11"),
        (b'{Records:[{"a":1}]}', "unreadable", "byte 1"),
        (b'{"x":,"Records":[{"a":1}]}', "unreadable", "byte 5"),
        (b'{"Records":[{"a":1}],"k":1}', "not_ndjson", "the key 'k' comes after records"),
        (b'{"k":tru,"Records":[{"a":1}]}', "not_ndjson", "the value of 'k' is invalid"),
        (b'{"k":"' + b"x" * 30 + b'","Records":[{"a":1}]}', "not_ndjson", "the value of 'k' is invalid, or longer"),
        (b'{"' + b"x" * 30 + b'":1,"Records":[{"a":1}]}', "not_ndjson", "a key on the path"),
        (b'{"x":"' + b"x" * 30 + b'","y":1}', "not_ndjson", "a document longer than max_line_bytes"),
    ],
)
@pytest.mark.parametrize("size", [1, 7, None])
def test_a_fault_around_the_records_is_the_whole_files(scanner, data, status, words, size):
    found = run(data, RecordPlace("Records[]", ("k",)), scanner, Limits(25, 1 << 30), size=size)
    assert found[1] == status
    assert words in found[0]


@SCANNERS
def test_what_is_carried_counts_as_decoded(scanner):
    """A small file cannot become any number of bytes."""
    data = b'{"k":"' + b"x" * 900 + b'","Records":[' + b",".join([b"{}"] * 1_000) + b"]}"
    found = run(data, RecordPlace("Records[]", ("k",)), scanner, Limits(1_000, 100_000), block_bytes=10_000)
    assert (found[1], "with what is carried into its records" in found[0]) == ("too_large", True)


@pytest.mark.parametrize(
    ("text", "steps"),
    [
        ("Records[]", ("Records", None)),
        ("a[].b[].c[]", ("a", None, "b", None, "c", None)),
        ("a.b[]", ("a", "b", None)),
        ('"a.b"[]', ("a.b", None)),
        ("a[][]", ("a", None, None)),
        ("[].a[]", ("a", None)),
        ("[]", ()),
        ("", ()),
    ],
)
def test_paths(text, steps):
    assert RecordPlace.parse(text).steps == steps
    assert (RecordPlace.parse(text) == DOCUMENTS) is not bool(steps)


@pytest.mark.parametrize("text", ["a", "a[", ".a[]", "a..b[]", "a[]b[]", "a[1]", "a[].b", 'a"b"[]', "a b[]", "a[]."])
def test_what_is_no_path(text):
    with pytest.raises(ValueError, match="such as Records"):
        RecordPlace.parse(text)
