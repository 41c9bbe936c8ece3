"""Decides what to do about the job, based only on a snapshot. No I/O, no clock.

Never start a second run: nothing is started while a run may be alive, or while the runs are unknown. The final guard is
MaxConcurrentRuns 1 of the Glue job.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum

from compactor.control.diagnosis.alarms import alarms
from compactor.control.diagnosis.symptoms import START_LIMIT_SECONDS, Case
from compactor.control.snapshot import JobRun, JobState, Snapshot, Source
from compactor.core.text.formatting import shown_seconds
from compactor.settings.control_policy import Policy


class ActionKind(StrEnum):
    """The kind of an action."""

    START = "start"  # start a run of the job
    ASK_TO_STOP = "ask_to_stop"  # ask the compactor's runs to stop after the manifests in flight
    STOP = "stop"  # have the service stop a run, which kills it
    WAIT = "wait"  # leave the job as it is
    ALARM = "alarm"  # notify operators of a problem


@dataclass(frozen=True, slots=True)
class Action:
    """One thing to do."""

    kind: ActionKind
    reason: str
    targets: tuple[str, ...] = ()  # ids of the affected runs
    about: str = ""  # the finding behind an alarm, constant while its cause lasts; else empty


_SHOWN_ERROR_CHARACTERS = 300


def decide(snapshot: Snapshot, policy: Policy, now: datetime) -> tuple[Action, ...]:
    """What to do now: first one action for the job, then one alarm per finding."""
    case = Case(snapshot, policy, now)
    return (_about_the_job(case), *(Action(ActionKind.ALARM, str(each), about=each.name) for each in alarms(case)))


def _about_the_job(case: Case) -> Action:
    snapshot = case.snapshot
    if snapshot.runs is None:
        why = snapshot.unknown.get(Source.RUNS, "the reason is unknown")
        return _wait(f"nothing is started or stopped, because {Source.RUNS} is unknown: {why}")
    living = snapshot.living_runs
    if not living:
        return _about_no_run(case)
    if len(living) > 1:
        names = ", ".join(run.run_id for run in living)
        return _wait(f"{len(living)} runs are alive at once ({names}); an operator has to decide which one to stop")
    if living[0].state is JobState.RUNNING:
        return _about_a_running(living[0], case)
    if case.never_starts(living[0]):
        limit = shown_seconds(START_LIMIT_SECONDS[living[0].state])
        reason = f"{case.standing(living[0])}; the limit is {limit}"
        return Action(ActionKind.STOP, reason, (living[0].run_id,))
    return _wait(case.standing(living[0]))


def _about_a_running(run: JobRun, case: Case) -> Action:
    """Decide about a run that works, hangs, stalls, is idle, or was asked to stop."""
    if case.is_silent(run) and case.work:
        reason = f"{case.standing(run)}, and sends no heartbeat while {case.work}"
        return Action(ActionKind.STOP, reason, (run.run_id,))
    living = case.snapshot.heartbeats.living if case.snapshot.heartbeats else ()
    asked_at = min((each.asked_to_stop_at for each in living if each.asked_to_stop_at), default=None)
    if asked_at is not None:
        asked = f"run {run.run_id} was asked to stop {case.age(asked_at)} ago"
        if case.seconds_since(asked_at) >= case.policy.drain_seconds:
            return Action(ActionKind.STOP, f"{asked} and is still running", (run.run_id,))
        return _wait(f"{asked}; it finishes the manifests in flight first")
    if reason := _reason_to_drain(run, case):
        return _drain(run, reason, case)
    return _wait(case.standing(run))


def _reason_to_drain(run: JobRun, case: Case) -> str:
    policy = case.policy
    if policy.mode == "never":
        return 'control.mode is "never"'
    if case.is_stalled(run):
        return f"nothing was committed for {shown_seconds(policy.stall_seconds)} while {case.work}"
    if left := case.seconds_until_timeout(run):
        return f"{policy.service} ends it at its timeout in {shown_seconds(left)}, even in the middle of its work"
    if policy.mode == "on_work" and case.is_idle(run):
        return f"there was nothing to do for {shown_seconds(policy.idle_stop_seconds)}"
    return ""


def _drain(run: JobRun, reason: str, case: Case) -> Action:
    """Ask the runs with a heartbeat to stop; a run without one would not see the request."""
    run_id, heartbeats = run.run_id, case.snapshot.heartbeats
    if heartbeats is None:
        return _wait(f"run {run_id} should stop ({reason}), but is not asked, because {Source.HEARTBEATS} are unknown")
    if living := tuple(each.run_id for each in heartbeats.living):
        return Action(ActionKind.ASK_TO_STOP, f"run {run_id} should stop: {reason}", living)
    if case.is_silent(run):
        return Action(ActionKind.STOP, f"run {run_id} should stop and sends no heartbeat: {reason}", (run_id,))
    return _wait(f"run {run_id} should stop ({reason}); it is asked once it sends a heartbeat")


def _about_no_run(case: Case) -> Action:
    if reason := next(_reasons_not_to_start(case), ""):
        return _wait(reason)
    last = _last_end(case)
    if opened_at := case.breaker().opened_at:
        return Action(ActionKind.START, f"one trial, {case.age(opened_at)} after the breaker opened: {last}")
    return Action(ActionKind.START, last)


def _reasons_not_to_start(case: Case) -> Iterator[str]:
    snapshot, policy = case.snapshot, case.policy
    if policy.mode == "never":
        yield 'no run, and control.mode is "never"'
    for each in snapshot.heartbeats.living if snapshot.heartbeats else ():
        age = case.age(each.heartbeat_at)
        yield f"{policy.service} has no run, but run {each.run_id} of the compactor sent a heartbeat {age} ago"
    latest = snapshot.runs[0] if snapshot.runs else None
    if latest and (until := case.awaits_restart_until(latest)):
        otherwise = f"otherwise a run starts {_in(until, case)}"
        yield f"run {latest.run_id} is {latest.state} and {policy.service} may restart it; {otherwise}"
    breaker = case.breaker()
    cooldown = timedelta(seconds=policy.breaker_cooldown_seconds)
    if breaker.opened_at and case.now < (trial := breaker.opened_at + cooldown):
        failed = f"the breaker is open, because {breaker.failures} runs failed in a row"
        otherwise = "at once after a deployment or `compactor job check --close-breaker`"
        yield f"{failed}; one trial {_in(trial, case)}, or {otherwise}; {_last_end(case)}"
    next_start = case.next_start_at()
    if next_start and case.now < next_start and not breaker.opened_at:
        yield f"{_last_end(case)}; the next start is {_in(next_start, case)}"
    if policy.mode == "on_work":
        if snapshot.backlog is None:
            yield f"no run; {Source.MANIFESTS} could not be read, so it is unknown whether work waits"
        elif not case.is_worth_a_start:
            stuck = len(case.begun(had_chance=True))
            no_use = f"; {stuck} are unfinished although a run had time for them" if stuck else ""
            yield f"no run, and no manifest waits{no_use}"


def _last_end(case: Case) -> str:
    if not case.snapshot.runs:
        return "no run on record"
    run = case.snapshot.runs[0]
    ended, lived = case.age(run.last_at), shown_seconds(run.lived_seconds(case.now))
    error = f": {' '.join(run.error.split())[:_SHOWN_ERROR_CHARACTERS]}" if run.error else ""
    return f"run {run.run_id} ended {ended} ago as {run.state}, after {lived}{error}"


def _in(moment: datetime, case: Case) -> str:
    return f"in {shown_seconds(-case.seconds_since(moment))}"


def _wait(reason: str) -> Action:
    return Action(ActionKind.WAIT, reason)
