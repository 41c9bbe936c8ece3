"""Carry tasks: each has a stack of its own, and one at a time runs.

Greenlets do so where they are installed, and threads of the operating system elsewhere, which are slower by the time of
a switch between threads. Both give the same run.
"""

import contextvars
import os
from _thread import allocate_lock, start_new_thread
from collections import deque
from collections.abc import Callable
from importlib import import_module
from importlib.util import find_spec
from typing import Any, Protocol

HAS_GREENLETS = find_spec("greenlet") is not None and not os.environ.get("SIMULATE_WITH_THREADS")
greenlet: Any = import_module("greenlet") if HAS_GREENLETS else None


class Carrier(Protocol):
    """The stack of one task, or of the caller of the simulation."""

    def switch(self, here: "Carrier") -> None:
        """Go on there, and return when another one switches to `here`. Called where `here` runs."""


class _Greenlet:
    def __init__(self, stack: Any) -> None:
        self.stack = stack

    def switch(self, here: Carrier) -> None:  # noqa: ARG002 - greenlets know where they are
        self.stack.switch()


class _Thread:
    """A thread; it carries one task after the other."""

    def __init__(self) -> None:
        self._baton = allocate_lock()
        self._baton.acquire()
        self.work: Callable[[], None] | None = None
        self.home: _Thread | None = None

    def switch(self, here: Carrier) -> None:
        assert isinstance(here, _Thread)
        self._baton.release()
        here.wait()

    def wait(self) -> None:
        self._baton.acquire()

    def run(self) -> None:
        while True:
            self.wait()
            work, home, self.work = self.work, self.home, None
            assert work is not None
            assert home is not None
            contextvars.Context().run(work)
            _IDLE.append(self)
            home.switch_for_good()

    def switch_for_good(self) -> None:
        self._baton.release()


_IDLE: deque[_Thread] = deque()


def home() -> Carrier:
    """The stack of the caller, to which everything returns that ends."""
    return _Greenlet(greenlet.getcurrent()) if HAS_GREENLETS else _Thread()


def carrier(work: Callable[[], None], back: Carrier) -> Carrier:
    """A stack for a task; when it has ended, its last switch is `back`."""
    if HAS_GREENLETS:
        assert isinstance(back, _Greenlet)
        return _Greenlet(greenlet.greenlet(lambda: contextvars.Context().run(work), parent=back.stack))
    assert isinstance(back, _Thread)
    thread = _IDLE.pop() if _IDLE else None
    if thread is None:
        thread = _Thread()
        start_new_thread(thread.run, ())
    thread.work, thread.home = work, back
    return thread
