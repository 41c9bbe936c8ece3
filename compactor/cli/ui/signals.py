"""SIGTERM and SIGINT: the first requests a clean end, the second ends at once."""

import os
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from types import FrameType
from typing import Self

from compactor.__main__ import end_at_once

_SIGNALS = (signal.SIGTERM, signal.SIGINT)
_SHOW_CURSOR = "\x1b[?25h"  # a progress display hides it


class StopSignals:
    """Turns signals into a request to stop. A context manager for the main thread.

    A signal for this process may stop Spark, too: terminals, systemd and `timeout` signal both. An error at startup
    then counts as the interruption, not as a failure. Without `says`, the first signal prints nothing.
    """

    def __init__(self, *, says: bool = True) -> None:
        self._says = says
        self._stop: Callable[[], None] | None = None
        self.requested = False  # whether a signal arrived
        self._previous: dict[int, object] = {}
        self._heard = _HeardSignals()

    def __enter__(self) -> Self:
        self._previous = {number: signal.signal(number, self._on_signal) for number in _SIGNALS}
        self._heard.begin()
        return self

    def __exit__(self, _kind: object, error: BaseException | None, _trace: object) -> None:
        for number, handler in self._previous.items():
            signal.signal(number, handler)  # type: ignore[arg-type]  # what signal.signal itself returned
        heard = self._heard.end()
        if isinstance(error, Exception) and self._stop is None and (self.requested or heard.intersection(_SIGNALS)):
            raise KeyboardInterrupt from None

    def attach(self, stop: Callable[[], None]) -> None:
        """Set the function that requests the stop; called at once if a signal has already arrived.

        Call this once Spark is up: while it starts, it installs its own handler of SIGINT.
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
        if self._says:
            _write("compactor: stopping after the manifests in flight; a second signal ends at once\n")
        if self._stop is not None:
            # The interrupted code may hold a lock that stopping needs; another thread can wait for it.
            threading.Thread(target=self._stop, daemon=True).start()


class _HeardSignals:
    """Notes each signal that arrives, even while Spark handles SIGINT during its start."""

    def begin(self) -> None:
        self._read, self._write = os.pipe()
        os.set_blocking(self._read, False)
        os.set_blocking(self._write, False)
        self._previous = signal.set_wakeup_fd(self._write, warn_on_full_buffer=False)

    def end(self) -> frozenset[int]:
        """Return the numbers of the signals since the start."""
        signal.set_wakeup_fd(self._previous)
        try:
            return frozenset(os.read(self._read, 1024))
        except BlockingIOError:
            return frozenset()
        finally:
            os.close(self._read)
            os.close(self._write)


class EndsAtOnce:
    """Lets SIGTERM and SIGINT end the process at once, without a traceback. A context manager.

    For work that may end at any step. Changes nothing outside the main thread, or if SIGINT is ignored.
    """

    def __init__(self) -> None:
        self._previous: dict[int, object] = {}

    def __enter__(self) -> Self:
        is_main = threading.current_thread() is threading.main_thread()
        if is_main and signal.getsignal(signal.SIGINT) is not signal.SIG_IGN:
            self._previous = {number: signal.signal(number, end_at_once) for number in _SIGNALS}
        return self

    def __exit__(self, *_: object) -> None:
        for number, handler in self._previous.items():
            signal.signal(number, handler)  # type: ignore[arg-type]  # what signal.signal itself returned


@contextmanager
def interruptible() -> Iterator[None]:
    """Make Ctrl-C raise `KeyboardInterrupt` in the block, if it would otherwise end the process."""
    if signal.getsignal(signal.SIGINT) is not end_at_once:
        yield
        return
    signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, end_at_once)


def _write(line: str) -> None:
    """Write to stderr without its buffer, which the interrupted code may be using."""
    # A terminal shows ^C on the current line.
    with suppress(OSError):  # stderr has no reader left
        os.write(2, f"\n{line}".encode() if sys.stderr.isatty() else line.encode())
