"""A worker of a cluster dies by SIGKILL, with its executor, while it has work; the job goes on without it."""

import signal
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from subprocess import Popen

import pytest

from compactor.core.crash_points import CrashPoint
from tests.faults.accounts import check
from tests.faults.conftest import PATIENCE_SECONDS, Lake
from tests.faults.tally import TALLY, Kind
from tests.support import extras
from tests.support.clusters import Cluster, Worker, standalone_cluster
from tests.support.engines import NATIVE

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


def kill_one_at_work(cluster: Cluster, job: Popen[str], kill: Callable[[Worker], int]) -> int:
    """Kill something of the first worker that has a task to do; how many processes that were."""
    deadline = time.monotonic() + PATIENCE_SECONDS
    while job.poll() is None and time.monotonic() < deadline:
        for worker in cluster.workers:
            if caught_at_work(worker):
                killed = kill(worker)
                worker.signal(signal.SIGCONT)
                if killed:  # else its Python had not started yet
                    return killed
        time.sleep(0.01)
    raise AssertionError(f"no worker had a task to do:\n{job.communicate()[0]}")


@dataclass(frozen=True)
class Victims:
    """Which processes of a worker that has a task to do are killed.

    Attributes:
        kill: Kills them; returns how many there were.
        at_least: How many there must be.
    """

    kill: Callable[[Worker], int]
    at_least: int


WHOLE_WORKER = Victims(lambda worker: worker.signal(signal.SIGKILL), 2)
"""The worker and its executor, with the Python processes."""

PYTHON_ALONE = Victims(lambda worker: worker.kill_python(), 1)
"""The Python process that has a bin in its hands; the executor stays."""

MOMENTS = [(CrashPoint.ATTEMPTED, CrashPoint.INSPECTED), (CrashPoint.INSPECTED, CrashPoint.CONVERTED)]
CASES = [(*moment, engine, WHOLE_WORKER) for moment in MOMENTS for engine in ("spark", "native")]
CASES += [(*moment, "native", PYTHON_ALONE) for moment in MOMENTS]


@pytest.mark.parametrize(("begun", "ended", "engine", "victims"), CASES)
def test_a_worker_that_dies_at_work_costs_nothing(
    lake: Lake, cluster: Cluster, begun: CrashPoint, ended: CrashPoint, engine: str, victims: Victims
) -> None:
    """Killed in the first pass or in the second: the same run does its tasks once more elsewhere, and is exact."""
    if engine == NATIVE:
        extras.NATIVE.need()
    case = TALLY.case(Kind.CLUSTER_KILLS)
    lake.settings["spark"] = {
        "conf": {
            "spark.master": cluster.url,
            "spark.executor.memory": "600m",
            "spark.driver.memory": "1g",
            "spark.driver.host": "127.0.0.1",
            "spark.driver.bindAddress": "127.0.0.1",
            "spark.ui.enabled": "false",
        }
    }
    lake.use_engine(engine)
    lake.add_manifest(MANIFEST_ID, files=8, lines=25_000)
    steps = lake.folder / "steps"
    steps.mkdir()
    job = lake.start_process([sys.executable, "-m", "tests.faults.spark_job", str(lake.config), str(steps)])
    while not (steps / f"{MANIFEST_ID}-{begun}").exists():
        assert job.poll() is None, job.communicate()[0]
        time.sleep(0.01)
    killed = kill_one_at_work(cluster, job, victims.kill)
    assert not (steps / f"{MANIFEST_ID}-{ended}").exists(), "it was to die before this step was reached"
    case.died += 1
    assert killed >= victims.at_least
    output, _ = job.communicate(timeout=PATIENCE_SECONDS)
    assert job.returncode == 0, output
    check(lake, case)
