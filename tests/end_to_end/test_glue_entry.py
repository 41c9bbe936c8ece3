"""The script that Glue runs: its arguments become settings, and the job is the one that runs everywhere."""

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from compactor.core.errors import SettingsError
from compactor.settings.toml import toml_of
from compactor.wiring.settings_files import job_arguments, overriding
from tests.faults.conftest import wait_until
from tests.support.extras import KAFKA
from tests.support.kafka_broker import KafkaBroker
from tests.support.settings_files import write_settings

ROOT = Path(__file__).resolve().parents[2]
BY_GLUE = (
    "--JOB_ID",
    "j_1",
    "--JOB_RUN_ID",
    "jr_1",
    "--job-bookmark-option",
    "job-bookmark-disable",
    "--TempDir",
    "s3://t/",
)


def test_arguments() -> None:
    """The arguments that are there are found, in both forms; all others are left to Glue, also shortened ones."""
    argv = [
        "glue_entry.py",
        *BY_GLUE,
        "--JOB_NAME",
        "nightly",
        "--CONFIG",
        "s3://b/c.toml",
        "--CON",
        "other",
        "--COMPACTOR_METRICS__SINK=log",
        "--enable-metrics",
        "",
    ]
    found = job_arguments(argv)
    assert found == {"CONFIG": "s3://b/c.toml", "COMPACTOR_METRICS__SINK": "log"}
    assert overriding(found) == {"COMPACTOR_METRICS__SINK": "log"}
    named = job_arguments([*argv, "--COMPACTOR_STREAM__MAX_ATTEMPTS", "5"])
    assert named["COMPACTOR_STREAM__MAX_ATTEMPTS"] == "5"


@pytest.mark.parametrize(
    ("argv", "message"),
    [
        ([], "--CONFIG: missing from"),
        (["--CONFIG"], "CONFIG: expected one argument"),
        (["--CONFIG", "c.toml", "--COMPACTOR_STREAM_SOURCE", "x"], "--COMPACTOR_STREAM_SOURCE: not a setting's name"),
    ],
)
def test_arguments_that_will_not_do(argv: list[str], message: str) -> None:
    """A job without settings, or with an argument that can name no setting, is told so."""
    with pytest.raises(SettingsError, match=message):
        job_arguments(["glue_entry.py", *argv])


@pytest.mark.timeout(240)
def test_the_script_runs_the_job_on_glue(tmp_path: Path) -> None:
    """Rows come out, an argument overrides a setting, and `stop` ends the run cleanly."""
    places = {name: tmp_path / name for name in ("manifests", "output", "state", "raw")}
    for place in places.values():
        place.mkdir()
    source = places["raw"] / "2026-01-02-a.ndjson"
    source.write_text('{"id": 1, "price": 1.10}\n')
    (places["manifests"] / "m1.json").write_text(json.dumps({"fileLocations": [{"URIPrefixes": [str(source)]}]}))
    config = tmp_path / "compactor.toml"
    paths = {name: str(places[name]) for name in ("manifests", "output", "state")}
    config.write_text(
        toml_of(
            {
                "paths": paths,
                "input": {"allowed_prefixes": [str(places["raw"])]},
                "schema": {"metadata_columns": []},
                "metrics": {"sink": "log"},
                "stream": {"trigger_interval_seconds": 0.5},
            }
        )
    )
    overridden = ["--COMPACTOR_METRICS__SINK", "none", "--COMPACTOR_SPARK__CONF", '{"spark.master": "local[2]"}']
    output = run_until(lambda: list((places["state"] / "ledger").rglob("m1/done.json")), config, overridden)
    [path] = places["output"].rglob("*.parquet")
    assert pq.read_table(path).to_pylist() == [{"id": "1", "price": "1.10"}]
    assert "metrics.emitted" not in output


@pytest.mark.full
@pytest.mark.timeout(600)
def test_the_job_on_spark_plans_topics(tmp_path: Path, broker: KafkaBroker) -> None:
    """By itself, while it runs; rows have what records have beside their values, and their ranges are verified."""
    KAFKA.need()
    from tests.support.kafka_topics import TopicFeed, kafka_settings  # noqa: PLC0415 - the client may not be there

    feed = TopicFeed(broker.servers, "on-spark")
    feed.create(2)
    feed.send(0, b'{"id": "a"}', None, key=b"k")
    given = kafka_settings(broker.servers, feed.name)
    given["kafka"] |= {"record_columns": ["key", "offset"]}
    given["builder"] = {"max_wait_seconds": 0.5}
    given["stream"] = {"trigger_interval_seconds": 0.5}
    config = write_settings(tmp_path, **given, metrics={"sink": "none"})
    state, later = tmp_path / "s", list[bool]()

    def are_done(manifests: int) -> bool:
        return len(list((state / "ledger").rglob("done.json"))) >= manifests

    def both_done() -> bool:
        if not later and are_done(1):
            later.append(True)
            feed.send(1, b'{"id": "b"}', key=b"l")
        return bool(later) and are_done(2)

    output = run_until(both_done, config, ["--COMPACTOR_SPARK__CONF", '{"spark.master": "local[2]"}'])
    rows = [row for path in (tmp_path / "o").rglob("*.parquet") for row in pq.read_table(path).to_pylist()]
    found = sorted((row["id"], row["_kafka_key"], row["_kafka_offset"]) for row in rows)
    assert found == [("a", "k", 0), ("b", "l", 0)], output
    verify = [sys.executable, "-m", "compactor", "--config", str(config), "verify", "--deep", "--json"]
    verified = json.loads(subprocess.run(verify, check=True, timeout=150, capture_output=True).stdout)
    assert (verified["rows"], verified["inputs_gone"], verified["discrepancies"]) == (2, 0, [])


def run_until(is_done: Callable[[], object], config: Path, overridden: list[str]) -> str:
    """Run the script until something is done, then stop it; returns what it printed."""
    # Java's second compiler would not pay off in a run of seconds.
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "JDK_JAVA_OPTIONS": "-XX:TieredStopAtLevel=1"}
    arguments = ["--JOB_NAME", "nightly", *BY_GLUE, "--CONFIG", str(config), *overridden]
    log = config.with_suffix(".log")  # a pipe that is not read holds up its writer
    with log.open("wb") as written:
        command = [sys.executable, str(ROOT / "glue_entry.py"), *arguments]
        job = subprocess.Popen(command, env=environment, stdout=written, stderr=subprocess.STDOUT, text=True)
    try:
        wait_until(is_done, job)
        stop = [sys.executable, "-m", "compactor", "--config", str(config), "stop", "--wait", "120"]
        subprocess.run(stop, env=environment, check=True, timeout=150, capture_output=True)
        job.wait(120)
    finally:
        job.kill()
    output = log.read_text()
    assert job.returncode == 0, output
    return output
