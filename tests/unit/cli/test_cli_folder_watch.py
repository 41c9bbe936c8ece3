"""`compact --watch`: files become rows as they come, also after a kill; and Ctrl-C ends the command at any moment."""

import itertools
import os
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pyarrow.dataset as ds
import pytest
from click.testing import CliRunner

from compactor.cli.entry import compactor as command
from tests.support import extras

WAIT_SECONDS = 120.0
INTERRUPTED = 130

INTERRUPTS_AT = """
import builtins, os, signal, sys
import compactor.__main__
number, kill, real = int(sys.argv.pop(1)), int(sys.argv.pop(1)), builtins.__import__
def importing(*arguments, **options):
    global number
    number -= 1
    if number == 0:
        os.kill(os.getpid(), kill)
    return real(*arguments, **options)
builtins.__import__ = importing
compactor.__main__.main()
"""


def write(path: Path, *ids: int) -> None:
    """A file that gets its name when it is whole, written an hour ago."""
    temporary = path.with_name(f".{path.name}")
    temporary.write_bytes(b"".join(b'{"id": %d}\n' % each for each in ids))
    os.utime(temporary, (time.time() - 3600,) * 2)
    temporary.rename(path)


def ids(out: Path) -> Counter[int]:
    files = [str(path) for path in out.rglob("*.parquet") if not path.name.startswith(".")]
    return Counter(ds.dataset(files, format="parquet").to_table().column("id").to_pylist() if files else [])


def wait_for(out: Path, expected: dict[int, int]) -> None:
    wait_until(out, lambda found: found == expected)


def wait_until(out: Path, is_there: Callable[[Counter[int]], bool]) -> None:
    until = time.monotonic() + WAIT_SECONDS
    while not is_there(found := ids(out)):
        assert time.monotonic() < until, f"{found}"
        time.sleep(0.1)


def watching(raw: Path, out: Path) -> subprocess.Popen[bytes]:
    words = [sys.executable, "-m", "compactor", "compact", "--watch", "--max-wait", "0.2", "--types", "infer"]
    return subprocess.Popen([*words, str(raw), str(out)], stdout=subprocess.PIPE, stderr=subprocess.PIPE)


@extras.NATIVE.needed
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_files_become_rows_as_they_come(tmp_path: Path, number: int) -> None:
    """In an empty folder at first, through a kill, and until a signal: each line is one row, and the end is clean.

    The first files give the columns their types.
    """
    raw, out = tmp_path / "raw", tmp_path / "rows"
    raw.mkdir()
    killed = watching(raw, out)
    write(raw / "a.ndjson", 1)
    wait_for(out, {1: 1})
    write(raw / "b.ndjson", 2, 3)
    killed.kill()
    killed.communicate()
    again = watching(raw, out)
    wait_for(out, {1: 1, 2: 1, 3: 1})
    (raw / "new" / "er").mkdir(parents=True)
    write(raw / "new" / "er" / "c.ndjson", 4)
    wait_for(out, {1: 1, 2: 1, 3: 1, 4: 1})
    again.send_signal(number)
    told, errors = again.communicate(timeout=WAIT_SECONDS)
    assert again.returncode in {0, INTERRUPTED}, errors  # it was still verifying
    assert b"1 file, 1 row in " in told
    assert b"Traceback" not in errors
    verified = CliRunner().invoke(command, ["--config", f"{out}.compactor/compactor.toml", "verify", "--deep"])
    assert verified.exit_code == 0


@extras.NATIVE.needed
def test_a_log_that_is_written_all_the_time(tmp_path: Path) -> None:
    """Its lines become rows while it is written, through a rotation and a kill, and each of them once."""
    raw, out = tmp_path / "raw", tmp_path / "rows"
    raw.mkdir()
    lines, stopped = itertools.count(), threading.Event()

    def write_on() -> None:
        log = (raw / "app.log").open("ab", buffering=0)
        for number in lines:
            line = b'{"id": %d}\n' % number
            log.write(line[:4])
            log.write(line[4:])
            if number == 150:
                (raw / "app.log").rename(raw / "app.log.1")
                log = (raw / "app.log").open("ab", buffering=0)
            if stopped.wait(0.01):
                break

    writer = threading.Thread(target=write_on)
    writer.start()
    watcher = watching(raw, out)
    try:
        wait_until(out, lambda found: len(found) > 20)
        watcher.kill()
        watcher.communicate()
        watcher = watching(raw, out)
        wait_until(out, lambda found: len(found) > 160)
    finally:
        stopped.set()
        writer.join()
    wait_for(out, dict.fromkeys(range(next(lines)), 1))
    watcher.send_signal(signal.SIGTERM)
    assert b"Traceback" not in watcher.communicate(timeout=WAIT_SECONDS)[1]


@pytest.mark.parametrize(("number", "kill"), [(1, signal.SIGINT), (300, signal.SIGTERM), (1500, signal.SIGINT)])
def test_a_signal_while_the_command_loads(tmp_path: Path, number: int, kill: int) -> None:
    """It ends with 130 and one line, whatever is being imported."""
    words = [sys.executable, "-c", INTERRUPTS_AT, str(number), str(int(kill)), "compact", str(tmp_path / "none")]
    ended = subprocess.run([*words, str(tmp_path / "out")], capture_output=True, timeout=WAIT_SECONDS, check=False)
    assert (ended.returncode, ended.stderr) == (INTERRUPTED, b"compactor: interrupted\n")


def test_wrong_usage_of_watch(tmp_path: Path) -> None:
    """What cannot be combined is refused."""
    for words, fault in [(["--watch", "--dry-run"], "not both"), (["--max-wait", "3"], "--max-wait needs --watch")]:
        result = CliRunner().invoke(command, ["compact", str(tmp_path), str(tmp_path / "out"), *words])
        assert (result.exit_code, fault in result.stderr) == (2, True)
