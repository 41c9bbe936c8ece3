"""The script that Glue runs: its arguments become settings, and the job is the one that runs everywhere."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from compactor.core.errors import SettingsError
from compactor.settings.writing.toml import toml_of
from compactor.wiring.settings_files.job_arguments import job_arguments, overriding
from tests.faults.conftest import wait_until

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
    ("argv", "message"), [([], "--CONFIG: not among"), (["--CONFIG"], "CONFIG: expected one argument")]
)
def test_arguments_that_will_not_do(argv: list[str], message: str) -> None:
    """A job without settings is told so."""
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
            }
        )
    )
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    overridden = ["--COMPACTOR_METRICS__SINK", "none", "--COMPACTOR_SPARK__MASTER", "local[2]"]
    arguments = ["--JOB_NAME", "nightly", *BY_GLUE, "--CONFIG", str(config), *overridden]
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
    assert "metrics.emitted" not in output
