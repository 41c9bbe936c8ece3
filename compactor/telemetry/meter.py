"""Counts how far long work has come, for displays."""

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from threading import Lock
from typing import TypeVar

T = TypeVar("T")


class Meter:
    """How far the work of a process has come. It counts one piece of work at a time, and not the work within it.

    Its methods may be called from several threads.

    Attributes:
        unit: What is counted, such as `manifest`, or `byte`; empty if nothing is.
        total: How many there are; None if that is unknown.
        done: How many are done.
        number: The number of the piece of work, from 1.
        reached: The date that the work has reached; empty if it does not go by date.
        on_change: Called when a piece of work begins, and when some of it is done.
    """

    def __init__(self) -> None:
        self.unit = self.reached = ""
        self.total: int | None = None
        self.done = self.number = 0
        self.on_change: Callable[[], None] = lambda: None
        self._lock = Lock()

    @contextmanager
    def work(self, unit: str, total: int | None = None) -> Iterator[bool]:
        """Begin to count a piece of work; the value says whether it is counted, as it is within no other."""
        with self._lock:
            is_counted = not self.unit
            if is_counted:
                self.unit, self.reached, self.total, self.done, self.number = unit, "", total, 0, self.number + 1
        try:
            if is_counted:
                self.on_change()
            yield is_counted
            if is_counted and self.total is None:  # which is known only now
                self.total = self.done
                self.on_change()
        finally:
            if is_counted:
                self.unit = ""

    def add(self, unit: str, number: int = 1) -> None:
        """Count what is done, if the work is counted in this unit."""
        with self._lock:
            if unit != self.unit:
                return
            self.done += number
        self.on_change()

    def each(
        self, unit: str, items: Iterable[T], total: int | None = None, many: Callable[[T], int] = lambda _: 1
    ) -> Iterator[T]:
        """Yield items, and count them as a piece of work; `many` says how many units an item is."""
        with self.work(unit, total) as is_counted:
            for item in items:
                yield item
                if is_counted:
                    self.add(unit, many(item))
