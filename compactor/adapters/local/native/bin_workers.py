"""Runs the tasks of the native engine in threads of this process, without Spark."""

from collections.abc import Sequence
from concurrent.futures import FIRST_EXCEPTION, wait
from functools import partial

from compactor.adapters.local.native.fair_threads import FairThreads
from compactor.adapters.local.native.kernel import NativeKernel
from compactor.core.ports import ObjectStore
from compactor.engines.native.bin_task import BinResult, BinTask, write_bin


class ThreadBinWorkers:
    """`compactor.engines.native.engine.BinWorkers` in threads, for all manifests together.

    The kernel releases Python's global lock.

    Args:
        store: Holds the files.
        threads: How many tasks run at once, or the threads themselves, which others use as well.
        stream: The stream of the manifests, among those that share the threads.
    """

    def __init__(self, store: ObjectStore, *, threads: int | FairThreads = 2, stream: str = "") -> None:
        self._store = store
        self._threads = FairThreads(threads) if isinstance(threads, int) else threads
        self._stream = stream

    def write_bins(self, manifest_id: str, tasks: Sequence[BinTask]) -> list[BinResult]:
        new_kernel = partial(NativeKernel, threads=self._threads.threads)
        work = (partial(write_bin, self._store, task, new_kernel) for task in tasks)
        calls = [self._threads.submit(self._stream, manifest_id, each) for each in work]
        try:
            wait(calls, return_when=FIRST_EXCEPTION)
        finally:
            for call in calls:
                call.cancel()
            wait(calls)  # the caller may delete the staging folder of a failed attempt
        # In the order of the tasks. A failed task comes before the ones that it cancelled, so that its error is raised.
        return [call.result() for call in sorted(calls, key=lambda call: call.cancelled())]

    def are_healthy(self) -> bool:
        return True
