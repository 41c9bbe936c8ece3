import json
import string

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from compactor.ndjson.rawjson import texts

SPACE = st.text(" \t\r", max_size=2)
STRINGS = st.text(max_size=20)
SCALARS = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.floats(allow_nan=False, allow_infinity=False),
    STRINGS,
    st.text('"\\{}[],: \n', max_size=10),
)
VALUES = st.recursive(
    SCALARS, lambda inner: st.lists(inner, max_size=4) | st.dictionaries(STRINGS, inner, max_size=4), max_leaves=12
)


@st.composite
def written_objects(draw):
    """A line of JSON with its members as they were written: key, source text, value."""
    ascii_only = draw(st.booleans())
    separators = draw(st.sampled_from([(",", ":"), (", ", ": "), (" , ", " : ")]))
    members = []
    for key, value in draw(st.lists(st.tuples(STRINGS, VALUES), max_size=6)):
        source = json.dumps(value, ensure_ascii=ascii_only, separators=separators)
        members.append((key, source, value))
    parts = [
        f"{draw(SPACE)}{json.dumps(key, ensure_ascii=ascii_only)}{draw(SPACE)}:{draw(SPACE)}{source}{draw(SPACE)}"
        for key, source, _ in members
    ]
    return f"{draw(SPACE)}{{{','.join(parts) or draw(SPACE)}}}{draw(SPACE)}".encode(), members


@given(written_objects())
def test_values_survive_as_written(written):
    """Strings come decoded, null as None, all else as its exact source text; the last of a repeated key wins."""
    line, members = written
    expected = {}
    for key, source, value in members:
        expected[key] = value if value is None or isinstance(value, str) else source
    assert texts(line) == expected
    assert list(texts(line)) == list(json.loads(line))


@given(written_objects())
def test_the_texts_mean_what_the_line_means(written):
    """Parsing each text again gives the value that a JSON parser sees in the line."""
    line, _ = written
    for key, value in json.loads(line).items():
        text = texts(line)[key]
        assert (text if value is None or isinstance(value, str) else json.loads(text)) == value


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        (b"{}", {}),
        (b" { \t} \r", {}),
        (b'{"a":1.10,"b":1e2,"c":1E+2,"d":-0}', {"a": "1.10", "b": "1e2", "c": "1E+2", "d": "-0"}),
        (b'{"a":' + b"9" * 40 + b"}", {"a": "9" * 40}),
        (b'{"a":[1, 2 ,{"a" : 1.10}] , "b":{ }}', {"a": '[1, 2 ,{"a" : 1.10}]', "b": "{ }"}),
        (b'{"a":{"a":"\\u00e9\\n"}}', {"a": '{"a":"\\u00e9\\n"}'}),
        (b'{"a":"\\u00e9\\n\\ud83d\\ude00\\/"}', {"a": "é\n😀/"}),
        (b'{"a":["]","}","\\"]","\\\\"],"b":1}', {"a": '["]","}","\\"]","\\\\"]', "b": "1"}),
        (b'{"a":1,"a":null}', {"a": None}),
        (b'{"a":1,"\\u0061":2}', {"a": "2"}),
        (b'{"":""}', {"": ""}),
        (b'{"a":true,"b":false,"c":"null"}', {"a": "true", "b": "false", "c": "null"}),
        ('{"ключ":"{"}'.encode(), {"ключ": "{"}),
    ],
)
def test_spellings_are_kept(line, expected):
    """What was written is what comes out."""
    assert texts(line) == expected


def test_the_deepest_line_that_is_accepted_is_read():
    """Nesting up to the parser's own limit needs no recursion."""
    inner = '{"a":[' * 511 + "1" + "]}" * 511
    line = f'{{"x":{inner},"y":2}}'.encode()
    orjson.loads(line)
    assert texts(line) == {"x": inner, "y": "2"}


def test_long_strings_full_of_escapes_are_read():
    """The size of a string and the number of its escapes do not matter."""
    value = '\\"' + string.ascii_letters
    line = f'{{"x":"{json.dumps(value)[1:-1] * 100_000}","y":["{json.dumps(value)[1:-1] * 100_000}"]}}'.encode()
    assert texts(line)["x"] == value * 100_000
    assert json.loads(texts(line)["y"]) == [value * 100_000]
