"""What a process of Spark does for one task after the other is not done again for each of them."""

import gc
import os
import sys
from typing import Any
from zipimport import zipimporter

import psutil
import pytest

from compactor.adapters.spark.tasks import worker_daemon
from compactor.adapters.spark.tasks.executor_tasks import run_tasks
from compactor.adapters.stores import StoreSpec


def test_a_process_forgets_archives_between_tasks(spark: Any) -> None:
    """Spark has each archive on the path read its directory again before a task; garbage is not sought in modules."""

    def seen(_store: Any, _task: int) -> tuple[int, list[str], int]:
        archives = [path for path, finder in sys.path_importer_cache.items() if isinstance(finder, zipimporter)]
        return os.getpid(), archives, gc.get_freeze_count()

    processes: set[int] = set()
    again = []
    for _ in range(4):
        found = run_tasks(spark, StoreSpec(), [1, 2], seen, description="what a task finds")
        again += [each for each in found if each[0] in processes]
        processes.update(process for process, *_ in found)
    assert again
    assert all(not archives and frozen for _, archives, frozen in again)


def test_a_process_is_a_fork_of_one_that_has_loaded_its_tasks(spark: Any) -> None:
    """Each would otherwise load them for itself, at its first task and again after Spark ended it for idleness."""

    def parent(_store: Any, _task: int) -> list[str]:
        command: list[str] = psutil.Process(os.getppid()).cmdline()
        return command

    (command,) = run_tasks(spark, StoreSpec(), [1], parent, description="what a process comes from")
    assert command[-3:] == ["-m", "compactor.adapters.spark.tasks.worker_daemon", "pyspark.worker"]


def test_a_missing_module_ends_no_daemon(monkeypatch: pytest.MonkeyPatch) -> None:
    """The task that needs it fails, and says so."""
    forked: list[bool] = []
    monkeypatch.setattr(worker_daemon.daemon, "manager", lambda: forked.append(True))
    monkeypatch.setitem(sys.modules, "compactor.adapters.spark.tasks.bin_workers", None)
    try:
        worker_daemon.main()
    finally:
        gc.unfreeze()
    assert forked
