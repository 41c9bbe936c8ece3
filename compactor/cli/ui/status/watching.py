"""Repeats `status` until it is ended: redrawn in place on a terminal, one screen after the other elsewhere."""

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import Any, Protocol, TypeVar

from rich.console import Console, RenderableType
from rich.live import Live
from rich.text import Text

from compactor.cli.ui.output import print_json
from compactor.cli.ui.terminal import echo, has_reader
from compactor.core.errors import CompactorError

T = TypeVar("T")
T_contra = TypeVar("T_contra", contravariant=True)

Show = Callable[[T | None, str], None]
"""Shows a status, or those of several streams; None with the reason if it could not be read."""


class Draw(Protocol[T_contra]):
    """Draws a status; `error` says why nothing newer could be read."""

    def __call__(self, found: T_contra, *, width: int = ..., height: int = ..., error: str = ...) -> RenderableType: ...


def watch(
    read: Callable[[], T], show: Show[T], interval_seconds: float, *, sleep: Callable[[float], None] | None = None
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
def on_terminal(console: Console, draw: Draw[T]) -> Iterator[Show[T]]:
    """Show one screen, redrawn in place. The last one stays."""
    last: T | None = None
    with Live(console=console, auto_refresh=False, vertical_overflow="crop") as live:

        def show(found: T | None, error: str) -> None:
            nonlocal last
            last = last if found is None else found
            width, height = console.size
            drawn = (
                Text(_unread(error), "bold red")
                if last is None
                else draw(last, width=width, height=height, error=error)
            )
            live.update(drawn, refresh=True)

        yield show


def on_pipe(console: Console, draw: Draw[T]) -> Show[T]:
    """Show one screen after the other, for a pipe or a file."""

    def show(found: T | None, error: str) -> None:
        console.print(Text(_unread(error)) if found is None else draw(found), soft_wrap=True)
        echo("")

    return show


def as_json_lines(document: Callable[[T], Mapping[str, Any]]) -> Show[T]:
    """Show one JSON document a line."""

    def show(found: T | None, error: str) -> None:
        print_json(document(found) if found is not None else failure(error, datetime.now(UTC)), on_one_line=True)

    return show


def failure(error: str, now: datetime) -> dict[str, Any]:
    """The document in place of a status that could not be read."""
    return {"as_of": now, "error": error}


def _unread(error: str) -> str:
    return f"Cannot read the status: {error}"
