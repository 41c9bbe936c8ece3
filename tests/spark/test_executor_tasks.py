"""What a process of Spark does for one task after the other is not done again for each of them."""

import gc
import json
import os
import subprocess
import sys
from typing import Any
from zipimport import zipimporter

import psutil
import pytest

from compactor.adapters.spark.tasks.executor_tasks import _freeze, run_tasks
from compactor.adapters.stores import StoreSpec

TASKS = ("bin_workers", "inspection_tasks")
"""The modules of tasks, in the folder of the daemon."""

DAEMON = """
import gc, json, sys
folder = "compactor.adapters.spark.tasks."
for name in sys.argv[1:]:
    sys.modules[folder + name] = None  # its import fails
from pyspark import daemon
from compactor.adapters.spark.tasks import worker_daemon
daemon.manager = lambda: print(json.dumps([
    [name for name in ("bin_workers", "inspection_tasks") if sys.modules.get(folder + name)],
    gc.get_freeze_count() > 0,
]))
worker_daemon.main()
"""


def test_a_process_forgets_archives_between_tasks(spark: Any) -> None:
    """Spark has each archive on the path read its directory again before a task; garbage is not sought in modules."""

    def seen(_store: Any, _task: int) -> tuple[int, list[str], int]:
        archives = [path for path, finder in sys.path_importer_cache.items() if isinstance(finder, zipimporter)]
        frozen = gc.get_freeze_count()
        gc.unfreeze()  # else what the daemon has frozen would count as well
        _freeze.cache_clear()
        return os.getpid(), archives, frozen

    processes: set[int] = set()
    again = []
    for _ in range(4):
        found = run_tasks(spark, StoreSpec(), [1, 2], seen, description="what a task finds")
        again += [each for each in found if each[0] in processes]
        processes.update(process for process, *_ in found)
    assert again
    assert all(not archives and frozen for _, archives, frozen in again)


def test_a_process_is_a_fork_of_one_that_loads_tasks(spark: Any) -> None:
    """Each would otherwise load them for itself, at its first task and again after Spark ended it for idleness."""

    def parent(_store: Any, _task: int) -> list[str]:
        command: list[str] = psutil.Process(os.getppid()).cmdline()
        return command

    (command,) = run_tasks(spark, StoreSpec(), [1], parent, description="what a process comes from")
    assert command[-3:] == ["-m", "compactor.adapters.spark.tasks.s3_worker_daemon", "pyspark.worker"]


S3_DAEMON = """
import json, sys
for name in sys.argv[1:]:
    sys.modules[name] = None  # its import fails
from pyspark import daemon
from compactor.adapters.spark.tasks import s3_worker_daemon
daemon.manager = lambda: print(json.dumps([
    sys.modules.get("compactor.adapters.spark.tasks.bin_workers") is not None,
    sys.modules.get("compactor.adapters.aws.s3.store") is not None,
]))
s3_worker_daemon.main(s3_worker_daemon.load_client)
"""


@pytest.mark.parametrize(
    ("missing", "env", "has_store"),
    [((), {}, True), (("boto3.session",), {}, False), ((), {"AWS_PROFILE": "none"}, True)],
)
def test_the_daemon_of_a_job_on_s3_has_loaded_its_store(
    missing: tuple[str, ...], env: dict[str, str], has_store: bool
) -> None:
    """It forks workers without boto3, too, and where no client can be made: tasks say why."""
    command = [sys.executable, "-c", S3_DAEMON, *missing]
    run = subprocess.run(command, capture_output=True, check=True, timeout=60, env=os.environ | env)
    assert json.loads(run.stdout) == [True, has_store]


@pytest.mark.parametrize("missing", [(), *((name,) for name in TASKS), TASKS])
def test_the_daemon_has_loaded_all_tasks_that_can_be(missing: tuple[str, ...]) -> None:
    """It forks workers although a module is missing: the task that needs it is the one to fail."""
    run = subprocess.run([sys.executable, "-c", DAEMON, *missing], capture_output=True, check=True, timeout=60)
    assert json.loads(run.stdout) == [[name for name in TASKS if name not in missing], True]
