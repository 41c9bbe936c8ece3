"""`compactor job stop`: stops running jobs after the manifests in flight."""

import time
from dataclasses import dataclass
from functools import partial

import click

from compactor.cli.invocation import Invocation, body, json_option, shard_option, stream_option
from compactor.cli.parameters import FiniteRange, destination_argument
from compactor.cli.ui.failures import ExitCode, say
from compactor.cli.ui.output import print_result
from compactor.cli.ui.terminal import echo
from compactor.core.documents.records import LIFE_SECONDS, RunHeartbeat
from compactor.ledger.heartbeat import HEARTBEAT_INTERVAL_SECONDS, Runs
from compactor.wiring.app import App

_POLL_SECONDS = 1.0


@dataclass(frozen=True, slots=True)
class Stopped:
    """The runs that were asked to stop."""

    asked: list[RunHeartbeat]  # runs that were asked to stop
    running: list[RunHeartbeat]  # runs still alive after `--wait`; empty without it


@click.command("job stop")
@destination_argument
@click.option(
    "--wait",
    "wait_seconds",
    type=FiniteRange(min=0),
    default=0,
    metavar="SECONDS",
    help="Wait up to SECONDS for them to end.",
)
@json_option(Stopped)
@stream_option
@shard_option
@body
def stop(invocation: Invocation, *, wait_seconds: float, as_json: bool, shard: str | None) -> ExitCode:
    """Stop running jobs after the manifests in flight.

    The request reaches every job on this state, on any machine, within seconds; with --shard, only that shard's job.
    The next run resumes where they stopped.

    Exit codes: 1 if a job is still running after --wait.
    """
    settings = invocation.deployment()
    if not settings.streams:
        settings.require_job()
    jobs = [App(each).runs_of_shard for each in (settings if shard is None else settings.of_shard(shard)).jobs]
    asked_of = [(runs, runs.living()) for runs in jobs]
    for runs, living in asked_of:
        for heartbeat in living:
            runs.ask_to_stop(heartbeat.run_id)
    asked = [heartbeat for _, living in asked_of for heartbeat in living]
    left = _left(asked_of, wait_seconds) if wait_seconds else []
    print_result(Stopped(asked, left), partial(_show, waited=bool(wait_seconds)), as_json=as_json)
    return ExitCode.FAILED if left else ExitCode.DONE


def _left(asked: list[tuple[Runs, list[RunHeartbeat]]], wait_seconds: float) -> list[RunHeartbeat]:
    """Wait for the runs to end; returns the ones still running at the timeout."""
    deadline = time.monotonic() + wait_seconds
    while True:
        left = [beat for runs, beats in asked for beat in _living(runs, beats)]
        if not left or time.monotonic() >= deadline:
            return left
        time.sleep(_POLL_SECONDS)


def _living(runs: Runs, beats: list[RunHeartbeat]) -> list[RunHeartbeat]:
    living = runs.living_among(beat.run_id for beat in beats)
    return [beat for beat in beats if beat.run_id in living]


def _show(stopped: Stopped, *, waited: bool) -> None:
    if not stopped.asked:
        echo("No job is running.")
    for heartbeat in stopped.asked:
        seconds = HEARTBEAT_INTERVAL_SECONDS * heartbeat.life_seconds / LIFE_SECONDS  # an idle run looks less often
        asked_to_stop = f"was asked to stop; it will see the request within {seconds:g} s"
        end = "still runs" if heartbeat in stopped.running else "has ended" if waited else asked_to_stop
        echo(f"run {heartbeat.run_id}, since {heartbeat.started_at:%Y-%m-%d %H:%M:%S} UTC: {end}")
    if stopped.running:
        say("a job finishes the manifests in flight first; run stop again, or see the job's log")
