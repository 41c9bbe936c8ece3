"""Promises about Ctrl-C and SIGTERM in the first second of a command: a line, and no traceback but Python's own."""

import random
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

import compactor
from compactor.cli.commands.job.run import run_job
from compactor.cli.ui.failures import ExitCode, exit_code_of
from compactor.job.report import RunReport
from compactor.settings.settings import load_settings
from compactor.wiring import streaming
from compactor.wiring.app import App
from tests.support.settings_files import write_settings

PACKAGE = Path(compactor.__file__).parent
LOADED = """
import sys
sys.path[:0] = [sys.argv[1]]
import compactor.__main__
print(*{"signal", "enum", "typing", "re", "click"} & sys.modules.keys())
"""


def test_what_is_loaded_before_the_handler() -> None:
    """Nothing that takes time: what Python itself has loaded, and one module of the product."""
    words = [sys.executable, "-I", "-S", "-c", LOADED, str(PACKAGE.parent)]
    assert subprocess.run(words, capture_output=True, text=True, check=True).stdout == "\n"


@pytest.mark.parametrize("kills", [4, pytest.param(20, marks=pytest.mark.full)])
def test_a_signal_in_the_first_second(tmp_path: Path, kills: int) -> None:
    """At random moments: 130 and one line. Before the first line of the product, Python has its own way."""
    chance = random.Random(kills)
    source = tmp_path / "raw"
    source.mkdir()
    (source / "2026-01-01.ndjson").write_text('{"a": 1}\n')
    for kill in range(kills):
        number = signal.SIGTERM if kill % 2 else signal.SIGINT
        words = [sys.executable, "-m", "compactor", "compact", str(source), str(tmp_path / "rows")]
        with subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
            time.sleep(chance.random())
            process.send_signal(number)
            _, told = process.communicate(timeout=60)
        assert str(PACKAGE) not in told
        if "Traceback" not in told:  # Python's own: it had not come to the product yet
            assert process.returncode in {ExitCode.INTERRUPTED, ExitCode.DONE, -number}, told
            # A call that had begun its work ends it cleanly, and says what is left.
            ending = re.compile(r"compactor: (interrupted|not finished: 1 manifest left; .*)")
            assert process.returncode != ExitCode.INTERRUPTED or ending.fullmatch(told.splitlines()[-1]), told


@pytest.mark.parametrize("is_handled_by_spark", [False, True])
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_that_stops_spark_as_well(
    tmp_path: Path,
    number: int,
    is_handled_by_spark: bool,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """While Spark starts, its death by the signal that stops the command is no error; without a signal it is one."""
    app = App(load_settings(write_settings(tmp_path), {}))
    monkeypatch.setattr("compactor.cli.commands.job.run.check_java", lambda: None)
    monkeypatch.setattr("compactor.adapters.spark.session.close_session", lambda: None)

    def dying(_app: App) -> None:
        if is_handled_by_spark:
            signal.signal(signal.SIGINT, lambda *_: None)
        if number:
            signal.raise_signal(number)
        raise ConnectionResetError

    monkeypatch.setattr(streaming, "service", dying)
    assert exit_code_of(lambda: run_job(app, once=True)) is ExitCode.INTERRUPTED
    assert capsys.readouterr().err.splitlines()[-1] == "compactor: interrupted"
    number = 0
    assert exit_code_of(lambda: run_job(app, once=True)) is ExitCode.FAILED


@pytest.mark.parametrize(
    ("report", "once", "expected"),
    [
        (RunReport(failures={"m1": "503"}), False, ExitCode.DONE),
        (RunReport(failures={"m1": "503"}), True, ExitCode.FAILED),
        (RunReport(failures={"m1": "503"}, stuck={"m2": "damaged"}), False, ExitCode.NEEDS_OPERATOR),
        (RunReport(), False, ExitCode.DONE),
    ],
    ids=["stopped", "once", "stuck", "nothing"],
)
def test_a_manifest_that_waits_for_its_next_attempt(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, report: RunReport, once: bool, expected: ExitCode
) -> None:
    """It is no failure of a run without end that was asked to stop, for the next run goes on with it."""
    app = App(load_settings(write_settings(tmp_path), {}))
    monkeypatch.setattr("compactor.cli.commands.job.run._run", lambda *_, **__: report)
    monkeypatch.setattr("compactor.cli.commands.job.run.check_java", lambda: None)
    assert exit_code_of(lambda: run_job(app, once=once)) is expected
