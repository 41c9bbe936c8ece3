"""What the simulated code gets in place of `threading` and `concurrent.futures`: threads are tasks of the scheduler."""

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, Self

from tests.simulation.scheduler import Scheduler, Task


def scheduler() -> Scheduler:
    """The scheduler at work."""
    assert Scheduler.current is not None, "a thread, a lock or a wait outside of a simulation"
    return Scheduler.current


def _task() -> Task | None:
    return Scheduler.current.task if Scheduler.current is not None else None


class _Waiting:
    """Tasks that wait for something, the first to come first."""

    def __init__(self) -> None:
        self._tasks: deque[Task] = deque()

    def __len__(self) -> int:
        return len(self._tasks)

    def wait(self, timeout: float | None = None) -> bool:
        task = _task()
        assert task is not None, "a wait outside of a simulation"
        self._tasks.append(task)
        is_woken = False
        try:
            is_woken = scheduler().block(timeout)
        finally:
            if not is_woken and task in self._tasks:
                self._tasks.remove(task)
        return is_woken

    def wake(self, number: int | None = None) -> None:
        while self._tasks and number != 0:
            scheduler().wake(self._tasks.popleft())
            number = None if number is None else number - 1


class RLock:
    """A lock that its holder may take again. Without a task at work it is a no-op: nothing else runs then."""

    is_reentrant = True

    def __init__(self) -> None:
        self._owner: Task | None = None
        self._depth = 0
        self._waiting = _Waiting()

    def acquire(self, blocking: bool = True, timeout: float = -1) -> bool:
        task = _task()
        if task is None:
            return True
        task.process.check()
        if self._owner is task and self.is_reentrant:
            self._depth += 1
            return True
        while self._owner is not None and not self._owner.has_ended:
            if not blocking:
                return False
            if not self._waiting.wait(None if timeout < 0 else timeout):
                return False
        self._owner, self._depth = task, 1
        return True

    def release(self) -> None:
        if _task() is None:
            return
        self._depth -= 1
        if self._depth <= 0:
            self._owner = None
            self._waiting.wake(1)

    def locked(self) -> bool:
        return self._owner is not None

    def __enter__(self) -> bool:
        return self.acquire()

    def __exit__(self, *error: object) -> None:
        self.release()


class Lock(RLock):
    """A lock."""

    is_reentrant = False


class Condition:
    """A condition with a lock of its own."""

    def __init__(self, lock: RLock | None = None) -> None:
        self._lock = lock or RLock()
        self._waiting = _Waiting()

    def __enter__(self) -> bool:
        return self._lock.acquire()

    def __exit__(self, *error: object) -> None:
        self._lock.release()

    def wait(self, timeout: float | None = None) -> bool:
        depth, self._lock._depth = self._lock._depth, 1
        self._lock.release()
        is_woken = self._waiting.wait(timeout)
        self._lock.acquire()
        self._lock._depth = depth
        return is_woken

    def wait_for(self, predicate: Callable[[], bool], timeout: float | None = None) -> bool:
        while not predicate():
            if not self.wait(timeout):
                return predicate()
        return True

    def notify(self, n: int = 1) -> None:
        self._waiting.wake(n)

    def notify_all(self) -> None:
        self._waiting.wake()


class Event:
    """A flag to wait for."""

    def __init__(self) -> None:
        self._is_set = False
        self._waiting = _Waiting()

    def is_set(self) -> bool:
        return self._is_set

    def set(self) -> None:
        self._is_set = True
        self._waiting.wake()

    def clear(self) -> None:
        self._is_set = False

    def wait(self, timeout: float | None = None) -> bool:
        if not self._is_set:
            self._waiting.wait(timeout)
        return self._is_set


class Thread:
    """A thread of the process of the task that starts it."""

    def __init__(
        self,
        target: Callable[..., object] = lambda: None,
        args: Iterable[Any] = (),
        kwargs: Mapping[str, Any] | None = None,
        name: str = "thread",
        *,
        daemon: bool | None = None,
    ) -> None:
        self.name, self.daemon = name, daemon
        self._work = lambda: target(*args, **(kwargs or {}))
        self._started: Task | None = None

    def start(self) -> None:
        starter = _task()
        assert starter is not None, "a thread outside of a simulation"
        self._started = scheduler().spawn(starter.process, self._work, self.name)

    def is_alive(self) -> bool:
        return self._started is not None and not self._started.has_ended

    def join(self, timeout: float | None = None) -> None:
        task = _task()
        if self._started is None or self._started.has_ended or task is None:
            return
        self._started.waiters.append(task)
        if not scheduler().block(timeout):
            self._started.waiters.remove(task)


class Future:
    """The result of a call that a pool makes."""

    __class_getitem__ = classmethod(lambda cls, _: cls)

    def __init__(self) -> None:
        self._is_done = self._is_cancelled = self._is_running = False
        self._result: Any = None
        self._error: BaseException | None = None
        self._waiting = _Waiting()

    def run(self, call: Callable[[], Any]) -> None:
        """Make the call."""
        self._is_running = True
        try:
            self._result = call()
        except BaseException as exc:  # noqa: BLE001 - it is the result
            self._error = exc
        self._is_done = True
        self._waiting.wake()

    def cancel(self) -> bool:
        if self._is_running:
            return False
        self._is_cancelled = self._is_done = True
        self._waiting.wake()
        return True

    def cancelled(self) -> bool:
        return self._is_cancelled

    def done(self) -> bool:
        return self._is_done

    def result(self, timeout: float | None = None) -> Any:
        error = self.exception(timeout)
        if error is not None:
            raise error
        return self._result

    def exception(self, timeout: float | None = None) -> BaseException | None:
        if not self._is_done and not self._waiting.wait(timeout):
            raise TimeoutError
        return self._error


class ThreadPoolExecutor:
    """A pool of threads of the process of the task that uses it."""

    def __init__(self, max_workers: int | None = None, thread_name_prefix: str = "pool") -> None:
        self._most, self._prefix = max_workers or 8, thread_name_prefix
        self._calls: deque[tuple[Future, Callable[[], Any]]] = deque()
        self._idle = _Waiting()
        self._threads: list[Thread] = []
        self._is_shut = False

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future:
        if self._is_shut:
            raise RuntimeError("cannot schedule new futures after shutdown")
        future = Future()
        self._calls.append((future, lambda: fn(*args, **kwargs)))
        if len(self._idle):
            self._idle.wake(1)
        elif len(self._threads) < self._most:
            self._threads.append(Thread(self._work, name=f"{self._prefix}-{len(self._threads)}"))
            self._threads[-1].start()
        return future

    def map(self, fn: Callable[..., Any], *iterables: Iterable[Any]) -> Iterator[Any]:
        futures = [self.submit(fn, *each) for each in zip(*iterables, strict=False)]
        return (future.result() for future in futures)

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        self._is_shut = True
        while cancel_futures and self._calls:
            self._calls.popleft()[0].cancel()
        self._idle.wake()
        for thread in self._threads if wait else ():
            thread.join()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.shutdown()

    def _work(self) -> None:
        while True:
            if self._calls:
                future, call = self._calls.popleft()
                if not future.cancelled():
                    future.run(call)
            elif self._is_shut:
                return
            else:
                self._idle.wait()
