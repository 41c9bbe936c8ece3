"""`status --watch`: one screen after the other until Ctrl-C, through transient errors of the store."""

import io
import json
from collections.abc import Callable
from types import SimpleNamespace

import pytest
from click.testing import CliRunner
from rich.console import Console

from compactor.cli.commands import status
from compactor.cli.commands.status import Show, as_json_lines, on_pipe, on_terminal, watch
from compactor.cli.entry import compactor as command
from compactor.cli.ui.console import SafeConsole
from compactor.cli.ui.status_screen import screen
from compactor.core.errors import StoreUnavailable
from compactor.ops.status.values import Status
from tests.support.settings_files import write_settings
from tests.support.statuses import STATUSES

READINGS = ("running", None, "idle")
"""The scene of each reading; None for an error."""


def reader() -> Callable[[], Status]:
    readings = iter(READINGS)

    def read() -> Status:
        name = next(readings)
        if name is None:
            raise StoreUnavailable("s3://lake/state/: 503\nSlow Down")
        return STATUSES[name]

    return read


def watched(show: Show[Status]) -> list[float]:
    """Read as often as there are readings, then press Ctrl-C; the pauses in between."""
    pauses: list[float] = []

    def sleep(seconds: float) -> None:
        pauses.append(seconds)
        if len(pauses) == len(READINGS):
            raise KeyboardInterrupt

    watch(reader(), show, 7.0, sleep=sleep)
    return pauses


def test_on_a_pipe(capsys: pytest.CaptureFixture[str]) -> None:
    """Each reading is a whole screen, without colours; an error is a line of its own."""
    assert watched(on_pipe(SafeConsole(), screen)) == [7.0] * 3
    found = capsys.readouterr().out
    assert (
        found.index("RUNNING ")
        < found.index("Cannot read the status: s3://lake/state/: 503 Slow Down")
        < found.index("IDLE ")
    )
    assert "\x1b" not in found


def test_as_json(capsys: pytest.CaptureFixture[str]) -> None:
    """Each reading is one line with one document; a failed one has a time and an error."""
    watched(as_json_lines(lambda found: found))
    first, second, third = map(json.loads, capsys.readouterr().out.splitlines())
    assert (first["state"]["word"], third["state"]["word"]) == ("running", "idle")
    assert (sorted(second), second["error"]) == (["as_of", "error"], "s3://lake/state/: 503 Slow Down")


def test_on_a_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    """The screen is redrawn in place; after an error the last one stays, with the error; the cursor comes back."""
    monkeypatch.setenv("TERM", "xterm")  # a dumb one cannot redraw
    console = Console(file=io.StringIO(), force_terminal=True, width=80, height=40, highlight=False)
    with on_terminal(console, screen) as show:
        watched(show)
    found = console.file.getvalue()
    running, error, idle = found.index("RUNNING"), found.index("Cannot read the status"), found.rindex("IDLE")
    assert running < error < idle
    assert found.count("RUNNING") == 2  # drawn again with the error
    assert "\x1b[1A" in found  # up again, to draw over what was there
    assert found.rindex("\x1b[?25h") > found.rindex("\x1b[?25l")


def test_error_at_first() -> None:
    """Before the first status the error alone is shown."""
    console = Console(file=io.StringIO(), force_terminal=True, width=80, height=40)
    with on_terminal(console, screen) as show:
        show(None, "the store is away")
    assert "Cannot read the status: the store is away" in console.file.getvalue()


@pytest.mark.parametrize(("option", "seconds"), [(["--watch"], 5.0), (["--watch", "2.5"], 2.5)])
def test_command(tmp_path, monkeypatch: pytest.MonkeyPatch, option: list[str], seconds: float) -> None:
    """--watch reads every five seconds, or as said, and Ctrl-C ends it with exit code 0."""
    pauses: list[float] = []

    def sleep(pause: float) -> None:
        pauses.append(pause)
        if len(pauses) == 2:
            raise KeyboardInterrupt

    monkeypatch.setattr(status, "time", SimpleNamespace(sleep=sleep))
    config = write_settings(tmp_path)
    result = CliRunner().invoke(command, ["--config", str(config), "status", *option, "--json"])
    assert (result.exit_code, pauses) == (0, [seconds] * 2)
    assert [json.loads(line)["state"]["word"] for line in result.stdout.splitlines()] == ["empty"] * 2


@pytest.mark.parametrize("wrong", ["0", "-1", "soon"])
def test_wrong_interval(wrong: str) -> None:
    """An interval that is none is wrong usage."""
    assert CliRunner().invoke(command, ["status", "--watch", wrong]).exit_code == 2
