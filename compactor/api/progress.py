"""What a call shows while it works, and what may stop it: the ports, and the progress that a callback gets."""

import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field, replace
from threading import RLock, get_ident
from typing import Literal, Protocol

from compactor.api.pace import LEAST_SECONDS, paced
from compactor.core.documents.changes import Commit
from compactor.core.text.formatting import count
from compactor.job.results import Result, log_result
from compactor.telemetry.meter import Meter

Step = Literal["waiting", "planning", "reading", "compacting", "rebuilding", "verifying"]
"""A step of a call, by its name."""

StepDisplay = Callable[[Step, Meter], AbstractContextManager[None]]
"""Shows a step, and how far its meter has come, while its context is open."""


class Display(Protocol):
    """Shows a call. `on_result` is called from many threads, all else from that of the call."""

    def say(self, message: str) -> None:
        """Show what the call waits for, or begins."""

    def step(self, name: Step, meter: Meter) -> AbstractContextManager[None]:
        """Show a step, and how far its meter has come, while the context is open."""

    def on_read(self, length_bytes: int) -> None:
        """Count bytes of input that were read."""

    def shown(self, total_bytes: int) -> AbstractContextManager[object]:
        """Show the work on this much input while the context is open."""

    def on_result(self, result: Result) -> None:
        """Count a manifest that has ended."""


class StopRequests(Protocol):
    """What may ask the work to stop."""

    requested: bool  # whether it was asked to stop

    def attach(self, stop: Callable[[], None]) -> None:
        """Set the function that stops the work. It is called at once if it was asked to stop before."""


@dataclass(frozen=True, slots=True)
class Progress:
    """How far a call has come.

    Attributes:
        step: `waiting`, `planning`, `reading` (for types), `compacting`, `rebuilding` or `verifying`.
        message: The same in words, in one line. Names in it are as the files have them.
        bytes_read: Stored bytes of input that were read to make rows, in this call.
        bytes_total: Stored bytes of the input that waits for rows; 0 before that is known.
        rows: Rows that became visible in this call.
    """

    step: Step
    message: str
    bytes_read: int = 0
    bytes_total: int = 0
    rows: int = 0


@dataclass
class ProgressDisplay:
    """A `Display` that calls a function, never from two threads at once.

    An error of the function stops the work after the manifests in flight, and is raised in the thread of the call.

    Attributes:
        callback: The function; None shows nothing.
    """

    callback: Callable[[Progress], None] | None
    requested: bool = field(default=False, init=False)
    _caller: int = field(default_factory=get_ident, init=False)
    _now: Progress = field(default_factory=lambda: Progress("waiting", ""), init=False)
    _told_at: float = field(default=0.0, init=False)
    _error: BaseException | None = field(default=None, init=False)
    _stop: Callable[[], None] = field(default_factory=lambda: lambda: None, init=False)
    _lock: RLock = field(default_factory=RLock, init=False)

    def attach(self, stop: Callable[[], None]) -> None:
        """Set the function that stops the work; see `StopRequests`."""
        self._stop = stop
        if self.requested:
            stop()

    def say(self, message: str) -> None:
        """Tell what the call waits for."""
        self._tell(replace(self._now, step="waiting", message=message))

    @contextmanager
    def step(self, name: Step, meter: Meter) -> Iterator[None]:
        """Tell that a step begins, and how far its meter has come."""
        self._tell(replace(self._now, step=name, message=name))
        with paced(meter, name, lambda text: self._tell(replace(self._now, step=name, message=text))):
            yield
        self._raise_error()

    @contextmanager
    def shown(self, total_bytes: int) -> Iterator[None]:
        """Tell of the work on this much input."""
        with self._lock:
            total = self._now.bytes_read + total_bytes
            self._tell(replace(self._now, step="compacting", message="compacting", bytes_total=total))
        yield
        self._raise_error()

    def on_result(self, result: Result) -> None:
        """Tell that a manifest has ended."""
        log_result(result)
        if not isinstance(result.outcome, Commit):
            return
        with self._lock:
            rows = self._now.rows + sum(file.records for file in result.outcome.files)
            self._tell(replace(self._now, step="compacting", message=count(rows, "row"), rows=rows))

    def on_read(self, length_bytes: int) -> None:
        """Tell of bytes that were read."""
        with self._lock:
            self._now = replace(self._now, bytes_read=self._now.bytes_read + length_bytes)
            if time.monotonic() - self._told_at >= LEAST_SECONDS:
                self._tell(self._now)

    def _tell(self, progress: Progress) -> None:
        with self._lock:
            self._now, self._told_at = progress, time.monotonic()
            if self.callback is not None and self._error is None:
                try:
                    self.callback(progress)
                except BaseException as exc:  # noqa: BLE001 - raised in the thread of the call
                    self._error, self.requested = exc, True
        if self.requested:
            self._stop()
            if get_ident() == self._caller:
                self._raise_error()

    def _raise_error(self) -> None:
        if self._error is not None:
            raise self._error
