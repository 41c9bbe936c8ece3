"""Promises of commands whose stdin, stdout or stderr is closed or full, or has lost its reader."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.sampling import few
from tests.support.workspace import Workspace, make_workspace

REDIRECTIONS = ["<&- >&- 2>&-", "<&-", ">&-", "2>/dev/full", "2>&-"]


@pytest.fixture
def workspace(tmp_path: Path) -> Workspace:
    return make_workspace(tmp_path)


def call(workspace: Workspace, redirection: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    """A command in a process of its own."""
    words = [sys.executable, "-m", "compactor", "--config", str(workspace.config), *arguments]
    shell = ["sh", "-c", f'exec "$@" {redirection}', "sh", *words]
    return subprocess.run(shell, capture_output=True, text=True, check=False)


@pytest.mark.parametrize("redirection", few(REDIRECTIONS, 2))
def test_the_work_is_done_all_the_same(workspace: Workspace, redirection: str) -> None:
    """A closed stream, or a stderr that cannot be written to, changes neither the work nor the exit code."""
    is_open = redirection in {"2>&-", "<&-", "2>/dev/full"}
    done = call(workspace, redirection, "plan", workspace.raw(""))
    assert (done.returncode, done.stderr) == (0, "")
    assert len(list((workspace.root / "m").glob("*.json"))) == 1
    assert done.stdout.startswith("Wrote 1 manifest of 2 files") == is_open
    done = call(workspace, redirection, "verify")  # it shows its progress on stderr
    assert (done.returncode, "discrepancies  none" in done.stdout) == (0, is_open)


@pytest.mark.parametrize("redirection", few(["2>&-", "<&- >&- 2>&-"], 1))
def test_errors_end_as_usual(workspace: Workspace, redirection: str) -> None:
    """An error that no one can read keeps its exit code."""
    workspace.config.write_text("no = settings")
    assert call(workspace, redirection, "status").returncode == 2


@pytest.mark.parametrize("name", ["plan", "status"])
def test_a_result_that_cannot_be_written_is_an_error(workspace: Workspace, name: str) -> None:
    """A full disk below stdout is named once, and the command failed, whether it prints lines or a screen."""
    words = [workspace.raw("")] if name == "plan" else []
    done = call(workspace, ">/dev/full", name, *words)
    assert done.returncode == 1
    assert done.stderr.splitlines()[0] == "compactor: cannot write to stdout: No space left on device"
    assert len(done.stderr.splitlines()) == 2


def without_reader(workspace: Workspace, *arguments: str) -> int:
    """The exit code of a command whose stdout and stderr go to a pipe that no one reads any more, as after `| head`."""
    reads, writes = os.pipe()
    os.close(reads)
    words = [sys.executable, "-m", "compactor", "--config", str(workspace.config), *arguments]
    try:
        return subprocess.run(words, stdout=writes, stderr=writes, check=False, timeout=60).returncode
    finally:
        os.close(writes)


def test_a_reader_that_is_gone_changes_nothing(workspace: Workspace) -> None:
    """The exit code is that of the work, which is done to its end, and what is endless ends."""
    assert without_reader(workspace, "plan", workspace.raw("")) == 0
    assert len(list((workspace.root / "m").glob("*.json"))) == 1
    assert without_reader(workspace, "status", "--watch", "0.01") == 0
    (workspace.root / "m" / "broken.json").write_text("{")
    workspace.compact()
    assert without_reader(workspace, "verify", "--json") == 3
    assert without_reader(workspace, "verify", "--no-such-option") == 2
