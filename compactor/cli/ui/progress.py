"""What a run shows while it works: one live line on a terminal, an event for each manifest in the log elsewhere."""

import threading
import time
from dataclasses import dataclass, field
from typing import Self

from rich.console import Console
from rich.live import Live
from rich.spinner import Spinner
from rich.text import Text

from compactor.core.crash_points import CrashPoint
from compactor.core.formatting import by_name, count, duration, rate
from compactor.core.records import Commit
from compactor.job.compaction import CompactionResult
from compactor.telemetry.logs import log_event

_DOING = {
    CrashPoint.ACCEPTED: "accepted",
    CrashPoint.ATTEMPTED: "inspecting",
    CrashPoint.INSPECTED: "converting",
    CrashPoint.CONVERTED: "verifying",
    CrashPoint.DECIDED: "publishing",
}
"""What a manifest is at after a step; steps that are not named change nothing that a person would notice."""


def log_result(result: CompactionResult) -> None:
    """Log how a manifest ended."""
    outcome = result.outcome
    if isinstance(outcome, Commit):
        log_event(
            "manifest.committed",
            manifest_id=result.manifest_id,
            files=len(outcome.files),
            input_bytes=sum(file.size_bytes for file in outcome.files),
            rows=sum(file.records for file in outcome.files),
            rejected_lines=sum(file.rejected_lines for file in outcome.files),
            output_files=len(outcome.outputs),
            output_bytes=sum(file.size_bytes for file in outcome.outputs),
            seconds=round((outcome.decided_at - outcome.started_at).total_seconds(), 3),
        )
    elif outcome is not None:
        log_event(
            "manifest.dead_lettered",
            manifest_id=result.manifest_id,
            reason=outcome.reason,
            message=outcome.message,
        )


@dataclass
class LiveLine:
    """The line on a terminal. Told of steps and results from many threads.

    Attributes:
        started: When the run began, by the monotonic clock.
    """

    started: float = field(default_factory=time.monotonic)
    _doing: dict[str, str] = field(default_factory=dict)
    _committed: int = 0
    _set_aside: int = 0
    _rows: int = 0
    _input_bytes: int = 0
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def __post_init__(self) -> None:
        self._spinner = Spinner("dots")
        self._live = Live(
            get_renderable=self._renderable, console=Console(stderr=True), refresh_per_second=5, transient=True
        )

    def __enter__(self) -> Self:
        self._live.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._live.stop()

    def on_crash_point(self, step: CrashPoint, manifest_id: str) -> None:
        """Follow one manifest."""
        with self._lock:
            if step in _DOING:
                self._doing[manifest_id] = _DOING[step]
            elif step is CrashPoint.CLOSED:
                self._doing.pop(manifest_id, None)

    def on_result(self, result: CompactionResult) -> None:
        """Count one manifest; a dead letter also goes to the log."""
        outcome = result.outcome
        with self._lock:
            self._doing.pop(result.manifest_id, None)
            if isinstance(outcome, Commit):
                self._committed += 1
                self._rows += sum(file.records for file in outcome.files)
                self._input_bytes += sum(file.size_bytes for file in outcome.files)
            else:
                self._set_aside += 1
        log_result(result)

    def text(self) -> str:
        """The line as it is now."""
        seconds = time.monotonic() - self.started
        with self._lock:
            doing: dict[str, int] = {}
            for what in self._doing.values():
                doing[what] = doing.get(what, 0) + 1
            parts = [f"{count(self._committed, 'manifest')} committed"]
            if self._set_aside:
                parts.append(f"{self._set_aside:,} set aside")
            parts += [count(self._rows, "row"), rate(self._input_bytes, seconds), duration(seconds)]
            return " | ".join([*parts, by_name(doing) or "waiting"])

    def _renderable(self) -> Spinner:
        self._spinner.update(text=Text(self.text(), no_wrap=True, overflow="ellipsis"))
        return self._spinner
