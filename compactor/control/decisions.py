"""Decides what to do about the job, from a snapshot alone. No I/O, no clock.

Never a second run: nothing is started while a run may be alive, or while it is unknown which runs are. The lock behind
that is MaxConcurrentRuns 1 of the Glue job.
"""

from collections.abc import Iterator
from datetime import datetime, timedelta

from compactor.control.actions import Action, ActionKind
from compactor.control.advice import advice
from compactor.control.alarms import alarms
from compactor.control.health import waiting_work
from compactor.control.history import RunHistory
from compactor.control.runs import JobRun, JobState
from compactor.control.snapshot import Snapshot, Source
from compactor.control.symptoms import is_idle, is_silent, is_stalled, is_worth_a_start
from compactor.core.formatting import shown_seconds
from compactor.settings.control_policy import Policy

_SHOWN_ERROR_CHARACTERS = 300


def decide(snapshot: Snapshot, policy: Policy, now: datetime) -> tuple[Action, ...]:
    """What to do now: one action about the job, first; then alarms and advice, each of them once."""
    told = (
        *((ActionKind.ALARM, found) for found in alarms(snapshot, policy, now)),
        *((ActionKind.ADVISE, found) for found in advice(snapshot, policy)),
    )
    others = (Action(kind, str(found), about=found.name) for kind, found in told)
    return (_about_the_job(snapshot, policy, now), *others)


def _about_the_job(snapshot: Snapshot, policy: Policy, now: datetime) -> Action:
    if snapshot.runs is None:
        why = snapshot.unknown.get(Source.GLUE, "the reason is unknown")
        return _wait(f"nothing is started or stopped, as {Source.GLUE} is unknown: {why}")
    living = snapshot.living_runs
    if not living:
        return _about_no_run(snapshot, policy, now)
    if len(living) > 1:
        names = ", ".join(run.run_id for run in living)
        return _wait(f"{len(living)} runs are alive at once ({names}); an operator has to decide which one to stop")
    if living[0].state is JobState.RUNNING:
        return _about_a_running(living[0], snapshot, policy, now)
    state, age = living[0].state, shown_seconds((now - living[0].changed_at).total_seconds())
    return _wait(f"run {living[0].run_id} has been {state} for {age}")


def _about_a_running(run: JobRun, snapshot: Snapshot, policy: Policy, now: datetime) -> Action:
    """Decide about a run that works, hangs, stalls, is idle, or was asked to stop."""
    up = shown_seconds(run.lived_seconds(now))
    if is_silent(run, snapshot, policy, now) and (work := waiting_work(snapshot.backlog)):
        reason = f"run {run.run_id} has been RUNNING for {up} and sends no heartbeat while {work}"
        return Action(ActionKind.STOP, reason, (run.run_id,))
    asked = _asked_longest_ago(snapshot, now)
    if asked is not None:
        seconds = shown_seconds(asked)
        if asked >= policy.drain_seconds:
            reason = f"run {run.run_id} was asked to stop {seconds} ago and still runs"
            return Action(ActionKind.STOP, reason, (run.run_id,))
        return _wait(f"run {run.run_id} was asked to stop {seconds} ago; it finishes the batch in flight first")
    if reason := _reason_to_drain(run, snapshot, policy, now):
        return _drain(run, reason, snapshot, policy, now)
    return _wait(f"run {run.run_id} has been RUNNING for {up}")


def _reason_to_drain(run: JobRun, snapshot: Snapshot, policy: Policy, now: datetime) -> str:
    if policy.mode == "never":
        return 'control.mode is "never"'
    if is_stalled(run, snapshot, policy, now):
        return f"nothing was committed for {shown_seconds(policy.stall_seconds)} while {waiting_work(snapshot.backlog)}"
    if policy.mode == "on_work" and is_idle(run, snapshot, policy, now):
        return f"there was nothing to do for {shown_seconds(policy.idle_stop_seconds)}"
    return ""


