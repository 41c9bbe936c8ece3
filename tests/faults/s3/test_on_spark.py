"""The job on Spark, whose S3A repeats what it may."""

import os
import subprocess
import sys
import uuid
from dataclasses import dataclass
from pathlib import Path

import pytest

from compactor.settings.toml import toml_of
from tests.faults.fault_rules import FOR_AN_OPERATOR, LOST_ANSWERS, FaultKind, Operation, Rule
from tests.faults.proxy import FaultProxy
from tests.faults.s3.cases import SEED, record_and_judge
from tests.faults.s3_findings import Findings
from tests.faults.s3_lake import BUCKET, RESTARTS, S3Lake
from tests.faults.s3_server import ROOT, S3Server
from tests.support.engines import engines_on_spark

WRITES = frozenset({each for each in Operation if each not in {Operation.GET_OBJECT, Operation.HEAD_OBJECT}})
NOT_REPEATED = frozenset({FaultKind.DONE_CUT_HEAD})  # by S3A, so that each costs the work of a task or of the stream
ON_SPARK = {
    "refused": [Rule(kind, probability=0.02, burst=2) for kind in (FaultKind.SLOW_DOWN, FaultKind.INTERNAL_ERROR)],
    "cut off": [Rule(kind, probability=0.02) for kind in (FaultKind.RESET, FaultKind.TRUNCATED_BODY)]
    + [Rule(FaultKind.SLOW_BODY, probability=0.02), Rule(FaultKind.SILENCE, probability=0.005)],
    "answers lost": [Rule(kind, WRITES, probability=0.04) for kind in sorted(LOST_ANSWERS - NOT_REPEATED)]
    + [Rule(kind, WRITES, probability=0.005) for kind in NOT_REPEATED],
    "lists and copies": [
        Rule(FaultKind.STALE_LISTING, probability=0.1),
        Rule(FaultKind.ERROR_IN_OK, probability=0.1),
        Rule(FaultKind.DONE_RESET, frozenset({Operation.COPY_OBJECT, Operation.DELETE_OBJECTS}), probability=0.2),
    ],
}


@dataclass
class SparkJob:
    """The real command on a lake, through the proxy."""

    lake: S3Lake
    config: Path

    def run(self) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-m", "compactor", "--config", str(self.config), "run", "--once"]
        environment = {**os.environ, **self.lake.server.environment}
        return subprocess.run(
            command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=600, check=False
        )


@pytest.fixture(params=engines_on_spark("native"))
def spark_job(server: S3Server, proxy: FaultProxy, tmp_path: Path, request: pytest.FixtureRequest) -> SparkJob:
    lake = S3Lake(server, f"s3://{BUCKET}/{uuid.uuid4().hex}", request.param)
    lake.fill()
    for number in range(3):
        files = [lake.put_file(f"more-{number}-{each}", good=40, bad=each) for each in range(3)]
        lake.deliver(f"more-{number}", files)
    config = tmp_path / "compactor.toml"
    config.write_text(toml_of(lake.settings(proxy.url)))
    return SparkJob(lake, config)


@pytest.mark.faults
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("name", ON_SPARK)
def test_the_job_on_spark_gets_over_it(name: str, spark_job: SparkJob, proxy: FaultProxy, findings: Findings) -> None:
    """`compactor run --once`, started again while it ends with 1: exact, and no good manifest is a dead letter."""
    proxy.use(ON_SPARK[name], seed=SEED)
    restarts = 0
    letters = spark_job.lake.dead_letters()
    while (done := spark_job.run()).returncode not in (0, 3):
        assert done.returncode == 1, done.stderr
        restarts += 1
        assert restarts <= RESTARTS, done.stderr
        letters = spark_job.lake.dead_letters()
    assert letters or done.returncode == 3, "the run that makes the dead letter ends with 3"
    proxy.use()
    injected = proxy.restart_count().injected
    assert injected
    kinds = [rule.kind for rule in ON_SPARK[name]]
    record_and_judge(spark_job.lake, findings, "spark", injected, kinds, restarts)


@pytest.mark.faults
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("kind", sorted(FOR_AN_OPERATOR))
def test_the_job_on_spark_stops_where_an_operator_must_act(
    kind: FaultKind, spark_job: SparkJob, proxy: FaultProxy, findings: Findings
) -> None:
    """Refused once S3A is at work, it ends with 1 and one line, buries no good manifest, and is exact once fixed."""
    proxy.use([Rule(kind, WRITES, pattern="/staging/", probability=1.0)])
    done = spark_job.run()
    assert done.returncode == 1
    said = [line for line in done.stderr.splitlines() if line.startswith("compactor: ")]
    assert len(said) == 1
    assert "Traceback" not in done.stderr
    letters = spark_job.lake.dead_letters()
    assert letters in ([], ["broken"])
    injected = proxy.restart_count().injected
    proxy.use()
    assert spark_job.run().returncode == (0 if letters else 3), "3 if this run makes the dead letter"
    record_and_judge(spark_job.lake, findings, "spark", injected, [kind])
