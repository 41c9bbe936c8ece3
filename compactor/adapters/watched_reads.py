"""A store that tells how much of the input was read, for a display of progress."""

from collections.abc import Callable
from threading import Lock

from compactor.adapters.stores import RoutedStore, StoreSpec
from compactor.core.layout import is_within

OnRead = Callable[[int], None]
"""Told of bytes that were read for the first time; from many threads."""


class WatchedReads(RoutedStore):
    """Objects as `RoutedStore` has them. Input that is read again, for its keys or by another attempt, counts once.

    Args:
        spec: How to reach the stores.
        prefix: Where the input is.
        on_read: Told of what is read below it.
    """

    def __init__(self, spec: StoreSpec, prefix: str, on_read: OnRead) -> None:
        super().__init__(spec)
        self._prefix = prefix
        self._on_read = on_read
        self._ends: dict[str, int] = {}
        self._ends_lock = Lock()

    def read_range(self, uri: str, start: int, length: int, *, etag: str | None = None) -> bytes:
        data = super().read_range(uri, start, length, etag=etag)
        if is_within(uri, self._prefix):
            self.note(uri, start + len(data))
        return data

    def note(self, uri: str, end: int) -> None:
        """Note that a file was read up to some byte, by this process or another one."""
        with self._ends_lock:
            fresh = end - self._ends.get(uri, 0)
            if fresh <= 0:
                return
            self._ends[uri] = end
        self._on_read(fresh)
