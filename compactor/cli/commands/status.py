"""`compactor status`: the state of the job on one screen."""

import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from datetime import UTC, datetime
from typing import Any, TypeVar

import click
from rich.console import Console, RenderableType
from rich.live import Live
from rich.text import Text

from compactor.cli.invocation import Invocation, reporting
from compactor.cli.parameters import FiniteRange, destination_argument
from compactor.cli.ui.console import SafeConsole
from compactor.cli.ui.failures import ExitCode
from compactor.cli.ui.output import of_streams, print_json
from compactor.cli.ui.status_screen import MOST_WIDTH, Statuses, screen, show_statuses, streams_screen
from compactor.cli.ui.terminal import echo, has_reader
from compactor.cli.ui.words import show_reading
from compactor.core.errors import CompactorError
from compactor.core.map_ordered import map_ordered
from compactor.ops.status.values import Status, StatusFailure
from compactor.wiring import operating
from compactor.wiring.app import App

T = TypeVar("T")

Show = Callable[[T | None, str], None]
"""Shows a status, or the statuses of several streams; None with the reason if it is unreadable."""

Draw = Callable[..., RenderableType]
"""Draws a status for a `width` and a `height`; `error` is the reason why no newer one could be read."""


def watch(
    read: Callable[[], T], show: Show[T], interval_seconds: float, *, sleep: Callable[[float], None] | None = None
) -> None:
    """Read and show the status until Ctrl-C, or until stdout is closed. A store error is shown in its place."""
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
def on_terminal(console: Console, draw: Draw) -> Iterator[Show[Any]]:
    """Show one screen, redrawn in place. The last one stays."""
    last: Any = None
    with Live(console=console, auto_refresh=False, vertical_overflow="crop") as live:

        def show(found: object, error: str) -> None:
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


def on_pipe(console: Console, draw: Draw) -> Show[Any]:
    """Show one screen after another, for a pipe or a file."""

    def show(found: object, error: str) -> None:
        console.print(Text(_unread(error)) if found is None else draw(found), soft_wrap=True)
        echo("")

    return show


def as_json_lines(printed: Callable[[T], object]) -> Show[T]:
    """Show one JSON document per line."""

    def show(found: T | None, error: str) -> None:
        print_json(StatusFailure(datetime.now(UTC), error) if found is None else printed(found), on_one_line=True)

    return show


def _unread(error: str) -> str:
    return f"Cannot read the status: {error}"


WATCH_SECONDS = 5.0
MOST_SECONDS = 366 * 86_400.0  # threads cannot sleep longer than a few centuries


@click.command("status")
@destination_argument
@click.option(
    "--watch",
    "interval_seconds",
    type=FiniteRange(min=0, min_open=True, max=MOST_SECONDS),
    is_flag=False,
    flag_value=WATCH_SECONDS,
    metavar="[SECONDS]",
    help=f"Repeat every SECONDS, by default {WATCH_SECONDS:g}, until Ctrl-C.",
)
@reporting(Status, StatusFailure, has_streams=True)
def status(invocation: Invocation, *, interval_seconds: float | None, as_json: bool) -> ExitCode:
    """Show the state of the job and the next action.

    One screen: state, jobs, backlog and when it will be empty, rates, latency, rejects, dead letters, quarantined
    files, schema, latest commits. With several streams and no --stream, one line per stream and one for all.

    Exit codes: 0 nothing to do; 3 something needs attention; the first line shows what. --watch ends with 0.
    """
    settings = invocation.deployment()
    readers = {
        each.name: operating.status_reader(App(each)) for each in settings.streams or (settings.require_one_stream(),)
    }
    canary = settings.canary.name if settings.canary else ""

    def read() -> Statuses:
        return dict(zip(readers, map_ordered(lambda each: each.read(), readers.values()), strict=True))

    def printed(found: Statuses) -> object:
        return of_streams(found) if settings.streams else _only(found)

    def draw(found: Statuses, **how: Any) -> RenderableType:
        return streams_screen(found, canary=canary, **how) if settings.streams else screen(_only(found), **how)

    if interval_seconds is None:
        found = read()
        if as_json:
            print_json(printed(found))
        elif settings.streams:
            show_statuses(found, canary)
        else:
            _show(settings.reading_lines() if settings.folder else (), _only(found))
        needs_operator = any(each.state.needs_operator for each in found.values())
        return ExitCode.NEEDS_OPERATOR if needs_operator else ExitCode.DONE
    if as_json:
        watch(read, as_json_lines(printed), interval_seconds)
    else:
        console = SafeConsole()
        with on_terminal(console, draw) if sys.stdout.isatty() else nullcontext(on_pipe(console, draw)) as show:
            watch(read, show, interval_seconds)
    return ExitCode.DONE


def _only(found: Statuses) -> Status:
    [status] = found.values()
    return status


def _show(reading: Sequence[str], found: Status) -> None:
    console = SafeConsole()
    height = console.height if console.is_terminal else 40
    console.print(screen(found, width=min(console.width, MOST_WIDTH), height=height), soft_wrap=True)
    if found.recent:
        show_reading(reading)
