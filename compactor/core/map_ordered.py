"""Maps a function over a stream in several threads, in order and in bounded memory."""

from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import closing
from itertools import chain, islice
from typing import TypeVar

THREADS = 16

T = TypeVar("T")
R = TypeVar("R")


def map_ordered(work: Callable[[T], R], items: Iterable[T], *, threads: int = THREADS) -> Iterator[R]:
    """Yield the result of `work` for each item, in the order of the items.

    Meant for work that waits for a store. Up to twice as many items as threads are in progress or finished. A single
    item runs in the caller's thread.

    Args:
        work: Called from several threads at once; its errors are raised here, in the order of the items.
        items: Read in the caller's thread, no further ahead than needed.
        threads: How many calls run at once.
    """
    left = iter(items)
    first = list(islice(left, 2))
    if len(first) <= 1:
        for item in first:
            yield work(item)
        return
    with (
        ThreadPoolExecutor(threads) as pool,
        closing(calls_ahead(pool, work, chain(first, left), depth=2 * threads - 1)) as calls,
    ):
        for call in calls:
            yield call.result()


def calls_ahead(
    pool: ThreadPoolExecutor,
    work: Callable[[T], R],
    items: Iterable[T],
    *,
    depth: int,
    waits: Callable[[], bool] = lambda: True,
) -> Generator[Future[R], None, None]:
    """Yield a call of `work` for each item, in order, started or finished. Closing the generator cancels the others.

    Args:
        pool: Runs the calls.
        work: Called from the threads of the pool, or from the caller's.
        items: Read from the caller's thread, no further ahead than needed.
        depth: How many calls may be under way behind the one that is yielded.
        waits: Asked before each call: whether calls wait for something. If not, they are no faster in another thread:
            the caller's own makes them one at a time, once those under way have ended.
    """
    under_way: deque[Future[R]] = deque()
    try:
        for item in items:
            ahead = depth if waits() else 0
            under_way.append(pool.submit(work, item) if ahead or under_way else _called(work, item))
            while len(under_way) > ahead:
                yield under_way.popleft()
        while under_way:
            yield under_way.popleft()
    finally:
        for call in under_way:
            call.cancel()


def _called(work: Callable[[T], R], item: T) -> Future[R]:
    """A finished call."""
    call = Future[R]()
    try:
        call.set_result(work(item))
    except Exception as exc:  # noqa: BLE001 - it is raised again where the result is taken
        call.set_exception(exc)
    return call
