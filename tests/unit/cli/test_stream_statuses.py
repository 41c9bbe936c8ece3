"""The status of several streams: a line for each, one for all, and what to do; once, and again and again."""

import io
import json
from dataclasses import replace
from functools import partial
from pathlib import Path
from types import SimpleNamespace

import pytest
from click.testing import CliRunner
from rich.console import Console

from compactor.cli.commands import status
from compactor.cli.commands.status import on_terminal, watch
from compactor.cli.entry import compactor as command
from compactor.cli.ui.status_screen import show_statuses, streams_screen
from compactor.control.diagnosis.health import Condition, finding
from compactor.core.errors import StoreUnavailable
from compactor.ops.status.reading import StatusReader
from tests.support.statuses import RUN, STATUSES
from tests.support.streams import write_stream_settings

RUNNING, IDLE = STATUSES["running"], STATUSES["idle"]


def with_release(release: str):
    return replace(RUNNING, runs=(replace(RUN, release=release),))


def rows(text: str) -> dict[str, list[str]]:
    """The words of each line of the table by its first, which no note after it replaces."""
    return {line.split()[0]: line.split()[1:] for line in reversed(text.splitlines()) if line.split()}


def test_a_line_for_all_has_the_sums(capsys: pytest.CaptureFixture[str]) -> None:
    """What waits and what needs a person is added; of times the longest counts."""
    show_statuses({"a": RUNNING, "b": IDLE, "c": RUNNING}, "")
    found = rows(capsys.readouterr().out)
    of_one, of_all = found["a"], found["all"]
    assert int(of_all[0]) == 2 * int(of_one[1]) > 0
    assert of_all[1:3] == of_one[2:4]
    assert "release" not in found["stream"]


def test_releases_that_differ_are_a_column(capsys: pytest.CaptureFixture[str]) -> None:
    """While a canary is out, each line has its release, and what comes next is said."""
    show_statuses({"a": with_release("0.1.0"), "b": with_release("0.2.0"), "c": IDLE}, "b")
    out = capsys.readouterr().out
    found = rows(out)
    assert [found["stream"][-1], found["a"][-1], found["b"][-1]] == ["release", "0.1.0", "0.2.0"]
    assert "b is the canary, with release 0.2.0; all others have 0.1.0\n  next: compactor job smoke-test" in out


def test_on_a_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    """The table is redrawn in place, and stays through an error of the store."""
    monkeypatch.setenv("TERM", "xterm")  # a dumb one cannot redraw
    console = Console(file=io.StringIO(), force_terminal=True, width=100, height=40, highlight=False)
    readings = iter([{"a": RUNNING, "b": IDLE}, None])

    def read() -> dict[str, object]:
        if (found := next(readings)) is None:
            raise StoreUnavailable("s3://lake/state/: 503")
        return found

    pauses: list[float] = []

    def sleep(seconds: float) -> None:
        pauses.append(seconds)
        if len(pauses) == 2:
            raise KeyboardInterrupt

    with on_terminal(console, partial(streams_screen, canary="")) as show:
        watch(read, show, 1.0, sleep=sleep)
    text = console.file.getvalue()
    first, error, last = text.index("running"), text.index("Cannot read the status: s3://"), text.rindex("running")
    assert first < error < last  # drawn again with the error


@pytest.fixture
def config(tmp_path: Path) -> Path:
    return write_stream_settings(tmp_path, "a", "b")


@pytest.mark.parametrize("as_json", [True, False])
def test_watching_shows_every_stream(config: Path, monkeypatch: pytest.MonkeyPatch, as_json: bool) -> None:
    """Without --stream, each reading has all of them: one document a line, or one table."""
    pauses: list[float] = []

    def sleep(pause: float) -> None:
        pauses.append(pause)
        if len(pauses) == 2:
            raise KeyboardInterrupt

    monkeypatch.setattr(status, "time", SimpleNamespace(sleep=sleep))
    arguments = ["--config", str(config), "status", "--watch", "2", *(["--json"] if as_json else [])]
    done = CliRunner().invoke(command, arguments)
    assert (done.exit_code, pauses) == (0, [2.0, 2.0])
    if as_json:
        once = CliRunner().invoke(command, ["--config", str(config), "status", "--json"])
        for line in done.stdout.splitlines():
            assert [each["stream"] for each in json.loads(line)["streams"]] == ["a", "b"]
            assert json.loads(line).keys() == json.loads(once.stdout).keys()
    else:
        assert done.stdout.count("\nall ") == 2
        assert done.stdout.count("\na ") == done.stdout.count("\nb ") == 2


@pytest.mark.parametrize(
    ("state", "code"), [("idle", 0), ("running", 0), ("behind", 0), ("files", 3), ("dead_letters", 3), ("died", 3)]
)
def test_the_exit_code_is_that_of_the_worst_stream(
    config: Path, monkeypatch: pytest.MonkeyPatch, state: str, code: int
) -> None:
    """It says what the first line says; one stream alone ends as it does among others."""
    for words in ([], ["--stream", "b"]):
        found = iter([STATUSES["idle"], STATUSES[state]] if not words else [STATUSES[state]])
        monkeypatch.setattr(StatusReader, "read", lambda _, found=found: next(found))
        done = CliRunner().invoke(command, ["--config", str(config), "status", *words, "--json"])
        assert done.exit_code == code


def test_who_needs_a_person_says_so() -> None:
    """`needs_you`, and each state in which a person has to act, ends with exit code 3; no state in order does."""
    for condition in Condition:
        is_told = condition.word == "needs_you" or condition.severity == "act"
        assert finding(condition, "it is so").needs_operator is is_told
        assert not (is_told and condition.severity in {"in_order", "nothing"})
