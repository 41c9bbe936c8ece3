"""Promises of excerpts: they fit, they are safe to print, and the mark stands below the place."""

import unicodedata

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from rich.cells import cell_len

from compactor.cli.commands.rejects import excerpt


@pytest.mark.parametrize(
    ("line", "offset", "text", "mark"),
    [
        (b'{"a": 1,}', 8, '{"a": 1,}', "        ^"),
        ("日本x".encode(), 6, "日本x", "    ^"),
        (b"\x1b[31mx", 5, r"\x1b[31mx", "        ^"),
        (b"caf\xe9!", 4, r"caf\xe9!", "       ^"),
        (b"ab", 2, "ab", "  ^"),
        (b"x" * 99, None, "x" * 34 + "...", ""),
        (b"", 0, "", "^"),
    ],
)
def test_marks(line: bytes, offset: int | None, text: str, mark: str) -> None:
    """The mark is below the character, whatever is before it and however it is shown."""
    assert excerpt(line, offset, width=40) == (text, mark)


@given(st.binary(max_size=400) | st.text(max_size=200).map(str.encode), st.integers(0, 400), st.integers(40, 80))
@example(b"\xff" * 200, 100, 40)
@example("日".encode() * 100, 150, 40)
@example("\N{NO-BREAK SPACE}".encode(), 0, 40)
def test_any_line(line: bytes, offset: int, width: int) -> None:
    """Any bytes fit into the width, nothing acts on the terminal, and the mark is within the text or at its end."""
    text, mark = excerpt(line, min(offset, len(line)), width=width)
    assert all(each.isprintable() or unicodedata.category(each) == "Zs" for each in text)
    assert cell_len(text) <= width
    assert len(mark) <= cell_len(text) + 1
