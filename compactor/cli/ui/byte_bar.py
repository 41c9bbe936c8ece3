"""How far a piece of work of known size is: a bar with rate and remaining time, on a terminal."""

from contextlib import AbstractContextManager, nullcontext
from typing import Self

from rich.console import Console
from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TimeRemainingColumn, TransferSpeedColumn

from compactor.adapters.stores import StoreSpec
from compactor.adapters.watched_reads import WatchedReads
from compactor.cli.ui.progress import log_result
from compactor.core.formatting import count
from compactor.core.records import Commit
from compactor.job.compaction import CompactionResult


class ByteBar:
    """The bar. Told of what was read and of results, from many threads.

    Args:
        total_bytes: Of all work.
    """

    def __init__(self, total_bytes: int) -> None:
        self._bar = Progress(
            TextColumn("{task.description}"),
            BarColumn(bar_width=24),
            TextColumn("{task.percentage:>3.0f}%"),
            DownloadColumn(),
            TransferSpeedColumn(),
            TimeRemainingColumn(compact=True),
            console=Console(stderr=True),
            transient=True,
            speed_estimate_period=30,
        )
        self._task = self._bar.add_task("compacting", total=total_bytes)
        self._rows = 0

    def __enter__(self) -> Self:
        self._bar.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._bar.stop()

    def on_read(self, length_bytes: int) -> None:
        """Move on by some bytes of input."""
        self._bar.advance(self._task, length_bytes)

    def on_result(self, result: CompactionResult) -> None:
        """Count the rows of a manifest; a dead letter also goes to the log."""
        if isinstance(result.outcome, Commit):
            self._rows += sum(file.records for file in result.outcome.files)
            self._bar.update(self._task, description=count(self._rows, "row"))
        log_result(result)


class Watch:
    """What is shown while the work is going on: a bar on a terminal, log events elsewhere.

    Args:
        on_terminal: Which of them.
    """

    def __init__(self, *, on_terminal: bool) -> None:
        self._on_terminal = on_terminal
        self._bar: ByteBar | None = None
        self._store: WatchedReads | None = None

    def store(self, spec: StoreSpec, source: str) -> WatchedReads:
        """The store, whose reads of the source are watched."""
        self._store = WatchedReads(spec, source, self._on_read)
        return self._store

    def bar(self, total_bytes: int) -> AbstractContextManager[object]:
        """What is to be shown for so much work."""
        self._bar = ByteBar(total_bytes) if self._on_terminal else None
        return self._bar or nullcontext()

    def on_result(self, result: CompactionResult) -> None:
        """Show that a manifest came to its end."""
        if self._store is not None and isinstance(result.outcome, Commit):
            for file in result.outcome.files:  # an engine in other processes reads past the store
                self._store.note(file.uri, file.size_bytes)
        if self._bar is not None:
            self._bar.on_result(result)
        else:
            log_result(result)

    def _on_read(self, length_bytes: int) -> None:
        if self._bar is not None:
            self._bar.on_read(length_bytes)
