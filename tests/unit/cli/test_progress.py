"""What long work shows on a terminal: one line with rate and time left, which is gone at the end."""

import re
import subprocess
import sys

import pytest

from tests.support.terminals import sent_to_terminal

WORK = """
import time
from compactor.__main__ import end_at_once
from compactor.cli.ui.progress import working
from compactor.telemetry.logs import configure_logs
from compactor.telemetry.meter import Meter
import signal, sys
signal.signal(signal.SIGINT, end_at_once)
meter, items = Meter(), int(sys.argv[1])
if "json" in sys.argv:
    configure_logs(as_json=True)
with working("checking the files of manifests" if items > 1 else "checking", meter):
    for _ in meter.each("manifest", range(items), items):
        time.sleep(0.05)
print("done")
"""
HIDE, SHOW, ERASE = "\x1b[?25l", "\x1b[?25h", "\x1b[2K"


def shown(columns: int, items: int, *words: str, interrupt_at: str = "") -> str:
    return sent_to_terminal(columns, [sys.executable, "-c", WORK, str(items), *words], interrupt_at=interrupt_at)


@pytest.mark.parametrize("columns", [80, 40])
def test_line_of_long_work(columns: int) -> None:
    """It fits the terminal whatever its width, and leaves nothing behind but what the command prints."""
    text = shown(columns, 60)
    frames = re.findall(r"checking[^\x1b\r\n]*", text)
    assert frames
    assert all(len(frame) + 2 < columns for frame in frames)
    if columns == 80:
        assert re.fullmatch(r"checking the files of manifests \d+ %: \d+ of 60 manifests, \d+/s, \d s left", frames[-1])
    assert text.count(HIDE) == text.count(SHOW) == 1
    assert text.index(SHOW) < text.index("done")
    assert ERASE in text.partition("done")[0].rpartition("checking")[2]
    assert text.count("\n") <= 2


def test_short_work_shows_nothing() -> None:
    """Work of less than a second does not make the terminal flicker."""
    assert shown(80, 1) == "done\r\n"


def test_nothing_beside_a_log_in_json() -> None:
    """A program reads that log."""
    assert shown(80, 40, "json") == "done\r\n"


def test_ctrl_c_gives_the_cursor_back() -> None:
    """The line may stay, as that of any interrupted command, but the cursor is visible again."""
    text = shown(80, 2_000, interrupt_at="checking")
    assert text.count(SHOW) == 1
    assert text.rstrip().endswith("compactor: interrupted")


def test_nothing_without_a_terminal() -> None:
    """In a pipe, work of some seconds writes nothing."""
    done = subprocess.run([sys.executable, "-c", WORK, "40"], capture_output=True, text=True, check=True)
    assert (done.stdout, done.stderr) == ("done\n", "")
