"""Tells whether reads wait for a disk, or find what they read in memory."""

import time
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")

_WAITING_SHARE = 0.25
"""Of the time of a read. What is in memory is read without waiting; a fast disk keeps a read waiting for half of it."""


class DiskWaits:
    """How the last read of some went. Before the first one, none waits."""

    def __init__(self) -> None:
        self._has_waited = False

    def has_waited(self) -> bool:
        """Whether the last read waited, which makes it worthwhile to begin the next ones early."""
        return self._has_waited

    def measured(self, read: Callable[[], T]) -> T:
        """Read, and measure it; threads may do so side by side."""
        began, worked = time.perf_counter(), time.thread_time()
        try:
            return read()
        finally:
            took = time.perf_counter() - began
            self._has_waited = took - (time.thread_time() - worked) > _WAITING_SHARE * took
