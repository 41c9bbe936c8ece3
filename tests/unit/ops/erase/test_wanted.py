"""What holds a value: by its key in JSON, however it is written, and as a word anywhere in what is no JSON."""

import json

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
