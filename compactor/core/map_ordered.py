"""Does work on the items of a stream ahead of time, several at once, in their order and in bounded memory."""

from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import closing
from typing import TypeVar

THREADS = 16

T = TypeVar("T")
R = TypeVar("R")


def map_ordered(work: Callable[[T], R], items: Iterable[T], *, threads: int = THREADS) -> Iterator[R]:
    """The results of some work on each item, in the order of the items.

    Meant for work that waits for a store: twice as many items as threads are in work or wait to be taken.

    Args:
        work: Called from several threads at once; what it raises is raised here, in its turn.
        items: Read from the caller's thread, no further than needed.
        threads: How many at once.
    """
    with (
        ThreadPoolExecutor(threads) as pool,
        closing(calls_ahead(pool, work, items, depth=2 * threads - 1)) as calls,
    ):
        for call in calls:
            yield call.result()


def calls_ahead(
    pool: ThreadPoolExecutor, work: Callable[[T], R], items: Iterable[T], *, depth: int
) -> Generator[Future[R], None, None]:
    """The calls of some work on each item, in the order of the items. Closing it cancels those not begun.

    Args:
        pool: Its threads do the work.
        work: Called from those threads.
        items: Read from the caller's thread, no further than needed.
        depth: How many calls may be under way behind the one that is handed out.
    """
    under_way: deque[Future[R]] = deque()
    try:
        for item in items:
            under_way.append(pool.submit(work, item))
            if len(under_way) > depth:
                yield under_way.popleft()
        while under_way:
            yield under_way.popleft()
    finally:
        for call in under_way:
            call.cancel()
