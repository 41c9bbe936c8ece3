"""Promises of `compactor rejects`: every rejected line with its place and its fault, in any number and of any bytes."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from compactor.cli.commands import rejects as module
from compactor.cli.entry import compactor as command
from compactor.ndjson.lines import Limits
from compactor.ops import rejects as reader
from compactor.ops.redrive.reject_lines import RejectRow
from tests.support import fakes
from tests.support.workspace import DAY, Workspace, make_workspace

BAD = b'{"id": 1,}\n{"name": "caf\xe9"}\n{"id": 2}\n\n["\x1b[31m"]\n{"n": "\xe6\x97\xa5", "x": \x07}\n'


@pytest.fixture
def workspace(tmp_path: Path) -> Workspace:
    """One file with four bad lines, and one with one, compacted."""
    workspace = make_workspace(tmp_path)
    (tmp_path / "raw" / f"{DAY}-bad.ndjson").write_bytes(BAD)
    workspace.plan()
    workspace.compact()
    return workspace


def test_each_line_with_its_fault(workspace: Workspace) -> None:
    """File, line, column, reason and words, the text with escapes, and a mark below the place."""
    bad, flawed = workspace.raw(f"{DAY}-bad.ndjson"), workspace.raw(f"{DAY}-flawed.ndjson")
    result = workspace.call("rejects")
    assert result.exit_code == 0
    assert result.stdout.splitlines() == [
        f"{bad}:1:10: invalid_json: found '}}'; expected a key in double quotes",
        '  {"id": 1,}',
        "           ^",
        f"{bad}:2:14: invalid_utf8: byte 0xe9 is not UTF-8 (invalid continuation byte); in Latin-1 it is é",
        r'  {"name": "caf\xe9"}',
        "               ^",
        f"{bad}:5:3: invalid_json: found '\\x1b'; expected an escape of the control character, such as \\t",
        r'  ["\x1b[31m"]',
        "    ^",
        f"{bad}:6:17: invalid_json: found '\\x07'; expected a value",
        r'  {"n": "日", "x": \x07}',
        "                   ^",
        f"{flawed}:2:1: invalid_json: found 'n'; expected a value",
        "  not json",
        "  ^",
        "",
        "5 rejected lines: 4 invalid_json, 1 invalid_utf8",
    ]


def shown(workspace: Workspace, *options: str) -> list[str]:
    """The lines that are shown, by the end of the file's name and the number."""
    document, code = workspace.json("rejects", *options)
    assert (code, document["shown"]) == (0, len(document["rejects"]))
    return [f"{each['uri'].rpartition('-')[2]}:{each['line_number']}" for each in document["rejects"]]


def test_options(workspace: Workspace) -> None:
    """The lines of a reason, a file or a date, and no more than were asked for."""
    assert shown(workspace, "--reason", "invalid_utf8") == ["bad.ndjson:2"]
    for name in (f"{DAY}-flawed.ndjson", workspace.raw(f"{DAY}-flawed.ndjson"), f"raw/{DAY}-flawed.ndjson"):
        assert shown(workspace, "--file", name) == ["flawed.ndjson:2"]
    assert shown(workspace, "--file", "flawed.ndjson") == []  # not a whole name
    assert shown(workspace, "--limit", "2") == ["bad.ndjson:1", "bad.ndjson:2"]
    assert len(shown(workspace, "--date", DAY)) == 5
    assert shown(workspace, "--date", "2025-12-20") == []
    assert "2 of 5 rejected lines: " in workspace.call("rejects", "--limit", "2").stdout
    assert workspace.call("rejects", "--file", "other").stdout == "No rejected lines match.\n"
    assert workspace.call("rejects", "--raw", "--json").exit_code == 2


def test_a_relative_path(workspace: Workspace, monkeypatch: pytest.MonkeyPatch) -> None:
    """A path from the current folder names the file."""
    monkeypatch.chdir(workspace.root / "raw")
    assert shown(workspace, "--file", f"./{DAY}-flawed.ndjson") == ["flawed.ndjson:2"]


def test_raw_bytes(workspace: Workspace, monkeypatch: pytest.MonkeyPatch) -> None:
    """The lines byte for byte, each with a line feed; nothing else, and never on a terminal."""
    lines = BAD.splitlines(keepends=True)
    rejected = [*lines[:2], *lines[4:], b"not json\n"]
    assert workspace.call("rejects", "--raw").stdout_bytes == b"".join(rejected)
    assert workspace.call("rejects", "--raw", "--limit", "3").stdout_bytes == b"".join(rejected[:3])
    assert workspace.call("rejects", "--raw", "--file", "other").stdout_bytes == b""
    monkeypatch.setattr(module, "_is_terminal", lambda: True)
    result = workspace.call("rejects", "--raw")
    assert (result.exit_code, result.stdout) == (2, "")


