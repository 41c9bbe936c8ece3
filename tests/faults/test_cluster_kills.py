"""A worker of a cluster dies by SIGKILL, with its executor, while it has work; the job goes on without it."""

import signal
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from subprocess import Popen

import pytest

from compactor.steps import Step
from tests.clusters import Cluster, Worker, standalone_cluster
from tests.faults.accounts import check
from tests.faults.conftest import PATIENCE_SECONDS, Lake
from tests.faults.tally import TALLY, Kind

pytestmark = [pytest.mark.faults, pytest.mark.timeout(900)]
MANIFEST_ID = "one"


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[Cluster]:
    """A master and two workers."""
    folder = tmp_path / "cluster"
    folder.mkdir()
    with standalone_cluster(folder, {}) as started:
        yield started


def caught_at_work(worker: Worker) -> bool:
    """Whether a worker has a task to do: then it is frozen, to stay at it until it dies."""
    if not worker.running_tasks():
        return False
    worker.signal(signal.SIGSTOP)
    if worker.running_tasks():
        return True
    worker.signal(signal.SIGCONT)  # it ended between the two looks
    return False


def kill_one_at_work(cluster: Cluster, job: Popen[str]) -> int:
    """Kill the first worker that has a task to do, with its executor; how many processes that were."""
    deadline = time.monotonic() + PATIENCE_SECONDS
    while job.poll() is None and time.monotonic() < deadline:
        for worker in cluster.workers:
            if caught_at_work(worker):
                return worker.signal(signal.SIGKILL)
        time.sleep(0.01)
    raise AssertionError(f"no worker had a task to do:\n{job.communicate()[0]}")


@pytest.mark.parametrize(("begun", "ended"), [(Step.ATTEMPTED, Step.INSPECTED), (Step.INSPECTED, Step.CONVERTED)])
def test_a_worker_that_dies_at_work_costs_nothing(lake: Lake, cluster: Cluster, begun: Step, ended: Step) -> None:
    """Killed while it inspects, or while it converts: the same run does its tasks on the other worker, and is exact."""
    case = TALLY.case(Kind.CLUSTER_KILLS)
    lake.settings["spark"] = {"master": cluster.url}
    lake.write_settings()
    with lake.config.open("a") as config:
        config.write('[spark.conf]\n"spark.executor.memory" = "600m"\n"spark.driver.memory" = "1g"\n')
        config.write('"spark.driver.host" = "127.0.0.1"\n"spark.driver.bindAddress" = "127.0.0.1"\n')
        config.write('"spark.ui.enabled" = "false"\n')
    lake.add_manifest(MANIFEST_ID, files=8, lines=25_000)
    steps = lake.folder / "steps"
    steps.mkdir()
    job = lake.start_process([sys.executable, "-m", "tests.faults.spark_job", str(lake.config), str(steps)])
    while not (steps / f"{MANIFEST_ID}-{begun}").exists():
        assert job.poll() is None, job.communicate()[0]
        time.sleep(0.01)
    killed = kill_one_at_work(cluster, job)
    assert not (steps / f"{MANIFEST_ID}-{ended}").exists(), "it was to die before this step was reached"
    case.died += 1
    assert killed >= 2, "a worker and its executor"
    output, _ = job.communicate(timeout=PATIENCE_SECONDS)
    assert job.returncode == 0, output
    check(lake, case)
