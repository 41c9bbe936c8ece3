"""Does the tasks of the native engine in threads of this process: without Spark, for tests and small jobs."""

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial

from compactor.adapters.native_kernel import NativeKernel
from compactor.bin_task import BinResult, BinTask, write_bin
from compactor.ports import ObjectStore


class ThreadBinWorkers:
    """`compactor.native_engine.BinWorkers` in threads. The kernel does not hold Python's lock while it works.

    Args:
        store: Where everything is.
        threads: How many tasks at once.
    """

    def __init__(self, store: ObjectStore, *, threads: int = 2) -> None:
        self._store = store
        self._threads = threads

    def write_bins(self, manifest_id: str, tasks: Sequence[BinTask]) -> list[BinResult]:  # noqa: ARG002 - of the port
        with ThreadPoolExecutor(self._threads, thread_name_prefix="bin") as pool:
            return list(pool.map(partial(write_bin, self._store, new_kernel=NativeKernel), tasks))

    def are_well(self) -> bool:
        return True
