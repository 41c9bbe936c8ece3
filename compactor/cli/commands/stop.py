"""`compactor stop`: ends running jobs after the batch they are in."""

import time

import click

from compactor.cli.failures import ExitCode, say
from compactor.cli.invocation import Invocation, body, json_option
from compactor.cli.ui.output import print_json
from compactor.core.records import RunHeartbeat
from compactor.ledger.heartbeat import HEARTBEAT_INTERVAL_SECONDS
from compactor.wiring.app import App

_POLL_SECONDS = 1.0


@click.command("stop")
@click.option(
    "--wait",
    "wait_seconds",
    type=click.FloatRange(min=0),
    default=0,
    metavar="SECONDS",
    help="Wait so long for their end.",
)
@json_option
@body
def stop(invocation: Invocation, *, wait_seconds: float, as_json: bool) -> ExitCode:
    """End running jobs after the batch in flight.

    Asks every job that works on this state, wherever it runs.

    It looks for the request every few seconds. What it leaves undone, the next run does.

    Exit codes: 1 if a job still runs after --wait.
    """
    app = App(invocation.settings())
    asked = app.runs.living()
    for beat in asked:
        app.runs.ask_to_stop(beat.run_id)
    left = _left(app, asked, wait_seconds) if wait_seconds else []
    if as_json:
        print_json({"asked": asked, "running": left})
    else:
        _show(asked, left, waited=bool(wait_seconds))
    return ExitCode.FAILED if left else ExitCode.DONE


def _left(app: App, asked: list[RunHeartbeat], wait_seconds: float) -> list[RunHeartbeat]:
    """Those that did not end in time."""
    deadline = time.monotonic() + wait_seconds
    while True:
        living = app.runs.living_among(beat.run_id for beat in asked)
        if not living or time.monotonic() >= deadline:
            return [beat for beat in asked if beat.run_id in living]
        time.sleep(_POLL_SECONDS)


def _show(asked: list[RunHeartbeat], left: list[RunHeartbeat], *, waited: bool) -> None:
    if not asked:
        click.echo("No job runs.")
    for beat in asked:
        since = f"{beat.started_at:%Y-%m-%d %H:%M:%S} UTC"
        end = (
            "still runs"
            if beat in left
            else "has ended"
            if waited
            else f"was asked to end, within {HEARTBEAT_INTERVAL_SECONDS:g} s"
        )
        click.echo(f"run {beat.run_id}, since {since}: {end}")
    if left:
        say("a batch in flight comes to its end first; ask again, or look at the job's log")
