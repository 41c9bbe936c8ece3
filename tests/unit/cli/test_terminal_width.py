"""What commands show fits the terminal: lines end between words, and a mark is below its character."""

import shlex
import sys
from pathlib import Path

import pytest

from tests.support.terminals import on_terminal
from tests.support.workspace import Workspace, make_workspace

LONG = '{{"text": "{0}", "wrong": @, "more": "{0}"}}\n'.format("many words of an application " * 20)
NEXT = ("read it", "more ", "see why", "redrive", "next")
"""How the lines with commands begin, which are not divided, so that they can be copied."""


@pytest.fixture
def workspace(tmp_path: Path) -> Workspace:
    """Lines with a fault at `@`, and a file that is no NDJSON."""
    workspace = make_workspace(tmp_path)
    (tmp_path / "raw" / "long-2025-12-21.ndjson").write_text(LONG + '{"a": @}\n' + '{"名前": "とても長い", "b": @}\n')
    (tmp_path / "raw" / "page-2025-12-21.html").write_text("<html><body>moved</body></html>\n")
    workspace.plan()
    workspace.compact()
    return workspace


def words(workspace: Workspace, *arguments: str) -> list[str]:
    return [sys.executable, "-m", "compactor", "--config", str(workspace.config), *arguments]


@pytest.mark.parametrize("columns", [80, 40])
@pytest.mark.parametrize("command", ["verify", "rejects"])
def test_lines_end_between_words(command: str, columns: int, workspace: Workspace) -> None:
    """Each line fits, unless it has one long word, such as a path; its words are those of a pipe."""
    shown = on_terminal(columns, words(workspace, command))
    piped = workspace.call(command).stdout
    assert [line for line in piped.splitlines() if len(line) > columns]
    if command == "verify":
        assert " ".join(shown).split()[-len(piped.split()) :] == piped.split()
    for line in shown:
        if len(line) > columns and not line.startswith(NEXT):
            assert len(line.split()) == 1, line


@pytest.mark.parametrize("columns", [80, 40])
@pytest.mark.parametrize("pager", ["", " | cat"], ids=("", "pager"))
def test_marks_are_below_their_characters(pager: str, columns: int, workspace: Workspace) -> None:
    """No line of text and no mark is wider than the terminal, which would break it; a pager changes nothing."""
    command = shlex.join(words(workspace, "rejects", "--file", "long-2025-12-21.ndjson"))
    shown = on_terminal(columns, ["sh", "-c", command + pager])
    marks = [number for number, line in enumerate(shown) if line.strip() == "^"]
    assert len(marks) == 3
    for number in marks:
        text, mark = shown[number - 1 : number + 1]
        wide = sum(ord(character) > 0x2E80 for character in text)
        assert len(text) + wide <= columns
        assert text[len(mark) - 1 - wide] == "@"
