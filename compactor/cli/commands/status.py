"""`compactor status`: how the job stands, on one screen."""

import sys
from typing import Any

import click
from rich.console import Console

from compactor.cli.failures import ExitCode
from compactor.cli.invocation import Invocation, body, json_option
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
    help=f"Look again every so many seconds, else every {WATCH_SECONDS:g}, until Ctrl-C.",
)
@json_option
@body
def status(invocation: Invocation, *, interval_seconds: float | None, as_json: bool) -> ExitCode:
    """Show how the job stands and what to do next.

    One screen: state, jobs, backlog and when it is drained, rates, latency, rejects, dead letters, files set aside,
    schema, cost, latest commits.
    """
    reader = App(invocation.settings()).status_reader
    if interval_seconds is not None:
        seen = JsonWatch(document) if as_json else LiveWatch() if sys.stdout.isatty() else PlainWatch()
        watch(reader.read, seen, interval_seconds)
    elif as_json:
        print_json(document(reader.read()))
    else:
        console = Console(highlight=False)
        height = console.height if console.is_terminal else 40
        console.print(screen(reader.read(), width=min(console.width, MOST_WIDTH), height=height), soft_wrap=True)
    return ExitCode.DONE


def document(found: Status) -> dict[str, Any]:
    """The status as JSON."""
    backlog, cost = found.backlog, found.cost
    return {
        **shallow(found),
        "state": shallow(found.state),
        "runs": [shallow(run) for run in found.runs],
        "backlog": {**shallow(backlog), "is_extrapolated": backlog.is_extrapolated},
        "rates": shallow(found.rates),
        "drain": shallow(found.drain),
        "latency": None if found.latency is None else shallow(found.latency),
        "rejects": shallow(found.rejects),
        "dead_letters": shallow(found.dead_letters),
        "quarantined_files": shallow(found.quarantined_files),
        "schema": shallow(found.schema),
        "cost": {**shallow(cost), "job": None if cost.job is None else shallow(cost.job)},
    }
