"""Repeats `status` until Ctrl-C: redrawn in place on a terminal, one screen after the other elsewhere."""

import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Self

from rich.console import Console
from rich.live import Live
from rich.text import Text

from compactor.cli.ui.console import SafeConsole
from compactor.cli.ui.output import print_json_line
from compactor.cli.ui.status_screen import screen
from compactor.cli.ui.terminal import echo
from compactor.core.errors import CompactorError
from compactor.ops.status.values import Status


class Watch(ABC):
    """Shows one status after the other. A context manager."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:  # noqa: B027 - most displays have nothing to end
        """End the display."""

    @abstractmethod
    def show(self, found: Status) -> None:
        """Show a status."""

    @abstractmethod
    def fail(self, error: str) -> None:
        """Show why the status could not be read."""


def watch(
    read: Callable[[], Status], shown: Watch, interval_seconds: float, *, sleep: Callable[[float], None] | None = None
) -> None:
    """Read and show the status until Ctrl-C. An error of the store is shown in its place."""
    try:
        with shown:
            while True:
                try:
                    shown.show(read())
                except CompactorError as exc:
                    shown.fail(" ".join(str(exc).split()))
                (sleep or time.sleep)(interval_seconds)
    except KeyboardInterrupt:
        return  # the way to end it


class LiveWatch(Watch):
    """One screen on a terminal, redrawn in place. The last one stays."""

    def __init__(self, console: Console | None = None) -> None:
        self._console = console or SafeConsole()
        self._live = Live(console=self._console, auto_refresh=False, vertical_overflow="crop")
        self._last: Status | None = None

    def __enter__(self) -> Self:
        self._live.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._live.stop()

    def show(self, found: Status) -> None:
        self._last = found
        self._draw("")

    def fail(self, error: str) -> None:
        self._draw(error)

    def _draw(self, error: str) -> None:
        if self._last is None:
            drawn = Text(f"Cannot read the status: {error}", "bold red")
        else:
            size = self._console.size
            drawn = screen(self._last, width=size.width, height=size.height, error=error)
        self._live.update(drawn, refresh=True)


class PlainWatch(Watch):
    """One screen after the other, for a pipe or a file."""

    def show(self, found: Status) -> None:
        echo(*screen(found).plain.split("\n"), "")

    def fail(self, error: str) -> None:
        echo(f"Cannot read the status: {error}", "")


@dataclass(frozen=True)
class JsonWatch(Watch):
    """One JSON document a line."""

    document: Callable[[Status], Mapping[str, Any]]

    def show(self, found: Status) -> None:
        print_json_line(self.document(found))

    def fail(self, error: str) -> None:
        print_json_line(failure(error, datetime.now(UTC)))


def failure(error: str, now: datetime) -> dict[str, Any]:
    """The document in place of a status that could not be read."""
    return {"as_of": now, "error": error}
