"""The screen of `status` in every state: as stored, within 80 columns and one screen."""

import io
from dataclasses import replace
from pathlib import Path

import pytest
from rich.console import Console
from rich.text import Text

from compactor.cli.ui.console import SafeConsole
from compactor.cli.ui.status_screen import screen
from compactor.ledger.sizing import with_share
from compactor.ops.status.values import OutputSizes
from tests.support import hostile_names
from tests.support.statuses import LETTERS, RUN, RUNNING, STATUSES, ago
from tests.support.stored import check_stored

STORED = Path(__file__).parents[2] / "cases" / "status_screens"
NAMES = sorted(STATUSES)


@pytest.mark.parametrize("name", NAMES)
def test_stored_screen(name: str) -> None:
    """The screen of 80 columns is the stored one."""
    check_stored(STORED / f"{name}.txt", screen(STATUSES[name]).plain + "\n")


@pytest.mark.parametrize("name", NAMES)
def test_fits(name: str) -> None:
    """No line is wider than 80 columns, and no screen higher than 40 rows; nor is it with colours on a terminal."""
    console = Console(file=io.StringIO(), width=80, height=40, force_terminal=True, record=True)
    console.print(screen(STATUSES[name], width=80, height=40), soft_wrap=True)
    lines = console.export_text().splitlines()
    assert (max(map(len, lines)) <= 80, len(lines) <= 40) == (True, True)
    assert [line.rstrip() for line in lines] == [line.rstrip() for line in screen(STATUSES[name]).plain.splitlines()]


@pytest.mark.parametrize("height", [24, 30, 40])
@pytest.mark.parametrize("width", [20, 80, 120, 400])
def test_other_terminals(width: int, height: int) -> None:
    """A low terminal gets fewer commits, a wide one longer names; lines are no wider than either 80 or the terminal."""
    text = screen(RUNNING, width=width, height=height).plain.splitlines()
    assert max(map(len, text)) <= max(80, min(width, 120))
    assert len(text) <= height
    assert text[-1].strip().startswith(("14 s", "28 s", "42 s", "56 s", "1 min", "2 min"))


def test_long_names() -> None:
    """Names of any length break no table; a command is left whole, so that it can be copied."""
    name = "n" * 200
    letter = LETTERS[0].model_copy(update={"manifest_id": name})
    letters = replace(STATUSES["dead_letters"].dead_letters, latest=(letter,))
    commits = tuple(each.model_copy(update={"manifest_id": name}) for each in RUNNING.recent)
    lines = screen(replace(RUNNING, dead_letters=letters, recent=commits)).plain.splitlines()
    assert max(map(len, lines)) <= 80


def test_error() -> None:
    """Why nothing newer is known stands right below the state, and the time says of when the rest is."""
    lines = screen(RUNNING, error="bucket lake: 503 Slow Down").plain.splitlines()
    assert lines[2] == "Cannot read the status: bucket lake: 503 Slow Down"
    assert lines[0].endswith("2026-01-02 03:04:05 UTC")


@pytest.mark.parametrize(
    ("commits", "by_bytes", "shown"),
    [
        (64, (1000, 984, 0), "98.4 % of the output's bytes are in files within 25 % of the target|in the latest 64 "),
        (12, (1000, 0, 900), "25 % of the target|in 12 of the latest 64 commits|90.0 % come from manifests"),
        (64, (9, 0, 9), "(no manifest or partition fills a file of 1 MiB, the target)|in the latest 64 commits"),
        (2, (0, 0, 0), "2 of the latest 64 commits: no output"),
        (0, None, "none of the latest 64 commits recorded today's target"),
    ],
)
def test_hit_rate(commits: int, by_bytes: tuple[int, int, int] | None, shown: str) -> None:
    """The share, of how many commits, and why it is low; where no commit tells it, it is not known."""
    sizes = OutputSizes(2**20, commits, None if by_bytes is None else with_share(*by_bytes))
    assert shown.replace("|", "\n" + " " * 10) in screen(replace(RUNNING, sizes=sizes)).plain


def test_a_run_that_was_asked_to_stop() -> None:
    """Every job is shown, with its age and whether it was asked to stop."""
    other = replace(RUN, run_id="other", asked_to_stop_at=ago(25))
    text = screen(replace(RUNNING, runs=(RUN, other))).plain
    assert "jobs      20260101T220000-ab12cd34, up for 5 h 4 min\n" in text
    assert "\n          other, up for 5 h 4 min, asked to stop 25 s ago\n" in text


@pytest.mark.parametrize("name", hostile_names.NAMES.values(), ids=hostile_names.NAMES)
def test_hostile_names_on_the_screen(name: bytes) -> None:
    """Names in an error and in the fields are text: lines are divided by the screen alone."""
    found = STATUSES["files"]
    file = replace(found.quarantined_files.latest[0], uri=f"/raw/{name.decode()}")
    files = replace(found.quarantined_files, latest=(file,))
    hostile_names.check_shown(
        screen(replace(found, quarantined_files=files), error=f"{name.decode()}: gone").plain.encode()
    )


@pytest.mark.parametrize("name", hostile_names.NAMES.values(), ids=hostile_names.NAMES)
def test_hostile_names_on_the_console(name: bytes, capsys: pytest.CaptureFixture[str]) -> None:
    """What gets past the screen is escaped by the console."""
    SafeConsole().print(Text(name.decode().replace("\n", "")))
    hostile_names.check_shown(capsys.readouterr().out.encode())
