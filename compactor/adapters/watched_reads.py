"""A store that reports how much of the input was read, for the progress bar."""

from collections.abc import Callable, Sequence
from threading import Lock

from compactor.adapters.stores import RoutedStore, StoreSpec
from compactor.core.layout import is_within

OnRead = Callable[[int], None]
"""Called from several threads with the number of bytes read for the first time."""


class WatchedReads(RoutedStore):
    """A `RoutedStore` that counts bytes of input read below some prefixes. Input that is read again counts once."""

    def __init__(self, spec: StoreSpec, prefixes: Sequence[str], on_read: OnRead) -> None:
        super().__init__(spec)
        self._prefixes = prefixes
        self._on_read = on_read
        self._ends: dict[str, int] = {}
        self._ends_lock = Lock()

    def read_range(self, uri: str, start: int, length: int, *, etag: str | None = None) -> bytes:
        data = super().read_range(uri, start, length, etag=etag)
        if any(is_within(uri, each) for each in self._prefixes):
            self.note(uri, start + len(data))
        return data

    def note(self, uri: str, end: int) -> None:
        """Record that this or another process read a file up to byte `end`."""
        with self._ends_lock:
            fresh = end - self._ends.get(uri, 0)
            if fresh <= 0:
                return
            self._ends[uri] = end
        self._on_read(fresh)
