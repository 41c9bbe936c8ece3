"""The ports for progress and for stop requests, progress in words, and the progress passed to a callback."""

import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field, replace
from threading import RLock, get_ident
from typing import Literal, Protocol

from compactor.core.documents.changes import Commit
from compactor.core.text.formatting import count, rate, shown_seconds, size
from compactor.job.results import Result, log_result
from compactor.telemetry.meter import Meter

Step = Literal["waiting", "planning", "reading", "compacting", "rebuilding", "verifying"]
"""A step of a call, by name."""

StepDisplay = Callable[[Step, Meter], AbstractContextManager[None]]
"""Shows a step and its meter's progress while its context is open."""

LEAST_SECONDS = 0.1
"""The least time between two texts."""


@contextmanager
def paced(
    meter: Meter,
    what: str,
    show: Callable[[str], None],
    *,
    least_seconds: float = LEAST_SECONDS,
    clock: Callable[[], float] = time.monotonic,
) -> Iterator[None]:
    """Show a meter's progress while the context is open; the end is always shown, unless texts are rare."""
    began = shown_at = clock()
    number = meter.number

    def on_change() -> None:
        nonlocal began, shown_at, number
        now, is_over = clock(), meter.done == meter.total and least_seconds == LEAST_SECONDS
        if meter.number != number:
            number, began = meter.number, now
        elif is_over or now - shown_at >= least_seconds:
            shown_at = now
            show(f"{what}{_words(meter, now - began)}")

    meter.on_change = on_change
    try:
        yield
    finally:
        meter.on_change = lambda: None


def _words(meter: Meter, seconds: float) -> str:
    unit, done, total = meter.unit, meter.done, meter.total
    if unit == "byte":
        shown, of, pace = size(done), size(total or 0), rate(done, seconds)
    else:
        shown, of = f"{done:,}", count(total or 0, unit)
        pace = f"{done / max(seconds, LEAST_SECONDS):,.0f}/s" if done >= seconds else f"{60 * done / seconds:,.1f}/min"
    if not total:
        return f": {shown if unit == 'byte' else count(done, unit)}, {pace}"
    left = shown_seconds(max(0, total - done) * seconds / max(done, 1)) + " left"
    reached = f", at {meter.reached}" if meter.reached else ""
    return f" {100 * min(done, total) // total} %: {shown} of {of}, {pace}, {left}{reached}"


class Display(Protocol):
    """Shows a call. `on_result` is called from many threads, the other methods from the call's thread."""

    def say(self, message: str) -> None:
        """Show what the call waits for or starts."""

    def step(self, name: Step, meter: Meter) -> AbstractContextManager[None]:
        """Show a step and its meter's progress while the context is open."""

    def on_read(self, length_bytes: int) -> None:
        """Count bytes of input read."""

    def shown(self, total_bytes: int) -> AbstractContextManager[object]:
        """Show the work on this much input while the context is open."""

    def on_result(self, result: Result) -> None:
        """Count a manifest that ended."""


class StopRequests(Protocol):
    """A source of requests to stop the work."""

    requested: bool  # whether a stop was requested

    def attach(self, stop: Callable[[], None]) -> None:
        """Set the function that stops the work; called at once if a stop was already requested."""


@dataclass(frozen=True, slots=True)
class Progress:
    """The progress of a call.

    Attributes:
        step: `waiting`, `planning`, `reading` (for types), `compacting`, `rebuilding` or `verifying`.
        message: The same in words, in one line. Names in it are unescaped.
        bytes_read: Stored bytes of input read to make rows, in this call.
        bytes_total: Stored bytes of the input to convert; 0 before that is known.
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

    If the function raises, the work stops after the manifests in flight, and the error is raised in the call's thread.

    Attributes:
        callback: The function; None shows nothing.
    """

    callback: Callable[[Progress], None] | None
    requested: bool = field(default=False, init=False)
    _caller: int = field(default_factory=get_ident, init=False)
    _now: Progress = field(default_factory=lambda: Progress("waiting", ""), init=False)
    _reported_at: float = field(default=0.0, init=False)
    _error: BaseException | None = field(default=None, init=False)
    _stop: Callable[[], None] = field(default_factory=lambda: lambda: None, init=False)
    _lock: RLock = field(default_factory=RLock, init=False)

    def attach(self, stop: Callable[[], None]) -> None:
        """Set the function that stops the work; see `StopRequests`."""
        self._stop = stop
        if self.requested:
            stop()

    def say(self, message: str) -> None:
        """Report what the call waits for."""
        self._tell(replace(self._now, step="waiting", message=message))

    @contextmanager
    def step(self, name: Step, meter: Meter) -> Iterator[None]:
        """Report the start of a step, and its meter's progress."""
        self._tell(replace(self._now, step=name, message=name))
        with paced(meter, name, lambda text: self._tell(replace(self._now, step=name, message=text))):
            yield
        self._raise_error()

    @contextmanager
    def shown(self, total_bytes: int) -> Iterator[None]:
        """Report the work on this much input."""
        with self._lock:
            total = self._now.bytes_read + total_bytes
            self._tell(replace(self._now, step="compacting", message="compacting", bytes_total=total))
        yield
        self._raise_error()

    def on_result(self, result: Result) -> None:
        """Report the end of a manifest."""
        log_result(result)
        if not isinstance(result.outcome, Commit):
            return
        with self._lock:
            rows = self._now.rows + sum(file.records for file in result.outcome.files)
            self._tell(replace(self._now, step="compacting", message=count(rows, "row"), rows=rows))

    def on_read(self, length_bytes: int) -> None:
        """Report bytes read."""
        with self._lock:
            self._now = replace(self._now, bytes_read=self._now.bytes_read + length_bytes)
            if time.monotonic() - self._reported_at >= LEAST_SECONDS:
                self._tell(self._now)

    def _tell(self, progress: Progress) -> None:
        with self._lock:
            self._now, self._reported_at = progress, time.monotonic()
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
