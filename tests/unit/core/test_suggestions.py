"""Suggested commands name the folder where a reader has to, and nothing else of them changes."""

import pytest

from compactor.core.text.safe_text import Suggestions

JOB = Suggestions()
FOLDER = Suggestions("/my rows", "compactor compact SRC '/my rows'")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("compactor verify names it", "compactor verify '/my rows' names it"),
        ("fix it, then compactor redrive files", "fix it, then compactor redrive files --in '/my rows'"),
        ("compactor schema show shows it; compactor schema retire makes room",
         "compactor schema show '/my rows' shows it; compactor schema retire --in '/my rows' makes room"),
        ("add workers", "add workers"),
    ],
)  # fmt: skip
def test_texts(text: str, expected: str) -> None:
    """Each command of a text gets the folder behind its name; for a job a text stays as it is."""
    assert FOLDER.at(text) == expected
    assert JOB.at(text) == text


@pytest.mark.parametrize(
    ("command", "expected"),
    [
        ("compactor redrive files --manifest m-1", "compactor redrive files --in '/my rows' --manifest m-1"),
        ("compactor rejects --file 'compactor verify'", "compactor rejects '/my rows' --file 'compactor verify'"),
        ("compactor rebuild --manifest m-1", "compactor rebuild '/my rows' --manifest m-1"),
        ("compactor plan /raw", "compactor compact SRC '/my rows'"),
    ],
)
def test_whole_commands(command: str, expected: str) -> None:
    """A command gets the folder once, whatever its other words are; a folder is compacted again and not planned."""
    assert FOLDER.of(command) == expected
    assert JOB.of(command) == command


def test_words_from_outside_are_quoted() -> None:
    """A word from outside is one argument, between marks as well."""
    assert JOB.call("trace", "a; rm") == "compactor trace 'a; rm'"
    assert FOLDER.marked().call("trace", "m") == "`compactor trace --in '/my rows' m`"


@pytest.mark.parametrize(("prefix", "word"), [("/my raw", "'/my raw'"), ("", "<PREFIX>")])
def test_where_a_plan_finds_input(prefix: str, word: str) -> None:
    """A text of this program gets the one place of the settings, or a word that no shell accepts."""
    text = "compactor plan PREFIX, then compactor run"
    assert Suggestions(prefix=prefix).at(text) == text.replace("PREFIX", word)
