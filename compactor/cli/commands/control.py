"""`compactor control`: one look at the job, as the control plane takes it every minute."""

from typing import Any

import click

from compactor.cli.failures import ExitCode
from compactor.cli.invocation import Invocation, body, json_option
from compactor.cli.ui.output import print_fields, print_json, shallow
from compactor.control.actions import ActionKind
from compactor.control.plane import Step
from compactor.control.snapshot import Snapshot
from compactor.core.formatting import count, duration
from compactor.core.ports import FLUSH_SECONDS
from compactor.wiring.control import ControlComponents

_SHOWN_RUNS = 5


@click.command("control")
@click.option("--dry-run", is_flag=True, help="Show what is seen and what would be done, and do nothing.")
@click.option("--close-breaker", is_flag=True, help="Have the failures up to now count no more, and do nothing else.")
@json_option
@body
def control(invocation: Invocation, *, dry_run: bool, close_breaker: bool, as_json: bool) -> ExitCode:
    """Keep the Glue job as the settings want it.

    Looks at Glue's runs, signs of life, queues and backlog, decides, and starts, drains or stops the job, as the
    control plane does every minute.

    Exit codes: 1 if something could not be done; 3 if something is wrong that a person should know of.
    """
    if dry_run and close_breaker:
        raise click.UsageError("--dry-run and --close-breaker exclude each other")
    parts = ControlComponents(invocation.settings())
    if close_breaker:
        return _close_breaker(parts, as_json=as_json)
    step = parts.plane.look() if dry_run else parts.plane.step()
    parts.metrics.flush(FLUSH_SECONDS)
    if as_json:
        print_json(_document(step))
    else:
        _show(step, dry_run=dry_run)
    if step.failed:
        return ExitCode.FAILED
    return ExitCode.NEEDS_OPERATOR if step.alarms else ExitCode.DONE


def _close_breaker(parts: ControlComponents, *, as_json: bool) -> ExitCode:
    now = parts.clock.now()
    parts.sources.close_breaker(now)
    if as_json:
        print_json({"closed_at": now})
    else:
        click.echo("The breaker is closed: failures up to now count no more.")
    return ExitCode.DONE


def _document(step: Step) -> dict[str, Any]:
    return {
        "snapshot": {
            **shallow(step.snapshot),
            "unknown": {str(key): why for key, why in step.snapshot.unknown.items()},
        },
        "actions": [shallow(action) for action in step.actions],
        "done": list(step.done),
        "failed": list(step.failed),
    }


def _show(step: Step, *, dry_run: bool) -> None:
    print_fields(_seen(step.snapshot))
    click.echo()
    would = "would " if dry_run else ""
    for action in step.actions:
        quiet = action.kind in {ActionKind.WAIT, ActionKind.ALARM, ActionKind.ADVISE}
        click.echo(f"{'' if quiet else would}{action.kind.value.replace('_', ' ')}: {action.reason}")
    for words in step.done:
        click.echo(f"done: {words}")
    for words in step.failed:
        click.echo(f"failed: {words}")


def _seen(snapshot: Snapshot) -> list[tuple[str, str]]:
    signs, queue, backlog = snapshot.signs, snapshot.queue, snapshot.backlog
    runs = [f"{run.run_id} {run.state}, since {run.started_at:%m-%d %H:%M:%S}" for run in snapshot.runs or ()]
    alive = [f"{each.run_id}, last at {each.heartbeat_at:%m-%d %H:%M:%S}" for each in signs.living] if signs else []
    waiting = count(backlog.manifests, "manifest") if backlog else "unknown"
    if backlog and backlog.manifests:
        waiting += f", the oldest for {duration(backlog.oldest_seconds)}"
    rows = [
        ("Glue's runs", "unknown" if snapshot.runs is None else "\n".join(runs[:_SHOWN_RUNS]) or "none"),
        ("signs of life", "unknown" if signs is None else "\n".join(alive) or "none"),
        ("manifests", waiting),
    ]
    if queue:
        rows.append(("queue", f"{count(queue.waiting, 'message')}, {queue.in_flight:,} in flight"))
    if snapshot.queue_oldest_seconds is not None:
        rows.append(("oldest message", duration(snapshot.queue_oldest_seconds)))
    if snapshot.dead_letters is not None:
        rows.append(("dead letters", count(snapshot.dead_letters, "message")))
    return rows
