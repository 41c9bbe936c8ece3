"""Promises of commands whose stdin, stdout or stderr is closed or full."""

import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.workspace import Workspace, make_workspace

REDIRECTIONS = ["2>&-", ">&-", "<&-", "<&- >&- 2>&-", "2>/dev/full"]


@pytest.fixture
def workspace(tmp_path: Path) -> Workspace:
    return make_workspace(tmp_path)


def call(workspace: Workspace, redirection: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    """A command in a process of its own."""
    words = [sys.executable, "-m", "compactor", "--config", str(workspace.config), *arguments]
    shell = ["sh", "-c", f'exec "$@" {redirection}', "sh", *words]
    return subprocess.run(shell, capture_output=True, text=True, check=False)


@pytest.mark.parametrize("redirection", REDIRECTIONS)
def test_the_work_is_done_all_the_same(workspace: Workspace, redirection: str) -> None:
    """A closed stream, or a stderr that cannot be written to, changes neither the work nor the exit code."""
    is_open = redirection in {"2>&-", "<&-", "2>/dev/full"}
    done = call(workspace, redirection, "plan", workspace.raw(""))
    assert (done.returncode, done.stderr) == (0, "")
    assert len(list((workspace.root / "m").glob("*.json"))) == 1
    assert done.stdout.startswith("Wrote 1 manifest of 2 files") == is_open
    done = call(workspace, redirection, "verify")  # it shows its progress on stderr
    assert (done.returncode, "discrepancies  none" in done.stdout) == (0, is_open)


@pytest.mark.parametrize("redirection", ["2>&-", "<&- >&- 2>&-"])
def test_errors_end_as_usual(workspace: Workspace, redirection: str) -> None:
    """An error that no one can read keeps its exit code."""
    workspace.config.write_text("no = settings")
    assert call(workspace, redirection, "status").returncode == 2


def test_a_result_that_cannot_be_written_is_an_error(workspace: Workspace) -> None:
    """A full disk below stdout is named once, and the command failed."""
    done = call(workspace, ">/dev/full", "plan", workspace.raw(""))
    assert done.returncode == 1
    assert done.stderr.splitlines()[0] == "compactor: cannot write to stdout: No space left on device"
    assert len(done.stderr.splitlines()) == 2
