"""Does the tasks of the native engine on Spark's executors: Spark places the work, and touches no byte of it."""

from collections.abc import Sequence

from pyspark.sql import SparkSession

from compactor.adapters.local.native_kernel import NativeKernel, is_installed
from compactor.adapters.spark.executor_tasks import run_tasks
from compactor.adapters.spark.failures import translated
from compactor.adapters.spark.health import runs_tasks
from compactor.adapters.stores import StoreSpec
from compactor.core.ports import ObjectStore
from compactor.engines.bin_task import BinResult, BinTask, write_bin


class SparkBinWorkers:
    """`compactor.engines.native_engine.BinWorkers` on Spark.

    Args:
        session: Where to run.
        store_spec: How executors open the store.
    """

    def __init__(self, session: SparkSession, store_spec: StoreSpec) -> None:
        self._session = session
        self._store_spec = store_spec

    def write_bins(self, manifest_id: str, tasks: Sequence[BinTask]) -> list[BinResult]:
        with translated(manifest_id):
            return run_tasks(self._session, self._store_spec, tasks, _write, description=f"compact {manifest_id}")

    def are_well(self) -> bool:
        return runs_tasks(self._session, is_installed)


def _write(store: ObjectStore, task: BinTask) -> BinResult:
    return write_bin(store, task, NativeKernel)
