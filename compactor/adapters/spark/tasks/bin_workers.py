"""Runs the tasks of the native engine on Spark's executors. Spark schedules them and touches no data."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

from pyspark.sql import SparkSession

from compactor.adapters.local.native.kernel import NativeKernel, is_installed
from compactor.adapters.spark.failures import translated
from compactor.adapters.spark.health import runs_tasks
from compactor.adapters.spark.tasks.executor_tasks import run_tasks
from compactor.adapters.stores import StoreSpec
from compactor.core.ports import ObjectStore
from compactor.engines.native.bin_task import BinResult, BinTask, write_bin


@dataclass(frozen=True, slots=True, kw_only=True)
class SparkBinWorkers:
    """`compactor.engines.native.engine.BinWorkers` on Spark; executors open the store by its specification."""

    session: SparkSession
    store_spec: StoreSpec

    def write_bins(self, manifest_id: str, tasks: Sequence[BinTask]) -> list[BinResult]:
        with translated(manifest_id):
            return run_tasks(self.session, self.store_spec, tasks, _write, description=f"compact {manifest_id}")

    def are_healthy(self) -> bool:
        return runs_tasks(self.session, is_installed)


def _write(store: ObjectStore, task: BinTask) -> BinResult:
    return write_bin(store, task, partial(NativeKernel, threads=1))  # Spark gives a task one processor
