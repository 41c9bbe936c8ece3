"""The whole job on a cluster: a master and two workers that share nothing with the driver but the store."""

import gzip
import json
import os
import subprocess
import sys
import sysconfig
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pyspark
import pytest

from compactor.adapters.aws.clients import s3_client
from compactor.adapters.aws.local_setup import make_buckets, make_claims_table
from tests.faults.conftest import wait_until
from tests.support.aws_stand_in import REGION
from tests.support.clusters import PATIENCE_SECONDS, standalone_cluster

ROOT = Path(__file__).resolve().parents[2]


pytestmark = pytest.mark.timeout(900)  # two workers, a driver and their Pythons start, beside whatever else runs


@pytest.fixture
def package(tmp_path: Path) -> Path:
    """The package as one archive, the way jobs ship it."""
    archive = tmp_path / "compactor.zip"
    with zipfile.ZipFile(archive, "w") as files:
        for path in sorted((ROOT / "compactor").rglob("*")):
            if path.is_file() and "__pycache__" not in path.parts:
                files.write(path, path.relative_to(ROOT))
    return archive


@pytest.fixture
def worker_python(tmp_path: Path) -> Path:
    """A Python that has the dependencies and not the package: it does not follow the link of an editable install."""
    script = tmp_path / "worker-python"
    packages = sysconfig.get_paths()["purelib"]
    script.write_text(f'#!/bin/sh\nPYTHONPATH="$PYTHONPATH:{packages}" exec {sys.executable} -S "$@"\n')
    script.chmod(0o755)
    return script


@pytest.fixture
def master(tmp_path: Path) -> Iterator[str]:
    """A standalone cluster of two workers with one core each, every process with a folder of its own."""
    with standalone_cluster(tmp_path, {}) as cluster:
        yield cluster.url


def settings(aws_endpoint: str, master: str, package: Path) -> str:
    conf = {
        "spark.submit.pyFiles": str(package),
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.memory": "1g",
        "spark.executor.memory": "600m",
        "spark.ui.enabled": "false",
    }
    properties = "".join(f'"{key}" = {json.dumps(value)}\n' for key, value in conf.items())
    return f"""
[paths]
manifests = "s3://cluster-lake/manifests"
output = "s3://cluster-lake/output"
state = "s3://cluster-lake/state"
[input]
allowed_prefixes = ["s3://cluster-raw/"]
[schema]
metadata_columns = ["_source_file", "_manifest_id"]
[builder]
claims = "cluster-claims"
target_manifest_bytes = 20000
[aws]
region = "{REGION}"
endpoint_url = "{aws_endpoint}"
[spark]
master = "{master}"
[spark.conf]
{properties}"""


def put_input(s3: Any) -> list[tuple[str, str]]:
    """Files of all kinds; what their rows are, as id and source."""
    expected = []
    for number in range(12):
        name = f"2025-12-21-part {number:02d}.ndjson" if number % 3 else f"2025-12-21-part-{number:02d}.ndjson.gz"
        ids = [f"{number}-{line}" for line in range(50)]
        lines = [f'{{"id":"{each}","value":1.10,"nested":{{"a": [1, 2]}}}}' for each in ids]
        data = "\n".join([*lines, "{broken", ""]).encode()
        s3.put_object(Bucket="cluster-raw", Key=name, Body=data if number % 3 else gzip.compress(data))
        expected += [(each, f"s3://cluster-raw/{name}") for each in ids]
    return sorted(expected)


