"""Promises about text from outside: what is shown of it, and what a shell makes of it in a suggested command."""

import json
import subprocess
import unicodedata
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from compactor.core.text.safe_text import quoted, visible, visible_json

ANY_TEXT = st.text(st.characters(categories=("C", "L", "M", "N", "P", "S", "Z")))
NAMES = st.text(st.characters(exclude_categories=("Cs",)) | st.characters(min_codepoint=0xDC80, max_codepoint=0xDCFF))

DANGEROUS = {
    "ESC": ("\x1b[2J", r"\x1b[2J"),
    "OSC": ("\x1b]0;x\x07", r"\x1b]0;x\x07"),
    "C1": ("\x9b31m\x9d", r"\x9b31m\x9d"),
    "DEL": ("\x7f", r"\x7f"),
    "line feed": ("a\nnext: x", r"a\nnext: x"),
    "carriage return": ("a\rb", r"a\rb"),
    "next line": ("\x85", r"\x85"),
    "separators": ("\u2028\u2029", r"\u2028\u2029"),
    "bidi": ("\u202a\u202b\u202c\u202d\u202e", r"\u202a\u202b\u202c\u202d\u202e"),
    "isolates": ("\u2066\u2067\u2068\u2069", r"\u2066\u2067\u2068\u2069"),
    "marks": ("\u200e\u200f\u061c", r"\u200e\u200f\u061c"),
    "invisible": ("\u200b\ufeff\u00ad\U000e0041", r"\u200b\ufeff\xad\U000e0041"),
    "fillers": ("a\u115f\u1160\u17b4\u3164\uffa0b", r"a\u115f\u1160\u17b4\u3164\uffa0b"),
    "selectors": ("\u034f\u180b\u180f\ufe00\ufe0f\U000e01ef", r"\u034f\u180b\u180f\ufe00\ufe0f\U000e01ef"),
    "joiners that join nothing": ("a\u200db\u200c", r"a\u200db\u200c"),
    "not UTF-8": ("\udc80\udcff", r"\udc80\udcff"),
    "lone surrogate": ("\ud800", r"\ud800"),
    "NUL": ("\x00", r"\x00"),
}


@pytest.mark.parametrize(("text", "shown"), DANGEROUS.values(), ids=DANGEROUS)
def test_dangerous_characters_are_escaped(text: str, shown: str) -> None:
    """What acts on a terminal, turns text around, breaks a line or cannot be seen is an escape."""
    assert visible(text) == shown
    assert visible(shown) == shown


ORDINARY = [
    *("plain", "", "a\\x1bb", "Köln 日本 😀", "ideographic\u3000space", "no\u00a0break"),
    *("\u0645\u06cc\u200c\u062e\u0648", "👩\u200d👩\u200d👧"),  # a Persian word, and a family
]


@pytest.mark.parametrize("text", ORDINARY)
def test_ordinary_text_stays(text: str) -> None:
    """Letters of every script, marks, symbols, emoji and spaces are shown as they are."""
    assert visible(text) == text


@given(ANY_TEXT)
def test_any_text_is_safe(text: str) -> None:
    """No text leaves a character that acts, and the result can be encoded."""
    shown = visible(text)
    shown.encode()
    left = [each for each in shown if unicodedata.category(each) in {"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"}]
    assert set(left) <= {"\u200c", "\u200d"}


@given(st.recursive(ANY_TEXT | st.integers(), lambda inner: st.lists(inner) | st.dictionaries(ANY_TEXT, inner)))
def test_json_stays_exact(document: object) -> None:
    """A document with escapes has the same values, shows no dangerous character, and is UTF-8."""
    text = visible_json(json.dumps(document, ensure_ascii=False, indent=1))
    assert json.loads(text.encode()) == document
    assert all(visible(line) == line for line in text.split("\n"))


WORDS = [
    *("plain", "", "a b", "it's", '"', "$(touch x)", "`touch x`", "; touch x", "a\nb", "*", "~", "\\", "!1", "%s%n"),
    *("#", "é", "\x1b]0;x\x07", "\u202e", "a\udc80b", "-n\x01", "\x85", "\\n\x01", "$(touch x)\n'x", "😀\x02"),
]


def passed(command: str, folder: Path) -> list[bytes]:
    """The arguments that a shell passes to `show`."""
    show = folder / "show"
    show.write_text('#!/bin/sh\nfor each; do printf "%s\\0" "$each"; done\n')
    show.chmod(0o755)
    path = f"{folder}:/bin:/usr/bin"
    done = subprocess.run(["sh", "-c", command], cwd=folder, env={"PATH": path}, capture_output=True, check=False)
    assert (done.returncode, done.stderr) == (0, b"")
    return done.stdout.split(b"\0")[:-1]


def test_a_shell_passes_exactly_the_word(tmp_path: Path) -> None:
    """Each word reaches the command byte for byte, on one line of visible characters, and nothing else runs."""
    command = f"show {' '.join(map(quoted, WORDS))}"
    assert visible(command) == command
    assert passed(command, tmp_path) == [word.encode(errors="surrogateescape") for word in WORDS]
    assert [path.name for path in tmp_path.iterdir()] == ["show"]


@given(NAMES)
def test_any_word_is_one_visible_line(word: str) -> None:
    """Quoting shows no dangerous character either, and an ordinary word stays as it is."""
    assert visible(quoted(word)) == quoted(word)
    assert quoted("/raw/2025-12-21.x_y") == "/raw/2025-12-21.x_y"
