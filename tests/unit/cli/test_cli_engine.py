"""Promises of the engine: which one ran and why is said, and without Spark no Java is needed."""

import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest
from click.testing import CliRunner

from compactor.api import folder_run
from compactor.cli.commands.job import run as module
from compactor.cli.entry import compactor as command
from compactor.core.errors import SettingsError
from compactor.settings.sections import Convert
from compactor.settings.settings import parse_settings, parse_toml
from compactor.wiring import engine_choice as choices
from compactor.wiring import streaming
from tests.support.extras import NATIVE
from tests.support.workspace import Workspace, make_workspace


@pytest.mark.parametrize(
    ("engine", "missing", "shown"),
    [
        ("auto", "", "native: it is installed"),
        ("auto", "the native engine is not installed", "spark: the native engine is not installed; about 50 times"),
        ("spark", "", 'spark: convert.engine is "spark"'),
        ("native", "the native engine is not installed", 'native: convert.engine is "native"'),
    ],
)
def test_which_engine_and_why(engine: str, missing: str, shown: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The engine that the settings choose, with the reason in words."""
    monkeypatch.setattr(choices, "is_installed", lambda: not missing)
    monkeypatch.setattr(choices, "why_not_installed", lambda: missing)
    assert str(choices.engine_choice(Convert(engine=engine))).startswith(shown)


@pytest.mark.parametrize(
    ("source", "engine", "installed", "java", "shown"),
    [
        ("auto", "native", True, True, "spark: pyspark and Java are installed"),
        ("auto", "native", True, False, "listing: there is no Java"),
        ("auto", "native", False, True, "listing: pyspark is not installed"),
        ("auto", "spark", False, False, "spark: the engine is spark"),
        ("spark", "native", False, False, 'spark: stream.source is "spark"'),
        ("listing", "native", True, True, 'listing: stream.source is "listing"'),
    ],
)
def test_where_manifests_come_from_and_why(
    source: str, engine: str, installed: bool, java: bool, shown: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Unless the settings say it, from Spark where it is installed with Java, else from listings."""
    monkeypatch.setattr(choices.extras, "is_installed", lambda _: installed)
    monkeypatch.setenv("PATH", str(Path(shutil.which("java") or "").parent if java else tmp_path))
    monkeypatch.delenv("JAVA_HOME", raising=False)
    workspace = make_workspace(tmp_path)
    text = f'{workspace.config.read_text()}\n[stream]\nsource = "{source}"\n[convert]\nengine = "{engine}"\n'
    settings = parse_settings(parse_toml(text.encode(), "x"))
    assert str(choices.source_choice(settings)) == shown


def listing(root: Path) -> Workspace:
    """A workspace whose job needs no Spark."""
    workspace = make_workspace(root)
    workspace.config.write_text(
        workspace.config.read_text() + '\n[stream]\nsource = "listing"\ntrigger_interval_seconds = 0.1\n'
    )
    return workspace


@NATIVE.needed
def test_a_run_without_spark(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With manifests from a listing and the native engine, nothing asks for Java, and the log names the engine."""
    monkeypatch.setattr(module, "check_java", lambda: pytest.fail("Java is not needed"))
    workspace = listing(tmp_path)
    workspace.plan()
    result = workspace.call("run", "--once")
    assert (result.exit_code, "rows       3" in result.stdout) == (0, True)
    assert "Spark" not in result.stdout
    [chosen] = [line for line in map(json.loads, result.stderr.splitlines()) if line["event"] == "run.engine_chosen"]
    assert (chosen["engine"], chosen["source"], chosen["watched"]) == ("native", "listing", "")


@NATIVE.needed
@pytest.mark.parametrize("log_format", ["auto", "text", "json"])
def test_what_a_pipe_gets_of_the_log(log_format: str, tmp_path: Path) -> None:
    """A person's command writes warnings only, as text; a job, and who asks for a format, gets all events."""
    make_workspace(tmp_path)
    (tmp_path / "raw" / "1999-01-01.ndjson").write_text('{"a": 1}\n')
    for path in (tmp_path / "raw").iterdir():
        os.utime(path, (time.time() - 3600,) * 2)
    words = ["compact", str(tmp_path / "raw"), str(tmp_path / "rows")]
    shown = CliRunner().invoke(command, ["--log-format", log_format, *words])
    lines = [line for line in shown.stderr.splitlines() if not line.startswith("compactor: ")]
    if log_format == "json":
        assert {"files.misdated", "manifest.committed"} <= {json.loads(line).get("event") for line in lines}
    else:
        events = [line.split()[1:3] for line in lines]
        assert events[0] == ["warning", "files.misdated"]
        assert (["info", "manifest.committed"] in events) == (log_format == "text")


@NATIVE.needed
def test_a_run_that_watches(tmp_path: Path) -> None:
    """It tells its supervisor that it is ready and alive, takes what comes, and ends in order at a signal.

    All that it writes is one JSON object a line. There is no Java on the PATH.
    """
    workspace, health = listing(tmp_path), tmp_path / "health"
    command_line = [sys.executable, "-m", "compactor", "--config", str(workspace.config), "--log-format", "json", "run"]
    words = [*command_line, "--health-file", str(health)]
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as supervisor:
        supervisor.bind(f"\0compactor-{os.getpid()}")
        supervisor.settimeout(60)
        env = {**os.environ, "PATH": "/nowhere", "JAVA_HOME": "", "NOTIFY_SOCKET": f"@compactor-{os.getpid()}"}
        with subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=env) as run:
            assert supervisor.recv(100) == b"READY=1\nWATCHDOG=1"
            assert health.exists()
            workspace.plan()
            deadline = time.monotonic() + 60
            while not list((tmp_path / "s" / "archive").rglob("*.json")) and time.monotonic() < deadline:
                time.sleep(0.1)
            run.send_signal(signal.SIGTERM)
            out, _ = run.communicate(timeout=60)
    events = [json.loads(line) for line in out.splitlines()]
    first, last = events[0], events[-1]
    assert (first["event"], first["watched"]) == ("run.engine_chosen", str(tmp_path / "m") + "/")
    assert (run.returncode, last["event"], last["manifests"], last["rows"]) == (0, "run.ended", 1, 3)
    [alive] = [each for each in events if each["event"] == "run.alive"]
    assert 0 < alive["memory_bytes"] <= last["peak_memory_bytes"] < 1024**3
    assert "run.asked_to_stop" in {each["event"] for each in events}


def test_a_place_of_health_that_cannot_be_written(tmp_path: Path) -> None:
    """A run whose probe would fail is refused at its start, instead of being killed again and again."""
    result = listing(tmp_path).call("run", "--once", "--health-file", str(tmp_path / "none" / "health"))
    assert (result.exit_code, "expected a writable place" in result.stderr) == (1, True)


def test_a_listing_needs_the_native_engine(tmp_path: Path) -> None:
    """A job without Spark on Spark's engine is refused before it starts."""
    workspace = listing(tmp_path)
    workspace.config.write_text(workspace.config.read_text() + '\n[convert]\nengine = "spark"\n')
    result = workspace.call("run", "--once")
    assert result.exit_code == 2
    assert result.stderr == (
        'compactor: stream.source: "listing" -> expected "spark", because the engine is spark '
        '(convert.engine is "spark")\n'
    )


@NATIVE.needed
def test_compact_names_its_engine(tmp_path: Path) -> None:
    """The closing lines and the document name the engine and the reason."""
    make_workspace(tmp_path)
    for path in (tmp_path / "raw").iterdir():
        os.utime(path, (time.time() - 3600,) * 2)
    words = ["compact", str(tmp_path / "raw"), str(tmp_path / "rows")]
    assert "engine    native: it is installed" in CliRunner().invoke(command, words).stdout
    assert json.loads(CliRunner().invoke(command, [*words, "--json"]).stdout)["engine"] is None


def test_a_slow_engine_is_named_before_it_starts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Who has to wait for Spark is told why."""
    make_workspace(tmp_path)
    for path in (tmp_path / "raw").iterdir():
        os.utime(path, (time.time() - 3600,) * 2)

    def no_spark(_app: object) -> object:
        raise SettingsError(["no Spark here"])

    monkeypatch.setattr(folder_run, "check_java", lambda: None)
    monkeypatch.setattr(streaming, "service", no_spark)
    monkeypatch.setattr(folder_run, "running_session", lambda: None)  # other tests may have one
    words = ["compact", str(tmp_path / "raw"), str(tmp_path / "rows"), "--engine", "spark"]
    shown = CliRunner().invoke(command, words).stderr
    assert 'compactor: engine spark: convert.engine is "spark"; starting Spark ...\n' in shown
