"""`compactor status`: the state of the job on one screen."""

import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import nullcontext
from functools import partial
from typing import Any, TypeVar

import click

from compactor.cli.destination import destination_argument
from compactor.cli.invocation import Invocation, body, json_option, stream_option
from compactor.cli.numbers import FiniteRange
from compactor.cli.ui.common.reading import show_reading
from compactor.cli.ui.common.streams import stream_documents
from compactor.cli.ui.console import SafeConsole
from compactor.cli.ui.failures import ExitCode
from compactor.cli.ui.output import print_json, shallow
from compactor.cli.ui.status.screen import MOST_WIDTH, screen
from compactor.cli.ui.status.stream_statuses import Statuses, show_statuses, streams_screen
from compactor.cli.ui.status.watching import Draw, as_json_lines, on_pipe, on_terminal, watch
from compactor.core.map_ordered import map_ordered
from compactor.ops.status.values import Status
from compactor.wiring.job.app import App

T = TypeVar("T")

WATCH_SECONDS = 5.0
MOST_SECONDS = 366 * 86_400.0  # threads sleep no longer than a few centuries


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
@json_option
@stream_option
@body
def status(invocation: Invocation, *, interval_seconds: float | None, as_json: bool) -> ExitCode:
    """Show the state of the job and the next action.

    One screen: state, jobs, backlog and when it will be empty, rates, latency, rejects, dead letters, quarantined
    files, schema, cost, latest commits. Without --stream, one line for each of several streams, and one for all.

    Exit codes: 0 nothing to do; 3 a person has to act, as the first line says. --watch ends with 0.
    """
    settings = invocation.deployment()
    if not settings.streams:
        reader = App(settings.require_one_stream()).status_reader
        show = partial(_show, settings.reading_lines() if settings.folder else ())
        return _shown(reader.read, document, show, screen, lambda found: [found], interval_seconds, as_json=as_json)
    readers = {each.name: App(each).status_reader for each in settings.streams}
    canary = settings.canary.name if settings.canary else ""

    def read() -> Statuses:
        return dict(zip(readers, map_ordered(lambda each: each.read(), readers.values()), strict=True))

    def documents(found: Statuses) -> dict[str, Any]:
        return stream_documents((name, document(each)) for name, each in found.items())

    show, draw = partial(show_statuses, canary=canary), partial(streams_screen, canary=canary)
    return _shown(read, documents, show, draw, lambda found: found.values(), interval_seconds, as_json=as_json)


def _shown(
    read: Callable[[], T],
    to_document: Callable[[T], Mapping[str, Any]],
    show_once: Callable[[T], None],
    draw: Draw[T],
    each_of: Callable[[T], Iterable[Status]],
    interval_seconds: float | None,
    *,
    as_json: bool,
) -> ExitCode:
    """Read and show once, with the exit code of the worst state, or at each interval."""
    if interval_seconds is None:
        found = read()
        print_json(to_document(found)) if as_json else show_once(found)
        needs_operator = any(each.state.needs_operator for each in each_of(found))
        return ExitCode.NEEDS_OPERATOR if needs_operator else ExitCode.DONE
    if as_json:
        watch(read, as_json_lines(to_document), interval_seconds)
    else:
        console = SafeConsole()
        with on_terminal(console, draw) if sys.stdout.isatty() else nullcontext(on_pipe(console, draw)) as show:
            watch(read, show, interval_seconds)
    return ExitCode.DONE


def _show(reading: Sequence[str], found: Status) -> None:
    console = SafeConsole()
    height = console.height if console.is_terminal else 40
    console.print(screen(found, width=min(console.width, MOST_WIDTH), height=height), soft_wrap=True)
    if found.recent:
        show_reading(reading)


def document(found: Status) -> dict[str, Any]:
    """The status as JSON."""
    backlog = shallow(found.backlog, "is_extrapolated")
    del backlog["left_to_others"]  # only `compact` leaves manifests to others
    shown = ("word", "severity", "condition", "reason", "next_move")
    return {**shallow(found), "state": {name: getattr(found.state, name) for name in shown}, "backlog": backlog}
