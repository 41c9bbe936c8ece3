"""Runs the native engine's tasks in threads of this process, without Spark."""

import os
import threading
from collections import Counter, deque
from collections.abc import Callable, Sequence
from concurrent.futures import FIRST_EXCEPTION, Future, ThreadPoolExecutor, wait
from functools import partial
from typing import Any

from compactor.adapters.local.native.kernel import NativeKernel
from compactor.core.ports import ObjectStore
from compactor.core.rules.shares import source_of
from compactor.engines.native.bin_task import BinResult, BinTask, write_bin

# Threads shared by several manifests of several streams, so that none waits for all tasks of another.


Owner = tuple[str, str, str]  # stream, source and manifest


class FairThreads:
    """Runs tasks in threads. A free thread takes a task from the stream with the fewest running tasks.

    Among equals, it takes the stream whose last turn is oldest; within it, the source and then the manifest with the
    fewest running tasks that has waited longest. A stream without competition uses all threads. If all are in use, one
    more thread runs a task of a source that has none running, so that no source holds all threads.
    """

    def __init__(self, threads: int) -> None:
        self.threads = threads
        self._pool = ThreadPoolExecutor(threads + 1, thread_name_prefix="bin")
        self._waiting: dict[Owner, deque[tuple[Future[Any], Callable[[], Any]]]] = {}
        self._running: Counter[Owner] = Counter()
        self._of_streams: Counter[str] = Counter()
        self._of_sources: Counter[tuple[str, str]] = Counter()
        self._turns: Counter[str] = Counter()
        self._turn = 0
        self._lock = threading.Lock()

    def submit(self, stream: str, source: str, manifest_id: str, task: Callable[[], Any]) -> Future[Any]:
        """Run a task when its turn comes; until then the future can be cancelled."""
        future: Future[Any] = Future()
        with self._lock:
            self._waiting.setdefault((stream, source, manifest_id), deque()).append((future, task))
            self._begin()
        return future

    def _begin(self) -> None:
        """Start the tasks whose turn it is."""
        while (owner := min(self._startable(), key=self._rank, default=None)) is not None:
            waiting = self._waiting.pop(owner)
            future, task = waiting.popleft()
            if waiting:
                self._waiting[owner] = waiting  # after the others
            self._count(owner, 1)
            self._turn += 1
            self._turns[owner[0]] = self._turn
            self._pool.submit(self._run, owner, future, task)

    def _startable(self) -> list[Owner]:
        running = self._running.total()
        if running == self.threads and self.threads > 1:  # guard: no source holds all threads
            return [owner for owner in self._waiting if not self._of_sources[owner[:2]]]
        return list(self._waiting) if running < self.threads else []

    def _run(self, owner: Owner, future: Future[Any], task: Callable[[], Any]) -> None:
        try:
            if future.set_running_or_notify_cancel():
                future.set_result(task())
        except BaseException as exc:  # noqa: BLE001 - it is raised where the result is taken
            future.set_exception(exc)
        finally:
            with self._lock:
                self._count(owner, -1)
                self._begin()

    def _count(self, owner: Owner, change: int) -> None:
        stream, source, _ = owner
        self._running[owner] += change
        self._of_streams[stream] += change
        self._of_sources[stream, source] += change
        if not self._running[owner]:
            del self._running[owner]
        if not self._of_sources[stream, source]:
            del self._of_sources[stream, source]

    def _rank(self, owner: Owner) -> tuple[int, int, int, int]:
        stream, source, _ = owner
        return self._of_streams[stream], self._turns[stream], self._of_sources[stream, source], self._running[owner]


TASK_BYTES = 1_000_000_000
"""Memory to reserve per task that writes an output file; measured tasks needed less."""


def usable_threads() -> int:
    """One thread per usable core, limited by memory."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    memory_bytes = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    return max(1, min(cores, memory_bytes // TASK_BYTES))


class ThreadBinWorkers:
    """`compactor.engines.native.engine.BinWorkers` in threads, for all manifests together.

    The kernel releases Python's global lock.

    Args:
        threads: How many tasks run at once, or threads shared with other users.
        stream: The manifests' stream, among those that share the threads.
        allowed_prefixes: Their first folders are the sources that take turns.
    """

    def __init__(
        self,
        store: ObjectStore,
        *,
        threads: int | FairThreads = 2,
        stream: str = "",
        allowed_prefixes: Sequence[str] = (),
    ) -> None:
        self._store = store
        self._threads = FairThreads(threads) if isinstance(threads, int) else threads
        self._stream, self._allowed_prefixes = stream, allowed_prefixes

    def write_bins(self, manifest_id: str, tasks: Sequence[BinTask]) -> list[BinResult]:
        new_kernel = partial(NativeKernel, threads=self._threads.threads)
        work = (partial(write_bin, self._store, task, new_kernel) for task in tasks)
        first = next((file.uri for task in tasks for _, file in task.files), "")
        source = source_of(first, self._allowed_prefixes)
        calls = [self._threads.submit(self._stream, source, manifest_id, each) for each in work]
        try:
            wait(calls, return_when=FIRST_EXCEPTION)
        finally:
            for call in calls:
                call.cancel()
            wait(calls)  # the caller may delete a failed attempt's staging folder
        # In task order. A failed task precedes those that it cancelled, so its error is raised.
        return [call.result() for call in sorted(calls, key=lambda call: call.cancelled())]

    def are_healthy(self) -> bool:
        return True
