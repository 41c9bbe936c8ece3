"""What the path of a file has, as fields of its lines."""

from hypothesis import example, given
from hypothesis import strategies as st

from compactor.ndjson.files.line_fields import (
    PathValues,
    places_in,
)
from compactor.ndjson.inspection import refusals
from compactor.ndjson.rawjson import texts

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
