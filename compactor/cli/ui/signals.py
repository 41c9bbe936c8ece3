"""SIGTERM and SIGINT: the first asks for a clean end, the second ends at once."""

import os
import signal
import sys
import threading
from collections.abc import Callable
from contextlib import suppress
from types import FrameType
from typing import Self

_SIGNALS = (signal.SIGTERM, signal.SIGINT)
_SHOW_CURSOR = "\x1b[?25h"  # a progress display hides it


class StopSignals:
    """Turns signals into a request to stop. A context manager for the main thread."""

    def __init__(self) -> None:
        self._stop: Callable[[], None] | None = None
        self.requested = False  # whether a signal arrived
        self._previous: dict[int, object] = {}

    def __enter__(self) -> Self:
        self._previous = {number: signal.signal(number, self._on_signal) for number in _SIGNALS}
        return self

    def __exit__(self, *_: object) -> None:
        for number, handler in self._previous.items():
            signal.signal(number, handler)  # type: ignore[arg-type]  # what signal.signal itself returned

    def attach(self, stop: Callable[[], None]) -> None:
        """Set the function that requests the stop. It is called at once if a signal has arrived before.

        Call this when Spark is up: while it starts, it installs its own handler of SIGINT.
        """
        self._stop = stop
        for number in _SIGNALS:
            signal.signal(number, self._on_signal)
        if self.requested:
            stop()

    def _on_signal(self, _number: int, _frame: FrameType | None) -> None:
        if self.requested:
            _write(f"{_SHOW_CURSOR if sys.stderr.isatty() else ''}compactor: ended at once; the next run continues\n")
            os._exit(1)
        self.requested = True
        _write("compactor: stopping after the manifests in flight; a second signal ends at once\n")
        if self._stop is not None:
            # The interrupted code may hold a lock that stopping needs; another thread can wait for it.
            threading.Thread(target=self._stop, daemon=True).start()


def _write(line: str) -> None:
    """Write to stderr without its buffer, which the interrupted code may be writing to."""
    # A terminal shows ^C on the current line.
    with suppress(OSError):  # nothing reads stderr any more
        os.write(2, f"\n{line}".encode() if sys.stderr.isatty() else line.encode())
