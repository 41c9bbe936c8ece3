"""The cost of several streams: of all jobs together, divided by the bytes of each stream."""

import json
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from compactor.adapters.local.native.module import is_installed
from compactor.cli.entry import compactor as command
from compactor.cli.priced_job import shape_of
from compactor.cost.measured_cost import common_commits, measured_cost, together
from tests.support.recent_commits import recent_commit
from tests.support.statuses import NOW
from tests.support.streams import stream_settings, write_stream_settings

LINE = b'{"a": 1}\n' * 1000


@pytest.fixture(autouse=True)
def _elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Run in a folder without the result of a benchmark."""
    monkeypatch.chdir(tmp_path)


def call(config: Path, *arguments: str) -> str:
    done = CliRunner().invoke(command, ["--config", str(config), *arguments])
    assert done.exit_code == 0, done.output
    return done.stdout


def costs(config: Path, *more: str, verb: str = "actual") -> dict[str, Any]:
    found: dict[str, Any] = json.loads(call(config, "cost", verb, "--json", *more))
    return found


@pytest.mark.skipif(not is_installed(), reason="native is not installed")
def test_the_cost_of_all_streams_adds_up(tmp_path: Path) -> None:
    """Each stream has its part of the whole cost, and the whole is what the single ledgers have."""
    config = write_stream_settings(tmp_path, "a", "b")
    text = '[stream]\nsource = "listing"\n\n[convert]\nengine = "native"\n\n'
    config.write_text(text + config.read_text())
    nothing = CliRunner().invoke(command, ["--config", str(config), "cost", "actual", "--days", "7"])
    assert nothing.exit_code == 1
    assert "nothing was compacted in the last 7 days" in nothing.stderr
    assert costs(config)["streams"] == []
    for name, number in (("a", 1), ("b", 3)):
        for at in range(number):
            (tmp_path / "lake" / "raw" / name / f"2026-01-02-{at}.ndjson").write_bytes(LINE)
        call(config, "plan", str(tmp_path / "lake" / "raw" / name), "--stream", name)
    call(config, "run", "--once")
    found = costs(config, "--days", "7")
    assert [(each["stream"], each["input_files"], each["share_of_input"]) for each in found["streams"]] == [
        ("a", 1, 0.25),
        ("b", 3, 0.75),
    ]
    assert sum(each["dollars"] for each in found["streams"]) == pytest.approx(found["dollars"])
    alone = [costs(config, "--days", "7", "--stream", each)["measured"] for each in "ab"]
    for figure in ("commits", "input_files", "input_bytes"):
        assert found["measured"][figure] == sum(each[figure] for each in alone)
    assert found["estimate"]["load"]["files_per_hour"] == pytest.approx(4 / 168)
    latest = costs(config)
    assert sum(each["dollars"] for each in latest["streams"]) == pytest.approx(latest["measured"]["dollars_elapsed"])
    shown = call(config, "cost", "actual", "--days", "7")
    table = shown[shown.index("\nstream ") :].splitlines()[2:5]
    assert [line.split()[:2] for line in table] == [["a", "1"], ["b", "1"], ["all", "2"]]


def test_each_job_has_workers(tmp_path: Path) -> None:
    """A stream with its own job has workers of its own, which the total counts."""
    shared = costs(write_stream_settings(tmp_path / "one", "a", "b"), verb="estimate")
    own = costs(write_stream_settings(tmp_path / "two", "a", "b", more='job = "own"\n'), verb="estimate")
    assert (shared["jobs"], shared["job"]["workers"], own["jobs"], own["job"]["workers"]) == (1, 3, 2, 6)
    glue = [next(each for each in found["lines"] if each["service"] == "Glue") for found in (shared, own)]
    assert glue[1]["dollars_per_hour"] == pytest.approx(2 * glue[0]["dollars_per_hour"])


def test_a_table_of_a_stream_counts() -> None:
    """Tables belong to streams, and their files are written in place: at the top of the settings file is a catalog."""
    at_the_top = {"table": {"catalog": "glue"}, "schema": {"metadata_columns": ["file_date"]}}
    for table, in_place in (("", False), ("lake.events", True)):
        stream = {"name": "a", "input": {"allowed_prefixes": ["s3://lake/raw/a"]}, "table": {"name": table}}
        assert shape_of(stream_settings(stream, **at_the_top), "native", None).in_place is in_place


def commit_at(seconds: float) -> Any:
    return recent_commit(NOW + timedelta(seconds=seconds), manifest_id=f"m{seconds}", seconds=1.0)


def test_a_busy_stream_does_not_hide_its_own_past() -> None:
    """Of a busy stream only the latest commits are known, so those of a quiet one count from there on only."""
    busy = [commit_at(each) for each in range(100, 104)]
    quiet = [commit_at(each) for each in (0, 50, 101.5)]
    found = common_commits({"busy": busy, "quiet": quiet}, 4)
    assert found == {"busy": busy, "quiet": quiet[2:]}
    assert common_commits({"busy": busy[:3], "quiet": quiet}, 4) == {"busy": busy[:3], "quiet": quiet}
    assert common_commits({}, 4) == {}


def test_streams_at_work_at_once() -> None:
    """All of them were at work for no longer than the period."""
    parts = [measured_cost([commit_at(0), commit_at(9)], 1.0) for _ in range(7)]
    found = together([each for each in parts if each], 3.0)
    assert (found.commits, found.at_work_seconds, found.elapsed_seconds) == (14, 10.0, 10.0)
    assert found.dollars_per_hour == 3.0
    assert isinstance(found.since, datetime)
