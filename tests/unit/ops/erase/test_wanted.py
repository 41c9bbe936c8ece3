"""What holds a value: by its key in JSON, however it is written, and as a word anywhere in what is no JSON."""

import json
from time import process_time

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from compactor.ops.erase.wanted import Wanted, path_of
from compactor.schema.column_types import parse_type

VALUES = frozenset({"ann", "7", "1.50", "true", "x y", "é", "😀"})
HELD = (
    '{"id": "ann"}',
    '{"id": "\\u0061nn"}',
    '{"\\u0069d": "ann"}',
    '{"id": 7, "n": 8}',
    '{"id": 1.50}',
    '{"id": true}',
    '{"id": "ann", "id": "bob"}',
    '{"id": ["bob", "ann"]}',
    '{"id": "[\\"ann\\"]"}',
    '{"id": "\\ud83d\\ude00"}',
    '[{"id": "ann"}]',
    '{"id": " \\n[\\"ann\\"]"}',
    '{"id": "ann"',
    "id=ann;",
    "7",
    "broken x y",
    'broken "\\u00e9"',
    'broken "{\\"id\\": \\"\\\\u0061nn\\"}',
)
NOT_HELD = (
    '{"id": "bob", "n": "ann"}',
    '{"id": "annette"}',
    '{"id": 7.0}',
    '{"id": 1.5}',
    '{"id": null}',
    '{"id": {"id": "ann"}}',
    '{"user": {"id": "ann"}}',
    "broken 17 annette 7a x  y",
    "",
)


@pytest.mark.parametrize("line", HELD)
@pytest.mark.parametrize("more", [0, 100], ids=["few", "many"])
def test_lines_that_hold_one(line: str, more: int) -> None:
    """Of few values and of many, which are searched in another way."""
    assert Wanted(("id",), VALUES | {f"other-{number}" for number in range(more)}).in_line(line.encode())


@pytest.mark.parametrize("line", NOT_HELD)
def test_lines_that_hold_none(line: str) -> None:
    """Other keys, other values, and parts of longer words."""
    assert not Wanted(("id",), VALUES).in_line(line.encode())


@pytest.mark.parametrize(
    ("key", "path"),
    [("/user/id", ("user", "id")), ("user/id", ("user/id",)), ("/a~1b/c~0d", ("a/b", "c~d")), ("/", ("",))],
)
def test_a_pointer(key: str, path: tuple[str, ...]) -> None:
    """A key that begins with a slash is a JSON Pointer; any other is the key itself."""
    assert path_of(key) == path


def test_a_nested_key() -> None:
    """In objects, in arrays of objects, and in JSON text in a string; neither above nor below its place."""
    wanted = Wanted(path_of("/user/id"), VALUES)
    for value in ({"id": "ann"}, [{"id": "bob"}, {"id": "ann"}], json.dumps({"id": "ann"}), {"id": ["ann"]}):
        line = json.dumps({"user": value})
        assert wanted.in_line(line.encode())
        assert wanted.has(value if isinstance(value, str) else json.dumps(value))
    for other in ({"user": "ann"}, {"id": "ann"}, {"user": {"a": {"id": "ann"}}}, {"user": {"id": {"id": "ann"}}}):
        assert not wanted.in_line(json.dumps(other).encode())


def test_numbers_that_mean_the_same() -> None:
    """Where the column of the key has a type, the spelling does not matter."""
    wanted = Wanted(("id",), frozenset({"7"}), parse_type("double", None))
    assert wanted.in_line(b'{"id": 7.0}')
    assert wanted.in_line(b'{"id": "70e-1"}')
    assert not wanted.in_line(b'{"id": 7.01}')


def test_depth_does_no_harm() -> None:
    """What is nested too deeply for the parser is searched as if it were no JSON."""
    deep = b'{"id": ' + b"[" * 100_000 + b'"ann"' + b"]" * 100_000 + b"}"
    assert Wanted(("id",), frozenset({"ann"})).in_line(deep)
    assert not Wanted(("id",), frozenset({"bob"})).in_line(deep)


@settings(max_examples=50)
@given(st.text(), st.sets(st.text(min_size=1), min_size=1, max_size=3))
def test_a_value_is_found_as_json_writes_it(value: str, others: set[str]) -> None:
    """In ASCII or not, in a line and in the text of a column."""
    wanted = Wanted(("id",), frozenset({*others, value} - {""}))
    for ascii_only in (True, False):
        line = json.dumps({"id": value}, ensure_ascii=ascii_only)
        assert wanted.in_line(line.encode(errors="surrogatepass")) is bool(value)
    assert wanted.has(value) is bool(value)
    assert value == "" or wanted.is_between(value, value)


@pytest.mark.parametrize("line", ["id=Jürgen;", "Jürgen", "no 李 here", "[Łukasz, 李]"])
@pytest.mark.parametrize("codec", ["utf-8", "latin-1", "utf-16-le", "utf-16-be"])
def test_other_encodings(line: str, codec: str) -> None:
    """A line that is not UTF-8 is searched as Latin-1, and as UTF-16 from either half of a character."""
    wanted = Wanted(("id",), frozenset({"Jürgen", "李", "Łukasz"}))
    raw = line.encode(codec, "ignore")
    if codec != "latin-1" or "Jürgen" in line:
        assert wanted.in_line(raw)
        assert wanted.in_line(b"\0" + raw) or codec == "utf-8"
    assert not wanted.in_line(
        line.replace("Jürgen", "Jürgens").replace("李", "木").replace("Łu", "lu").encode(codec, "ignore")
    )


@settings(max_examples=100)
@given(
    st.sets(st.text('ab1 .-é李\\n"', min_size=1, max_size=4), min_size=1, max_size=3),
    st.lists(st.text('ab1 .-é李\\n"{u0061', max_size=12), min_size=1, max_size=3),
)
def test_no_line_that_holds_one_is_passed_over(values: set[str], texts: list[str]) -> None:
    """The quick search of many lines lists each that the exact one finds."""
    wanted = Wanted(("id",), frozenset(values))
    for escaped in (False, True):
        lines = [(json.dumps(text) if escaped else text).encode() for text in texts]
        found = wanted.candidates(pa.array(lines, pa.binary()))
        assert {at for at, line in enumerate(lines) if wanted.in_line(line)} <= set(found)


def test_many_values_cost_little() -> None:
    """A flood of rejects is searched once for all values, not once for each."""
    wanted = Wanted(
        ("id",), frozenset(f"{'abcdefghij' * 4}"[: 5 + at % 35] + f"{at}@mail.example" for at in range(100))
    )
    lines = pa.array(
        [b"2026-01-01 ERROR user-name failed at step 7, code=0x1f [retry] (a.b.c) <x>"] * 1_000, pa.binary()
    )
    begin = process_time()
    assert not any(wanted.candidates(lines) for _ in range(20))
    assert process_time() - begin < 1  # 1.5 MB
