"""Decides what to do about the job, from a snapshot alone. No I/O, no clock.

Never a second run: nothing is started while any run may live, or while it is not known which do. MaxConcurrentRuns 1
of the Glue job is the lock behind that.
"""

from collections.abc import Iterator
from datetime import datetime, timedelta

from compactor.control.actions import Action, ActionKind
from compactor.control.advice import advice
from compactor.control.alarms import alarms
from compactor.control.history import RunHistory
from compactor.control.runs import JobRun, JobState
from compactor.control.snapshot import Snapshot, Source
from compactor.control.symptoms import is_idle, is_silent, is_stalled, is_worth_a_start, waiting_work
from compactor.core.formatting import shown_seconds
from compactor.settings.control_policy import Policy

_SHOWN_ERROR_CHARACTERS = 300


def decide(snapshot: Snapshot, policy: Policy, now: datetime) -> tuple[Action, ...]:
    """What to do now.

    Args:
        snapshot: Everything that is known.
        policy: What to go by.
        now: The time, in UTC.

    Returns:
        One action about the job, first; then alarms and advice, none of them twice.
    """
    job = _about_the_job(snapshot, policy, now)
    return (job, *alarms(snapshot, policy, now), *advice(snapshot, policy))


def _about_the_job(snapshot: Snapshot, policy: Policy, now: datetime) -> Action:
    if snapshot.runs is None:
        return _wait(f"nothing is started or stopped, as {Source.GLUE} are not known: {_why(snapshot, Source.GLUE)}")
    living = snapshot.living_runs
    if not living:
        return _about_no_run(snapshot, policy, now)
    if len(living) > 1:
        names = ", ".join(run.run_id for run in living)
        return _wait(f"{len(living)} runs live at once ({names}); which of them is to end is for a person to say")
    if living[0].state is JobState.RUNNING:
        return _about_a_running(living[0], snapshot, policy, now)
    state, age = living[0].state, shown_seconds((now - living[0].changed_at).total_seconds())
    return _wait(f"run {living[0].run_id} is {state} for {age}")


def _about_a_running(run: JobRun, snapshot: Snapshot, policy: Policy, now: datetime) -> Action:
    """A run that works, hangs, stalls, is idle, or was asked to end."""
    up = shown_seconds(run.lived_seconds(now))
    if is_silent(run, snapshot, policy, now) and waiting_work(snapshot):
        reason = f"run {run.run_id} is RUNNING for {up} and gives no sign of life while {waiting_work(snapshot)}"
        return Action(ActionKind.STOP, reason, (run.run_id,))
    asked = _asked_longest_ago(snapshot, now)
    if asked is not None:
        seconds = shown_seconds(asked)
        if asked >= policy.drain_seconds:
            reason = f"run {run.run_id} was asked to end {seconds} ago and still runs"
            return Action(ActionKind.STOP, reason, (run.run_id,))
        return _wait(f"run {run.run_id} was asked to end {seconds} ago; a batch in flight comes to its end first")
    if reason := _reason_to_drain(run, snapshot, policy, now):
        return _drain(run, reason, snapshot, policy, now)
    return _wait(f"run {run.run_id} is RUNNING for {up}")


def _reason_to_drain(run: JobRun, snapshot: Snapshot, policy: Policy, now: datetime) -> str:
    if policy.mode == "never":
        return 'control.mode is "never"'
    if is_stalled(run, snapshot, policy, now):
        return f"nothing was committed for {shown_seconds(policy.stall_seconds)} while {waiting_work(snapshot)}"
    if policy.mode == "on_work" and is_idle(run, snapshot, policy, now):
        return f"there was nothing to do for {shown_seconds(policy.idle_stop_seconds)}"
    return ""


def _drain(run: JobRun, reason: str, snapshot: Snapshot, policy: Policy, now: datetime) -> Action:
    """Ask those who listen; where nobody gives a sign of life, nobody would hear."""
    if snapshot.signs is None:
        return _wait(f"run {run.run_id} should end ({reason}), but {Source.SIGNS} are not known, so nobody is asked")
    if living := tuple(each.run_id for each in snapshot.signs.living):
        return Action(ActionKind.ASK_TO_STOP, f"run {run.run_id} is to end: {reason}", living)
    if is_silent(run, snapshot, policy, now):
        return Action(ActionKind.STOP, f"run {run.run_id} is to end and gives no sign of life: {reason}", (run.run_id,))
    return _wait(f"run {run.run_id} is to end ({reason}) once it gives a sign of life")


def _about_no_run(snapshot: Snapshot, policy: Policy, now: datetime) -> Action:
    history = RunHistory(snapshot.runs or (), snapshot.breaker_closed_at, policy, now)
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
    for each in snapshot.signs.living if snapshot.signs else ():
        age = shown_seconds((now - each.heartbeat_at).total_seconds())
        yield f"Glue has no run, but run {each.run_id} of the compactor gave a sign of life {age} ago"
    latest = snapshot.runs[0] if snapshot.runs else None
    if latest and (until := history.awaits_restart_until(latest)):
        otherwise = f"else a run is started {_in(until, now)}"
        yield f"run {latest.run_id} is {latest.state}; Glue may restart it by itself, {otherwise}"
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
            yield f"no run; {Source.MANIFESTS} is not known, so nobody knows of work"
        elif not is_worth_a_start(snapshot.backlog, policy):
            fewest = policy.backlog_start_manifests
            yield f"no run, and {snapshot.backlog.manifests} manifests wait, of {fewest} that are worth a start"


def _last_end(snapshot: Snapshot, now: datetime) -> str:
    if not snapshot.runs:
        return "no run is on record"
    run = snapshot.runs[0]
    ended = shown_seconds((now - (run.ended_at or run.changed_at)).total_seconds())
    error = f": {' '.join(run.error.split())[:_SHOWN_ERROR_CHARACTERS]}" if run.error else ""
    return f"run {run.run_id} ended {ended} ago as {run.state}, after {shown_seconds(run.lived_seconds(now))}{error}"


def _asked_longest_ago(snapshot: Snapshot, now: datetime) -> float | None:
    """How many seconds ago the first of the living runs was asked to end; None if none was."""
    living = snapshot.signs.living if snapshot.signs else ()
    return max(((now - each.asked_at).total_seconds() for each in living if each.asked_at), default=None)


def _why(snapshot: Snapshot, source: Source) -> str:
    return snapshot.unknown.get(source, "no reason is known")


def _in(moment: datetime, now: datetime) -> str:
    return f"in {shown_seconds((moment - now).total_seconds())}"


def _wait(reason: str) -> Action:
    return Action(ActionKind.WAIT, reason)
