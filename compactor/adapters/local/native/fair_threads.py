"""Threads that several manifests of several streams share, so that none waits behind all tasks of another."""

import threading
from collections import Counter, deque
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any


class FairThreads:
    """Runs tasks in threads. A free thread takes a task of the stream that has the fewest running.

    Among equals, it takes the stream whose last turn is longest ago; of that stream, the manifest with the fewest
    running tasks, and the one that waited longest. A stream that has the threads to itself uses all of them.

    Args:
        threads: How many tasks run at once.
    """

    def __init__(self, threads: int) -> None:
        self.threads = threads
        self._pool = ThreadPoolExecutor(threads, thread_name_prefix="bin")
        self._waiting: dict[tuple[str, str], deque[tuple[Future[Any], Callable[[], Any]]]] = {}
        self._running: Counter[tuple[str, str]] = Counter()
        self._of_streams: Counter[str] = Counter()
        self._turns: Counter[str] = Counter()
        self._turn = 0
        self._lock = threading.Lock()

    def submit(self, stream: str, manifest_id: str, task: Callable[[], Any]) -> Future[Any]:
        """Run a task when its turn comes; until then the future can be cancelled."""
        future: Future[Any] = Future()
        with self._lock:
            self._waiting.setdefault((stream, manifest_id), deque()).append((future, task))
        self._pool.submit(self._run_next)
        return future

    def _run_next(self) -> None:
        owner, future, task = self._taken()
        try:
            if future.set_running_or_notify_cancel():
                future.set_result(task())
        except BaseException as exc:  # noqa: BLE001 - it is raised where the result is taken
            future.set_exception(exc)
        finally:
            with self._lock:
                self._running[owner] -= 1
                self._of_streams[owner[0]] -= 1
                if not self._running[owner]:
                    del self._running[owner]

    def _taken(self) -> tuple[tuple[str, str], Future[Any], Callable[[], Any]]:
        """Take the task whose turn it is. There is one for each call."""
        with self._lock:
            owner = min(self._waiting, key=self._rank)
            waiting = self._waiting.pop(owner)
            future, task = waiting.popleft()
            if waiting:
                self._waiting[owner] = waiting  # behind the others
            self._running[owner] += 1
            self._of_streams[owner[0]] += 1
            self._turn += 1
            self._turns[owner[0]] = self._turn
            return owner, future, task

    def _rank(self, owner: tuple[str, str]) -> tuple[int, int, int]:
        return self._of_streams[owner[0]], self._turns[owner[0]], self._running[owner]
