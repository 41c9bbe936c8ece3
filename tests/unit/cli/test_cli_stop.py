"""`compactor stop`: every job with a live heartbeat is asked to stop, and listed."""

import json
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from compactor.cli.entry import compactor as command
from compactor.settings.settings import load_settings
from compactor.wiring import streaming
from compactor.wiring.app import App
from tests.support.fakes import ListSource, PlainEngine
from tests.support.settings_files import write_settings


@pytest.fixture
def config(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr("compactor.ledger.heartbeat.HEARTBEAT_INTERVAL_SECONDS", 0.05)
    monkeypatch.setattr("compactor.cli.commands.job.stop._POLL_SECONDS", 0.01)
    return write_settings(tmp_path)


def call(config: Path, *arguments: str) -> Result:
    return CliRunner().invoke(command, ["--config", str(config), "stop", *arguments])


@pytest.fixture
def job(config: Path) -> Iterator[threading.Thread]:
    """A job that runs until it is asked to stop."""
    app = App(load_settings(config, {}))
    began = threading.Event()
    source = ListSource(app.store, app.layout.manifests_folder, on_wait=began.set)
    service = streaming.service_on(app, PlainEngine(app.store, metadata_columns=app.settings.metadata_columns), source)
    thread = threading.Thread(target=lambda: service.run(once=False))
    thread.start()
    assert began.wait(30)
    yield thread
    service.stop()
    thread.join(30)


def test_nothing_runs(config: Path) -> None:
    """Without a running job there is nothing to do, which is not a failure."""
    result = call(config)
    assert (result.exit_code, result.stdout) == (0, "No job is running.\n")
    assert json.loads(call(config, "--json", "--wait", "1").stdout) == {"asked": [], "running": []}


def test_a_job_ends(config: Path, job: threading.Thread) -> None:
    """A job ends when it is asked to, and the command can wait for it."""
    result = call(config, "--wait", "30")
    assert result.exit_code == 0, result.output
    assert "has ended" in result.stdout
    job.join(30)
    assert not job.is_alive()


def test_a_job_that_does_not_end_in_time(config: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where a job still runs after the wait, the command fails and names it."""
    monkeypatch.setattr("compactor.ledger.heartbeat.HEARTBEAT_INTERVAL_SECONDS", 60.0)
    app = App(load_settings(config, {}))
    with app.heartbeat:
        result = call(config, "--wait", "0.01", "--json")
        assert result.exit_code == 1
        assert [heartbeat["run_id"] for heartbeat in json.loads(result.stdout)["running"]] == [app.run_id]
        assert "still runs" in call(config, "--wait", "0.01").stdout
        asked = call(config)
        assert (asked.exit_code, "was asked to stop" in asked.stdout) == (0, True)
