"""`compactor job check`: one check of the control plane."""

from collections.abc import Sequence
from functools import partial

import click

from compactor.cli.invocation import Invocation, body, json_option, shard_option, stream_option
from compactor.cli.parameters import destination_argument
from compactor.cli.ui.failures import ExitCode
from compactor.cli.ui.output import Field, print_fields, print_result
from compactor.cli.ui.terminal import echo
from compactor.control.decisions import ActionKind
from compactor.control.gathering import BreakerClosed
from compactor.control.plane import Check, ControlPlane
from compactor.control.snapshot import Heartbeats, Snapshot
from compactor.core.text.formatting import count, duration
from compactor.wiring.control import control_plane

_SHOWN_RUNS = 5


@click.command("job check")
@destination_argument
@click.option("--dry-run", is_flag=True, help="Do nothing; show what the check would do.")
@click.option("--close-breaker", is_flag=True, help="Only ignore past failures, so that the job may start again.")
@json_option(Check, BreakerClosed)
@stream_option
@shard_option
@body
def check(invocation: Invocation, *, dry_run: bool, close_breaker: bool, as_json: bool, shard: str | None) -> ExitCode:
    """Run one check of the control plane now.

    Reads the runs, heartbeats, queues and backlog, decides, and starts, drains or stops the job, as the control plane
    does every minute. With several streams, checks their shared job, or that of --stream; with several jobs that share
    the manifests, that of --shard.

    Exit codes: 1 if an action failed; 3 if there is an alarm.
    """
    if dry_run and close_breaker:
        raise click.UsageError("give --dry-run or --close-breaker, not both")
    settings = invocation.deployment()
    settings.require_job()
    settings = settings.require_shard() if shard is None else settings.of_shard(shard)
    plane = control_plane(settings)
    if close_breaker:
        return _close_breaker(plane, as_json=as_json)
    checked = plane.preview() if dry_run else plane.check()
    plane.flush_metrics()
    print_result(checked, partial(_show, dry_run=dry_run), as_json=as_json)
    if checked.failed:
        return ExitCode.FAILED
    return ExitCode.NEEDS_OPERATOR if checked.alarms else ExitCode.DONE


def _close_breaker(plane: ControlPlane, *, as_json: bool) -> ExitCode:
    now = plane.clock.now()
    plane.sources.close_breaker(now)
    said = "The breaker is closed: past failures no longer count."
    print_result(BreakerClosed(closed_at=now), lambda _: echo(said), as_json=as_json)
    return ExitCode.DONE


def _show(checked: Check, *, dry_run: bool) -> None:
    print_fields(_seen(checked.snapshot))
    echo()
    would = "would " if dry_run else ""
    for action in checked.actions:
        quiet = action.kind in {ActionKind.WAIT, ActionKind.ALARM}
        echo(f"{'' if quiet else would}{action.kind.value.replace('_', ' ')}: {action.reason}")
    for words in checked.done:
        echo(f"done: {words}")
    for words in checked.failed:
        echo(f"failed: {words}")


def _seen(snapshot: Snapshot) -> list[Field]:
    queue, backlog = snapshot.queue, snapshot.backlog
    waiting = count(backlog.manifests, "manifest") if backlog else "unknown"
    if backlog and backlog.manifests:
        waiting += f", the oldest for {duration(backlog.oldest_seconds)}"
    rows: list[Field] = [("runs", _runs(snapshot)), ("heartbeats", _living(snapshot.heartbeats))]
    rows.append(("manifests", waiting))
    if queue:
        rows.append(("queue", f"{count(queue.waiting, 'message')}, {queue.in_flight:,} in flight"))
    if snapshot.queue_oldest_seconds is not None:
        rows.append(("oldest message", duration(snapshot.queue_oldest_seconds)))
    if snapshot.dead_letters is not None:
        rows.append(("dead letters", count(snapshot.dead_letters, "message")))
    return rows


def _runs(snapshot: Snapshot) -> Sequence[str]:
    if snapshot.runs is None:
        return ["unknown"]
    latest = snapshot.runs[:_SHOWN_RUNS]
    shown = [f"{run.run_id} {run.state}, requested {run.started_at:%m-%d %H:%M:%S}" for run in latest]
    return shown or ["none"]


def _living(heartbeats: Heartbeats | None) -> Sequence[str]:
    if heartbeats is None:
        return ["unknown"]
    shown = [f"{each.run_id}, last at {each.heartbeat_at:%m-%d %H:%M:%S}" for each in heartbeats.living]
    return shown or ["none"]
