"""Does work on the items of a stream ahead of time, several at once, in their order and in bounded memory."""

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TypeVar

THREADS = 16

T = TypeVar("T")
R = TypeVar("R")


def ahead(work: Callable[[T], R], items: Iterable[T], *, threads: int = THREADS) -> Iterator[R]:
    """The results of some work on each item, in the order of the items.

    Meant for work that waits for a store: twice as many items as threads are in work or wait to be taken.

    Args:
        work: Called from several threads at once; what it raises is raised here, in its turn.
        items: Read from the caller's thread, no further than needed.
        threads: How many at once.
    """
    pending: deque[Future[R]] = deque()
    with ThreadPoolExecutor(threads) as pool:
        try:
            for item in items:
                pending.append(pool.submit(work, item))
                if len(pending) >= 2 * threads:
                    yield pending.popleft().result()
            while pending:
                yield pending.popleft().result()
        finally:
            for future in pending:
                future.cancel()