def _drain(run: JobRun, reason: str, snapshot: Snapshot, policy: Policy, now: datetime) -> Action:
    """Ask the runs with a heartbeat to stop; a run without one would not see the request."""
    run_id = run.run_id
    if snapshot.heartbeats is None:
        return _wait(f"run {run_id} should stop ({reason}), but is not asked, as {Source.HEARTBEATS} are unknown")
    if living := tuple(each.run_id for each in snapshot.heartbeats.living):
        return Action(ActionKind.ASK_TO_STOP, f"run {run_id} should stop: {reason}", living)
    if is_silent(run, snapshot, policy, now):
        return Action(ActionKind.STOP, f"run {run_id} should stop and sends no heartbeat: {reason}", (run_id,))
    return _wait(f"run {run_id} should stop ({reason}); it is asked to as soon as it sends a heartbeat")


def _about_no_run(snapshot: Snapshot, policy: Policy, now: datetime) -> Action:
    history = RunHistory(snapshot, policy, now)
    if reason := next(_reasons_not_to_start(snapshot, history, policy, now), ""):
        return _wait(reason)
    last = _last_end(snapshot, now)
    if opened_at := history.breaker().opened_at:
        since = shown_seconds((now - opened_at).total_seconds())
        return Action(ActionKind.START, f"one trial, {since} after the breaker opened: {last}")
    return Action(ActionKind.START, last)


def _reasons_not_to_start(snapshot: Snapshot, history: RunHistory, policy: Policy, now: datetime) -> Iterator[str]:
    if policy.mode == "never":
        yield 'no run, and control.mode is "never"'
    for each in snapshot.heartbeats.living if snapshot.heartbeats else ():
        age = shown_seconds((now - each.heartbeat_at).total_seconds())
        yield f"Glue has no run, but run {each.run_id} of the compactor sent a heartbeat {age} ago"
    latest = snapshot.runs[0] if snapshot.runs else None
    if latest and (until := history.awaits_restart_until(latest)):
        otherwise = f"otherwise a run is started {_in(until, now)}"
        yield f"run {latest.run_id} is {latest.state} and Glue may restart it; {otherwise}"
    breaker = history.breaker()
    cooldown = timedelta(seconds=policy.breaker_cooldown_seconds)
    if breaker.opened_at and now < (trial := breaker.opened_at + cooldown):
        yield (
            f"the breaker is open, as {breaker.failures} runs failed in a row; one trial {_in(trial, now)}, or at once "
            "after `compactor control --close-breaker`"
        )
    next_start = history.next_start_at()
    if next_start and now < next_start and not breaker.opened_at:
        yield f"{_last_end(snapshot, now)}; the next start is {_in(next_start, now)}"
    if policy.mode == "on_work":
        if snapshot.backlog is None:
            yield f"no run; {Source.MANIFESTS} could not be read, so it is unknown whether work waits"
        elif not is_worth_a_start(snapshot.backlog, policy):
            fewest = policy.backlog_start_manifests
            yield f"no run, and {snapshot.backlog.manifests} manifests wait; a start needs {fewest}"


def _last_end(snapshot: Snapshot, now: datetime) -> str:
    if not snapshot.runs:
        return "no run is on record"
    run = snapshot.runs[0]
    ended = shown_seconds((now - (run.ended_at or run.changed_at)).total_seconds())
    error = f": {' '.join(run.error.split())[:_SHOWN_ERROR_CHARACTERS]}" if run.error else ""
    return f"run {run.run_id} ended {ended} ago as {run.state}, after {shown_seconds(run.lived_seconds(now))}{error}"


def _asked_longest_ago(snapshot: Snapshot, now: datetime) -> float | None:
    """How many seconds ago the first of the living runs was asked to stop; None if none was."""
    living = snapshot.heartbeats.living if snapshot.heartbeats else ()
    return max(
        ((now - each.asked_to_stop_at).total_seconds() for each in living if each.asked_to_stop_at), default=None
    )


def _in(moment: datetime, now: datetime) -> str:
    return f"in {shown_seconds((moment - now).total_seconds())}"


def _wait(reason: str) -> Action:
    return Action(ActionKind.WAIT, reason)
