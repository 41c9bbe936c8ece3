"""What is shown while a job works: a live line or a bar on a terminal, log events for each manifest elsewhere."""

import threading
import time
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from compactor.adapters.stores import StoreSpec, WatchedReads
from compactor.api.progress import Step
from compactor.cli.ui.failures import say
from compactor.cli.ui.output import waiting
from compactor.core.crash_points import CrashPoint, PlanCrashPoint
from compactor.core.documents.changes import Commit
from compactor.core.documents.counts import counts_of
from compactor.core.text.formatting import by_name, count, duration, rate
from compactor.job.results import Result, log_result

if TYPE_CHECKING:
    from rich.progress import Progress, TaskID
    from rich.spinner import Spinner

_PHASES = {
    CrashPoint.ACCEPTED: "accepted",
    CrashPoint.ATTEMPTED: "inspecting",
    CrashPoint.INSPECTED: "converting",
    CrashPoint.CONVERTED: "verifying",
    CrashPoint.DECIDED: "publishing",
}
"""The phase of a manifest after a crash point. Other crash points begin no phase that a user would notice."""


@dataclass
class LiveLine:
    """The line that `run` shows on a terminal while `display` is entered. Its methods are called from many threads."""

    started: float = field(default_factory=time.monotonic)  # when the run began, by the monotonic clock
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

    def on_crash_point(self, point: CrashPoint | PlanCrashPoint, manifest_id: str) -> None:
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
        """The line as it is now."""
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


class CompactProgress:
    """The `Display` of `compact`: a bar on a terminal, log events elsewhere."""

    def __init__(self, *, on_terminal: bool) -> None:
        self._on_terminal = on_terminal
        self._bar: Progress | None = None
        self._task: TaskID | None = None
        self._store: WatchedReads | None = None
        self._rows = 0

    def say(self, message: str) -> None:
        """Print a line on stderr."""
        say(message)

    def step(self, name: Step) -> AbstractContextManager[Callable[[str], None]]:
        """Show a step on a terminal."""
        return waiting(name)

    def store(self, spec: StoreSpec, prefixes: Sequence[str]) -> WatchedReads:
        """Open the store. Reads below the prefixes advance the bar."""
        self._store = WatchedReads(spec, prefixes, self._on_read)
        return self._store

    def shown(self, total_bytes: int) -> AbstractContextManager[object]:
        """Show the bar for this much input while the context is open."""
        if not self._on_terminal:
            return nullcontext()
        self._bar = _byte_bar()
        self._task = self._bar.add_task("compacting", total=total_bytes)
        return self._bar

    def on_result(self, result: Result) -> None:
        """Show that a manifest has ended, and log how."""
        if isinstance(result.outcome, Commit):
            if self._store is not None:
                for file in result.outcome.files:  # an engine in other processes reads past this store
                    self._store.note(file.uri, file.size_bytes)
            self._rows += sum(file.records for file in result.outcome.files)
            if self._bar is not None and self._task is not None:
                self._bar.update(self._task, description=count(self._rows, "row"))
        log_result(result)

    def _on_read(self, length_bytes: int) -> None:
        if self._bar is not None and self._task is not None:
            self._bar.advance(self._task, length_bytes)


def _byte_bar() -> "Progress":
    from rich.progress import (  # noqa: PLC0415 - rich is slow to load
        BarColumn,
        DownloadColumn,
        Progress,
        TextColumn,
        TimeRemainingColumn,
        TransferSpeedColumn,
    )

    from compactor.cli.ui.console import SafeConsole  # noqa: PLC0415

    return Progress(
        TextColumn("{task.description}"),
        BarColumn(bar_width=24),
        TextColumn("{task.percentage:>3.0f}%"),
        DownloadColumn(),
        TransferSpeedColumn(),
        TimeRemainingColumn(compact=True),
        console=SafeConsole(stderr=True),
        transient=True,
        speed_estimate_period=30,
    )