@pytest.mark.full
def test_the_job_runs_on_a_cluster_with_the_package_shipped(
    tmp_path: Path, aws_endpoint: str, master: str, package: Path, worker_python: Path
) -> None:
    """Plan, run and deep verification over `s3://`, with executors that know the package from the job alone."""
    s3 = s3_client(REGION, aws_endpoint)
    make_buckets(["cluster-raw", "cluster-lake"], region=REGION, endpoint_url=aws_endpoint)
    make_claims_table("cluster-claims", region=REGION, endpoint_url=aws_endpoint)
    expected = put_input(s3)
    config = tmp_path / "cluster.toml"
    config.write_text(settings(aws_endpoint, master, package))
    environment = {**os.environ, "PYTHONPATH": str(package), "PYSPARK_PYTHON": str(worker_python)}

    def compactor(*arguments: str) -> str:
        command = [sys.executable, "-m", "compactor", "--config", str(config), *arguments]
        done = subprocess.run(
            command,
            cwd=tmp_path,
            env=environment,
            capture_output=True,
            text=True,
            check=False,
            timeout=PATIENCE_SECONDS,
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    compactor("plan", "s3://cluster-raw/")
    compactor("run", "--once")
    compactor("verify", "--deep")
    rows = []
    for number, found in enumerate(s3.list_objects_v2(Bucket="cluster-lake", Prefix="output/")["Contents"]):
        path = tmp_path / f"{number}.parquet"
        s3.download_file("cluster-lake", found["Key"], str(path))
        for row in pq.read_table(path).to_pylist():
            assert (row["value"], row["nested"]) == ("1.10", '{"a": [1, 2]}')
            rows.append((row["id"], row["_source_file"]))
    assert sorted(rows) == expected
    assert {path.parent.parent.name for path in tmp_path.glob("worker-*/app-*/*")} == {"worker-1", "worker-2"}


@pytest.mark.full
def test_spark_submit_runs_the_job(tmp_path: Path, master: str, package: Path, worker_python: Path) -> None:
    """The entry of the job runs on any cluster that spark-submit names, and refuses to run on this machine alone."""
    raw, lake = tmp_path / "raw", tmp_path / "lake"
    for folder in (raw, lake / "manifests", lake / "output", lake / "state"):
        folder.mkdir(parents=True)
    ids = [f"{number}-{line}" for number in range(6) for line in range(40)]
    for number in range(6):
        rows = [f'{{"id": "{each}", "price": 1.10}}' for each in ids if each.startswith(f"{number}-")]
        (raw / f"2026-01-02-{number}.ndjson").write_text("\n".join([*rows, "{broken", ""]))
    config = tmp_path / "any.toml"
    paths = "".join(f'{name} = "{lake / name}"\n' for name in ("manifests", "output", "state"))
    prefixes = f'allowed_prefixes = ["{raw}"]'
    config.write_text(f'[paths]\n{paths}[input]\n{prefixes}\n[metrics]\nsink = "none"\n')
    environment = {**os.environ, "PYTHONPATH": str(package), "COMPACTOR_CONFIG": str(config)}
    environment |= {"PYSPARK_DRIVER_PYTHON": sys.executable, "PYSPARK_PYTHON": str(worker_python)}

    def compactor(*arguments: str) -> str:
        command = [sys.executable, "-m", "compactor", *arguments]
        return subprocess.run(
            command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=True, timeout=PATIENCE_SECONDS
        ).stdout

    def submitted(cluster: str) -> "subprocess.Popen[str]":
        options = ["--master", cluster, "--py-files", str(package), "--conf", "spark.ui.enabled=false"]
        memory = ["--driver-memory", "1g", "--executor-memory", "600m", "--conf", "spark.driver.host=127.0.0.1"]
        entry = [
            str(ROOT / "glue_entry.py"),
            "--CONFIG",
            str(config),
            "--COMPACTOR_STREAM__TRIGGER_INTERVAL_SECONDS",
            "1",
        ]
        command = [str(Path(pyspark.__file__).parent / "bin" / "spark-submit"), *options, *memory, *entry]
        return subprocess.Popen(
            command, cwd=tmp_path, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
        )

    alone = submitted("local[2]")
    assert "Spark runs only on this machine" in alone.communicate(timeout=PATIENCE_SECONDS)[0]
    assert alone.returncode != 0
    compactor("plan", str(raw))
    job = submitted(master)
    try:
        wait_until(lambda: not list((lake / "manifests").glob("[!_.]*.json")), job)
        compactor("stop", "--wait", "60")
        assert job.wait(PATIENCE_SECONDS) == 0
    finally:
        job.kill()
    compactor("verify", "--deep")
    assert sorted(ds.dataset(lake / "output", format="parquet").to_table().column("id").to_pylist()) == sorted(ids)
    workers = {path.parent.parent.name for path in tmp_path.glob("worker-*/app-*/*")}
    assert workers <= {"worker-1", "worker-2"}
    assert workers
