"""Does the tasks of the native engine in threads of this process: without Spark, for tests and small jobs."""

from collections.abc import Sequence
from concurrent.futures import FIRST_EXCEPTION, ThreadPoolExecutor, wait

from compactor.adapters.local.native_kernel import NativeKernel
from compactor.core.ports import ObjectStore
from compactor.engines.bin_task import BinResult, BinTask, write_bin


class ThreadBinWorkers:
    """`compactor.engines.native_engine.BinWorkers` in threads. The kernel does not hold Python's lock while it works.

    Args:
        store: Where everything is.
        threads: How many tasks at once, of however many manifests.
    """

    def __init__(self, store: ObjectStore, *, threads: int = 2) -> None:
        self._store = store
        self._pool = ThreadPoolExecutor(threads, thread_name_prefix="bin")

    def write_bins(self, manifest_id: str, tasks: Sequence[BinTask]) -> list[BinResult]:  # noqa: ARG002 - of the port
        calls = [self._pool.submit(write_bin, self._store, task, NativeKernel) for task in tasks]
        try:
            wait(calls, return_when=FIRST_EXCEPTION)
        finally:
            for call in calls:
                call.cancel()
            wait(calls)  # whoever gives an attempt up may do away with what it stages
        # In the tasks' order; if some were cancelled, the error that did it comes before them.
        return [call.result() for call in sorted(calls, key=lambda call: call.cancelled())]

    def are_well(self) -> bool:
        return True
