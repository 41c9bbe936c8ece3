"""Tells whether reads spend their time waiting, as those of a disk do, or find what they read in memory."""

import time
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")

_WAITING_SHARE = 0.25
"""Of the time of a read. What is in memory is read without waiting; a fast disk keeps a read waiting for half of it."""


class DiskWaits:
    """Whether the last measured read waited; false before the first.

    A processor that is busy with others looks like a disk that is waited for: reading ahead then costs a little time.
    """

    def __init__(self) -> None:
        self._has_waited = False

    def has_waited(self) -> bool:
        """Whether it is worthwhile to begin the next reads early."""
        return self._has_waited

    def measured(self, read: Callable[[], T]) -> T:
        """Call `read`, and note whether it waited. Threads may do so side by side: the last one to end counts."""
        began, worked = time.monotonic(), time.thread_time()
        try:
            return read()
        finally:
            took = time.monotonic() - began
            self._has_waited = took - (time.thread_time() - worked) > _WAITING_SHARE * took