def test_a_line_that_is_too_long(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A line in many pieces is one line, with its length, and whole with --raw."""
    monkeypatch.setattr(fakes, "LIMITS", Limits(max_line_bytes=1000, max_decompressed_bytes=1 << 30))
    workspace = make_workspace(tmp_path)
    settings = workspace.config.read_text()
    workspace.config.write_text(settings.replace("[input]", "[input]\nmax_line_bytes = 1000"))
    long = b'{"text": "' + b"x" * 300_000 + b'"}\n'
    (tmp_path / "raw" / f"{DAY}-flawed.ndjson").write_bytes(b"\n" + long + b'{"id": 1}\n' + long)
    workspace.plan()
    workspace.compact()
    [first, second] = workspace.json("rejects")[0]["rejects"]
    assert (first["line_number"], first["column"], first["length_bytes"]) == (2, 1001, len(long) - 1)
    assert (second["line_number"], second["byte_offset"]) == (4, 1 + len(long) + 10)
    assert first["message"] == "the line has 300,012 bytes; expected at most 1,000"
    assert workspace.call("rejects", "--raw").stdout_bytes == long * 2


def test_samples_and_lines_that_are_only_counted(tmp_path: Path) -> None:
    """Of a file with too many rejects, what is shown is only a part, and that is said."""
    workspace = make_workspace(tmp_path)
    settings = workspace.config.read_text()
    workspace.config.write_text(settings.replace("[input]", "[input]\nmax_rejected_lines = 2"))
    (tmp_path / "raw" / f"{DAY}-flawed.ndjson").write_bytes(b"bad\n" * 5)
    workspace.plan()
    workspace.compact()
    document, _ = workspace.json("rejects")
    assert ([each["is_sample"] for each in document["rejects"]], document["lines"]) == ([True, True], 0)
    assert "1 file quarantined completely; the lines shown of them are samples" in workspace.call("rejects").stdout
    kept = settings.replace("[input]", '[input]\nmax_rejected_lines = 2\non_too_many_rejects = "keep_rows"')
    workspace.config.write_text(kept)
    assert workspace.call("redrive", "files").exit_code == 0
    workspace.compact()
    document, _ = workspace.json("rejects", "--file", f"{DAY}-flawed.ndjson")
    assert (document["lines"], document["unkept"]) == (5, 3)
    assert "3 lines only counted: there were too many to keep" in workspace.call("rejects").stdout


def test_rejects_that_are_gone(workspace: Workspace) -> None:
    """A lost file of rejects is named, with what makes it again; the others are shown."""
    [path] = (workspace.root / "s" / "rejects").rglob("*.parquet")
    path.unlink()
    result = workspace.call("rejects")
    assert (result.exit_code, "0 of 5 rejected lines" in result.stdout) == (3, True)
    assert f"compactor: {path}: no such object; expected a Parquet file; `compactor rebuild " in result.stderr
    document, code = workspace.json("rejects")
    assert (code, document["shown"], len(document["unreadable"])) == (3, 0, 1)


def test_many_lines_are_streamed(workspace: Workspace, monkeypatch: pytest.MonkeyPatch) -> None:
    """Lines are printed as they are read, and reading ends with the last one that was asked for."""
    rows = b"bad\n" * 5_000
    (workspace.root / "raw" / f"{DAY}-more.ndjson").write_bytes(rows)
    workspace.plan()
    workspace.compact()
    read = 0
    before = reader.reject_rows

    def counted(*args: Any) -> Iterator[RejectRow]:
        nonlocal read
        for row in before(*args):
            read += 1
            yield row

    monkeypatch.setattr(reader, "reject_rows", counted)
    assert "20 of 5,005 rejected lines" in workspace.call("rejects").stdout
    assert read <= 21
    assert workspace.call("rejects", "--raw", "--file", f"{DAY}-more.ndjson").stdout_bytes == rows


def test_no_rejects(tmp_path: Path) -> None:
    """Nothing to show is an answer."""
    workspace = make_workspace(tmp_path)
    assert workspace.call("rejects").stdout == "No rejected lines.\n"
    document, code = workspace.json("rejects")
    assert (code, document["rejects"], document["lines"]) == (0, [], 0)


def test_hostile_names(tmp_path: Path) -> None:
    """The name of a file acts on no terminal."""
    workspace = make_workspace(tmp_path)
    (tmp_path / "raw" / f"{DAY}-\x1b[2J.ndjson").write_bytes(b"bad\n")
    workspace.plan()
    workspace.compact()
    result = workspace.call("rejects")
    assert r"-\x1b[2J.ndjson:1:1: invalid_json" in result.stdout
    assert "\x1b" not in result.stdout
    assert "\x1b" not in CliRunner().invoke(command, ["--config", str(workspace.config), "rejects", "--json"]).stdout


def test_a_misspelt_file(workspace: Workspace) -> None:
    """A name that no file on record has is reported with the one that is meant; one without rejects is not."""
    assert f"did you mean {DAY}-bad.ndjson?" in workspace.call("rejects", "--file", f"{DAY}-bd.ndjson").stderr
    assert workspace.call("rejects", "--file", f"{DAY}-bad.ndjson", "--reason", "too_deep").stderr == ""
