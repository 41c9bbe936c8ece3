"""Progress of a command: a line on a terminal; elsewhere log events or an occasional line."""

import sys
import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from compactor.api.progress import Step, paced
from compactor.cli.ui.failures import say
from compactor.core.crash_points import CrashPoint, PlanCrashPoint, RedriveCrashPoint
from compactor.core.documents.changes import Commit
from compactor.core.documents.counts import counts_of
from compactor.core.text.formatting import by_name, count, duration, rate
from compactor.job.results import Result, log_result
from compactor.telemetry.logs import logs_json
from compactor.telemetry.meter import Meter

if TYPE_CHECKING:
    from rich.spinner import Spinner
    from rich.text import Text

SHORT_SECONDS = 1.0
"""Work shorter than this shows no progress."""

SAID_SECONDS = 60.0
"""The least time between two lines without a terminal."""

_PHASES = {
    CrashPoint.ACCEPTED: "accepted",
    CrashPoint.ATTEMPTED: "inspecting",
    CrashPoint.INSPECTED: "converting",
    CrashPoint.CONVERTED: "verifying",
    CrashPoint.DECIDED: "publishing",
}
"""The phase of a manifest after a crash point. Other crash points start no phase visible to users."""


@dataclass
class LiveLine:
    """The line that `run` shows on a terminal while `display` is entered. Its methods are called from many threads."""

    started: float = field(default_factory=time.monotonic)  # start of the run, by the monotonic clock
    _phases: dict[str, str] = field(default_factory=dict)
    _committed: int = 0
    _dead_lettered: int = 0
    _rows: int = 0
    _input_bytes: int = 0
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def __post_init__(self) -> None:
        from rich.live import Live  # noqa: PLC0415 - rich is slow to load
        from rich.spinner import Spinner  # noqa: PLC0415

        from compactor.cli.ui.console import SafeConsole  # noqa: PLC0415

        self._spinner = Spinner("dots")
        console = SafeConsole(stderr=True)
        self.display = Live(get_renderable=self._renderable, console=console, refresh_per_second=5, transient=True)

    def on_crash_point(self, point: CrashPoint | PlanCrashPoint | RedriveCrashPoint, manifest_id: str) -> None:
        """Show the phase that a manifest enters."""
        with self._lock:
            if isinstance(point, CrashPoint) and point in _PHASES:
                self._phases[manifest_id] = _PHASES[point]
            elif point is CrashPoint.CLOSED:
                self._phases.pop(manifest_id, None)

    def on_result(self, result: Result) -> None:
        """Count a manifest and log how it ended."""
        outcome = result.outcome
        with self._lock:
            self._phases.pop(result.manifest_id, None)
            if isinstance(outcome, Commit):
                self._committed += 1
                found = counts_of(outcome, with_source=False)
                self._rows += found.rows
                self._input_bytes += found.input_bytes
            else:
                self._dead_lettered += 1
        log_result(result)

    def text(self) -> str:
        """The current line."""
        seconds = time.monotonic() - self.started
        with self._lock:
            figures = [f"{count(self._committed, 'manifest')} committed"]
            if self._dead_lettered:
                figures.append(count(self._dead_lettered, "dead letter"))
            figures += [count(self._rows, "row"), rate(self._input_bytes, seconds), duration(seconds)]
            return " | ".join([*figures, by_name(Counter(self._phases.values())) or "waiting"])

    def _renderable(self) -> "Spinner":
        from rich.text import Text  # noqa: PLC0415 - rich is slow to load

        self._spinner.update(text=Text(self.text(), no_wrap=True, overflow="ellipsis"))
        return self._spinner


@contextmanager
def working(what: str, meter: Meter) -> Iterator[None]:
    """Show progress on stderr while the context is open, unless the work is short or the log is JSON."""
    if logs_json():
        yield
        return
    if not sys.stderr.isatty():
        with paced(meter, what, say, least_seconds=SAID_SECONDS):
            yield
        return
    from compactor.cli.ui.console import SafeConsole  # noqa: PLC0415 - rich is slow to load

    console = SafeConsole(stderr=True)
    status = console.status(what)
    begins = threading.Timer(SHORT_SECONDS, status.start)
    begins.daemon = True
    begins.start()
    try:
        with paced(meter, what, lambda text: status.update(_in_one_line(text, console.width))):
            yield
    finally:
        begins.cancel()
        begins.join()  # it may be about to show the line
        status.stop()


def _in_one_line(text: str, columns: int) -> "Text":
    """The text that fits a line, next to a spinner."""
    from rich.text import Text  # noqa: PLC0415 - rich is slow to load

    line = Text(text)
    line.truncate(columns - 3, overflow="ellipsis")
    return line


class CompactProgress:
    """The `Display` of `compact`."""

    def __init__(self) -> None:
        self._meter = Meter()

    def say(self, message: str) -> None:
        """Print a line on stderr."""
        say(message)

    def step(self, name: Step, meter: Meter) -> AbstractContextManager[None]:
        """Show a step and the progress of its meter."""
        return working(name, meter)

    def on_read(self, length_bytes: int) -> None:
        """Count bytes of input."""
        self._meter.add("byte", length_bytes)

    @contextmanager
    def shown(self, total_bytes: int) -> Iterator[None]:
        """Show how much of the input was read while the context is open."""
        with working("compacting", self._meter), self._meter.work("byte", total_bytes):
            yield

    def on_result(self, result: Result) -> None:
        """Log how a manifest ended."""
        log_result(result)
