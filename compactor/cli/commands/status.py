"""`compactor status`: the state of the job on one screen."""

import sys
from contextlib import nullcontext
from typing import Any

import click

from compactor.cli.destination import destination_argument
from compactor.cli.failures import ExitCode
from compactor.cli.invocation import Invocation, body, json_option, stream_option
from compactor.cli.ui.console import SafeConsole
from compactor.cli.ui.output import print_json, shallow
from compactor.cli.ui.status_screen import MOST_WIDTH, screen
from compactor.cli.ui.streams import show_statuses, stream_documents
from compactor.cli.ui.watching import as_json_lines, on_pipe, on_terminal, watch
from compactor.ops.status.values import Status
from compactor.wiring.app import App

WATCH_SECONDS = 5.0


@click.command("status")
@destination_argument
@click.option(
    "--watch",
    "interval_seconds",
    type=click.FloatRange(min=0, min_open=True),
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
    files, schema, cost, latest commits. Without --stream, one line for each of several streams.
    """
    settings = invocation.deployment()
    if settings.streams and interval_seconds is None:
        found = {each.name: App(each).status_reader.read() for each in settings.streams}
        if as_json:
            print_json(stream_documents((name, document(each)) for name, each in found.items()))
        else:
            show_statuses(found)
        return ExitCode.DONE
    reader = App(settings.require_one_stream()).status_reader
    console = SafeConsole()
    if interval_seconds is not None and as_json:
        watch(reader.read, as_json_lines(document), interval_seconds)
    elif interval_seconds is not None:
        with on_terminal(console) if sys.stdout.isatty() else nullcontext(on_pipe) as show:
            watch(reader.read, show, interval_seconds)
    elif as_json:
        print_json(document(reader.read()))
    else:
        height = console.height if console.is_terminal else 40
        console.print(screen(reader.read(), width=min(console.width, MOST_WIDTH), height=height), soft_wrap=True)
    return ExitCode.DONE


def document(found: Status) -> dict[str, Any]:
    """The status as JSON."""
    backlog = shallow(found.backlog, "is_extrapolated")
    del backlog["left_to_others"]  # only `compact` leaves manifests to others
    shown = ("word", "severity", "condition", "reason", "next_move")
    return {**shallow(found), "state": {name: getattr(found.state, name) for name in shown}, "backlog": backlog}
