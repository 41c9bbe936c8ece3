"""The script that Glue runs: its arguments become settings, and the job is the one that runs everywhere."""

import importlib
import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from compactor.core.errors import SettingsError
from compactor.settings.toml import toml_of
from compactor.wiring.job_arguments import job_arguments, overriding, resolved
from tests.faults.conftest import wait_until

ROOT = Path(__file__).resolve().parents[2]
LIBRARY = ROOT / "tests" / "glue"
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


def of_glue(version: str, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Any]:
    monkeypatch.syspath_prepend(str(LIBRARY))
    monkeypatch.setenv("GLUE_VERSION", version)
    utils: Any = importlib.import_module("awsglue.utils")
    return utils.getResolvedOptions


@pytest.mark.parametrize("library", ["5.1", "6.0", None])
def test_arguments(library: str | None, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever reads them, the arguments that are there are found, in both forms; all others are left to Glue."""
    resolve = of_glue(library, monkeypatch) if library else resolved
    argv = [
        "glue_entry.py",
        *BY_GLUE,
        "--CONFIG",
        "s3://b/c.toml",
        "--COMPACTOR_METRICS__SINK=log",
        "--enable-metrics",
        "",
    ]
    found = job_arguments(argv, resolve)
    assert found == {"CONFIG": "s3://b/c.toml", "COMPACTOR_METRICS__SINK": "log", "JOB_RUN_ID": "jr_1"}
    assert overriding(found) == {"COMPACTOR_METRICS__SINK": "log"}
    named = job_arguments([*argv, "--JOB_NAME", "nightly", "--COMPACTOR_STREAM__MAX_ATTEMPTS", "5"], resolve)
    assert (named["JOB_NAME"], named["COMPACTOR_STREAM__MAX_ATTEMPTS"]) == ("nightly", "5")


@pytest.mark.parametrize(
    ("argv", "message"), [([], "--CONFIG: not among"), (["--CONFIG"], "CONFIG: expected one argument")]
)
def test_arguments_that_will_not_do(argv: list[str], message: str) -> None:
    """A job without settings is told so."""
    with pytest.raises(SettingsError, match=message):
        job_arguments(["glue_entry.py", *argv], resolved)


@pytest.mark.timeout(240)
def test_the_script_runs_the_job_on_glue(tmp_path: Path) -> None:
    """With Glue's library at hand: every property is set before its context, rows come out, `stop` ends it cleanly."""
    places = {name: tmp_path / name for name in ("manifests", "output", "state", "raw")}
    for place in places.values():
        place.mkdir()
    source = places["raw"] / "2026-01-02-a.ndjson"
    source.write_text('{"id": 1, "price": 1.10}\n')
    (places["manifests"] / "m1.json").write_text(json.dumps({"fileLocations": [{"URIPrefixes": [str(source)]}]}))
    config = tmp_path / "compactor.toml"
    paths = {name: str(places[name]) for name in ("manifests", "output", "state")}
    config.write_text(
        toml_of({"paths": paths, "input": {"allowed_prefixes": [str(places["raw"])]}, "metrics": {"sink": "log"}})
    )
    record = tmp_path / "record"
    environment = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join([str(ROOT), str(LIBRARY)]),
        "GLUE_RECORD": str(record),
        "GLUE_VERSION": "6.0",
    }
    arguments = ["--JOB_NAME", "nightly", *BY_GLUE, "--CONFIG", str(config), "--COMPACTOR_METRICS__SINK", "none"]
    job = subprocess.Popen(
        [sys.executable, str(ROOT / "glue_entry.py"), *arguments],
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    try:
        wait_until(lambda: list((places["state"] / "ledger").rglob("m1/done.json")), job)
        stop = [sys.executable, "-m", "compactor", "--config", str(config), "stop", "--wait", "120"]
        subprocess.run(stop, env=environment, check=True, timeout=150, capture_output=True)
        output, _ = job.communicate(timeout=120)
    finally:
        job.kill()
    assert job.returncode == 0, output
    [path] = places["output"].rglob("*.parquet")
    assert pq.read_table(path).to_pylist() == [{"id": "1", "price": "1.10"}]
    context, begun, ended = (json.loads(line) for line in record.read_text().splitlines())
    assert [context["call"], begun["call"], ended["call"]] == ["context", "init", "commit"]
    assert context["properties"]["spark.sql.caseSensitive"] == "true"
    assert begun["job_name"] == "nightly"
    assert "metrics.emitted" not in output
