"""Repeats `status` until it is ended: redrawn in place on a terminal, one screen after the other elsewhere."""

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import Any

from rich.console import Console
from rich.live import Live
from rich.text import Text

from compactor.cli.ui.output import print_json
from compactor.cli.ui.status_screen import screen
from compactor.cli.ui.terminal import echo, has_reader
from compactor.core.errors import CompactorError
from compactor.ops.status.values import Status

Show = Callable[[Status | None, str], None]
"""Shows a status; None with the reason if it could not be read."""


def watch(
    read: Callable[[], Status], show: Show, interval_seconds: float, *, sleep: Callable[[float], None] | None = None
) -> None:
    """Read and show the status until Ctrl-C, or until no one reads it. An error of the store is shown in its place."""
    try:
        while has_reader():
            try:
                show(read(), "")
            except CompactorError as exc:
                show(None, " ".join(str(exc).split()))
            (sleep or time.sleep)(interval_seconds)
    except KeyboardInterrupt:
        return  # the way to end it


@contextmanager
def on_terminal(console: Console) -> Iterator[Show]:
    """Show one screen, redrawn in place. The last one stays."""
    last: Status | None = None
    with Live(console=console, auto_refresh=False, vertical_overflow="crop") as live:

        def show(found: Status | None, error: str) -> None:
            nonlocal last
            last = found or last
            width, height = console.size
            drawn = screen(last, width=width, height=height, error=error) if last else Text(_unread(error), "bold red")
            live.update(drawn, refresh=True)

        yield show


def on_pipe(found: Status | None, error: str) -> None:
    """Show one screen after the other, for a pipe or a file."""
    echo(*(screen(found).plain.split("\n") if found else [_unread(error)]), "")


def as_json_lines(document: Callable[[Status], Mapping[str, Any]]) -> Show:
    """Show one JSON document a line."""

    def show(found: Status | None, error: str) -> None:
        print_json(document(found) if found else failure(error, datetime.now(UTC)), on_one_line=True)

    return show


def failure(error: str, now: datetime) -> dict[str, Any]:
    """The document in place of a status that could not be read."""
    return {"as_of": now, "error": error}


def _unread(error: str) -> str:
    return f"Cannot read the status: {error}"
