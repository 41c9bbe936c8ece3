"""`compactor status`: the state of the job on one screen."""

import sys
from typing import Any

import click

from compactor.cli.failures import ExitCode
from compactor.cli.invocation import Invocation, body, json_option
from compactor.cli.ui.console import SafeConsole
from compactor.cli.ui.output import print_json, shallow
from compactor.cli.ui.status_screen import MOST_WIDTH, screen
from compactor.cli.ui.watching import JsonWatch, LiveWatch, PlainWatch, watch
from compactor.ops.status.values import Status
from compactor.wiring.app import App

WATCH_SECONDS = 5.0


@click.command("status")
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
@body
def status(invocation: Invocation, *, interval_seconds: float | None, as_json: bool) -> ExitCode:
    """Show the state of the job and the next action.

    One screen: state, jobs, backlog and when it will be empty, rates, latency, rejects, dead letters, quarantined
    files, schema, cost, latest commits.
    """
    reader = App(invocation.settings()).status_reader
    if interval_seconds is not None:
        shown = JsonWatch(document) if as_json else LiveWatch() if sys.stdout.isatty() else PlainWatch()
        watch(reader.read, shown, interval_seconds)
    elif as_json:
        print_json(document(reader.read()))
    else:
        console = SafeConsole()
        height = console.height if console.is_terminal else 40
        console.print(screen(reader.read(), width=min(console.width, MOST_WIDTH), height=height), soft_wrap=True)
    return ExitCode.DONE


def document(found: Status) -> dict[str, Any]:
    """The status as JSON."""
    backlog = shallow(found.backlog, "is_extrapolated")
    del backlog["left_to_others"]  # only `compact` leaves manifests to others
    shown = ("word", "severity", "condition", "reason", "next_move")
    return {**shallow(found), "state": {name: getattr(found.state, name) for name in shown}, "backlog": backlog}
