"""Decides what to do about the job, from a snapshot alone. No I/O, no clock.

Never a second run: nothing is started while a run may be alive, or while it is unknown which runs are. The lock behind
that is MaxConcurrentRuns 1 of the Glue job.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from statistics import median

from compactor.control.diagnosis.alarms import alarms
from compactor.control.diagnosis.health import Condition, Finding, finding
from compactor.control.diagnosis.symptoms import START_LIMIT_SECONDS, Case
from compactor.control.snapshot import JobRun, JobState, Snapshot, Source
from compactor.core.text.formatting import shown_seconds
from compactor.ledger.backlog import WaitingManifests
from compactor.ledger.work_time import covered_seconds, work_spans
from compactor.settings.control_policy import Policy


class ActionKind(StrEnum):
    """The kind of an action."""

    START = "start"  # start a run of the job
    ASK_TO_STOP = "ask_to_stop"  # ask runs of the compactor to stop after the manifests in flight
    STOP = "stop"  # have the service stop a run, which kills it
    WAIT = "wait"  # leave the job as it is
    ALARM = "alarm"  # tell people that something is wrong
    ADVISE = "advise"  # suggest a change of size


@dataclass(frozen=True, slots=True)
class Action:
    """One thing to do."""

    kind: ActionKind
    reason: str
    targets: tuple[str, ...] = ()  # ids of the runs it is about
    # The name of the finding behind an alarm or advice, which stays as long as its cause does; else empty
    about: str = ""


MIN_COMMITS = 8  # fewer commits than this do not show a pace

MIN_WAITING = 3  # fewer waiting manifests than this do not show what arrives

LEAST_BUSY_SHARE = 0.2
LEAST_SPAN_SECONDS = 3600.0


def advice(case: Case) -> Iterator[Finding]:
    """What a person may want to change about the size of the job, by its pace over the latest commits."""
    recent, policy = case.snapshot.recent or (), case.policy
    spans = work_spans(recent)
    busy_seconds = covered_seconds(spans)
    if len(recent) < MIN_COMMITS or busy_seconds <= 0:
        return
    commit_seconds = median(each.seconds for each in recent)
    if commit_seconds > policy.sla_seconds / 2:
        takes, sla = shown_seconds(commit_seconds), shown_seconds(policy.sla_seconds)
        yield finding(Condition.SLOW_MANIFESTS, f"a manifest takes {takes}, more than half of the SLA of {sla}")
    input_bytes = sum(each.input_bytes for each in recent)
    processed = input_bytes / busy_seconds
    arriving = _arriving_bytes_per_second(input_bytes / len(recent), case.snapshot.backlog)
    if arriving is not None and arriving > processed:
        rates = f"{arriving / 1e6:,.1f} MB/s arrive and {processed / 1e6:,.1f} MB/s are processed"
        reason = f"{rates}: {arriving / processed:.1f} times the workers would keep up"
        yield finding(Condition.TOO_FEW_WORKERS, reason)
    span_seconds = (max(end for _, end in spans) - spans[0][0]).total_seconds()
    is_quiet = busy_seconds / span_seconds < LEAST_BUSY_SHARE and span_seconds >= LEAST_SPAN_SECONDS
    if is_quiet and arriving is None and policy.mode == "always":
        reason = f"the job was at work for {busy_seconds / span_seconds:.0%} of the last {shown_seconds(span_seconds)}"
        yield finding(Condition.TOO_MANY_WORKERS, reason)


def _arriving_bytes_per_second(manifest_bytes: float, backlog: WaitingManifests | None) -> float | None:
    """The stored input that arrives; None where too little waits to tell.

    Manifests are taken in order, so all that wait arrived within the age of the oldest. Their number over that age is
    the rate of arrival.
    """
    if backlog is None or backlog.manifests < MIN_WAITING or backlog.oldest_seconds <= 0:
        return None
    return manifest_bytes * backlog.manifests / backlog.oldest_seconds


_SHOWN_ERROR_CHARACTERS = 300


def decide(snapshot: Snapshot, policy: Policy, now: datetime) -> tuple[Action, ...]:
    """What to do now: one action about the job, first; then alarms and advice, each of them once."""
    case = Case(snapshot, policy, now)
    told = ((ActionKind.ALARM, alarms(case)), (ActionKind.ADVISE, advice(case)))
    others = (Action(kind, str(found), about=found.name) for kind, findings in told for found in findings)
    return (_about_the_job(case), *others)


def _about_the_job(case: Case) -> Action:
    snapshot = case.snapshot
    if snapshot.runs is None:
        why = snapshot.unknown.get(Source.RUNS, "the reason is unknown")
        return _wait(f"nothing is started or stopped, as {Source.RUNS} is unknown: {why}")
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
        reason = f"{case.standing(living[0])}, where {limit} is the limit"
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
            return Action(ActionKind.STOP, f"{asked} and still runs", (run.run_id,))
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
        return f"{policy.service} ends it at its timeout in {shown_seconds(left)}, whatever it is doing then"
    if policy.mode == "on_work" and case.is_idle(run):
        return f"there was nothing to do for {shown_seconds(policy.idle_stop_seconds)}"
    return ""


def _drain(run: JobRun, reason: str, case: Case) -> Action:
    """Ask the runs with a heartbeat to stop; a run without one would not see the request."""
    run_id, heartbeats = run.run_id, case.snapshot.heartbeats
    if heartbeats is None:
        return _wait(f"run {run_id} should stop ({reason}), but is not asked, as {Source.HEARTBEATS} are unknown")
    if living := tuple(each.run_id for each in heartbeats.living):
        return Action(ActionKind.ASK_TO_STOP, f"run {run_id} should stop: {reason}", living)
    if case.is_silent(run):
        return Action(ActionKind.STOP, f"run {run_id} should stop and sends no heartbeat: {reason}", (run_id,))
    return _wait(f"run {run_id} should stop ({reason}); it is asked to as soon as it sends a heartbeat")


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
        otherwise = f"otherwise a run is started {_in(until, case)}"
        yield f"run {latest.run_id} is {latest.state} and {policy.service} may restart it; {otherwise}"
    breaker = case.breaker()
    cooldown = timedelta(seconds=policy.breaker_cooldown_seconds)
    if breaker.opened_at and case.now < (trial := breaker.opened_at + cooldown):
        failed = f"the breaker is open, as {breaker.failures} runs failed in a row"
        otherwise = "at once after a deployment or `compactor control --close-breaker`"
        yield f"{failed}; one trial {_in(trial, case)}, or {otherwise}"
    next_start = case.next_start_at()
    if next_start and case.now < next_start and not breaker.opened_at:
        yield f"{_last_end(case)}; the next start is {_in(next_start, case)}"
    if policy.mode == "on_work":
        if snapshot.backlog is None:
            yield f"no run; {Source.MANIFESTS} could not be read, so it is unknown whether work waits"
        elif not case.is_worth_a_start:
            fewest, stuck = policy.backlog_start_manifests, len(case.begun(had_chance=True))
            no_use = f"; {stuck} more are begun, which a run had the time to finish" if stuck else ""
            yield f"no run, and {snapshot.backlog.manifests} manifests wait; a start needs {fewest}{no_use}"


def _last_end(case: Case) -> str:
    if not case.snapshot.runs:
        return "no run is on record"
    run = case.snapshot.runs[0]
    ended, lived = case.age(run.last_at), shown_seconds(run.lived_seconds(case.now))
    error = f": {' '.join(run.error.split())[:_SHOWN_ERROR_CHARACTERS]}" if run.error else ""
    return f"run {run.run_id} ended {ended} ago as {run.state}, after {lived}{error}"


def _in(moment: datetime, case: Case) -> str:
    return f"in {shown_seconds(-case.seconds_since(moment))}"


def _wait(reason: str) -> Action:
    return Action(ActionKind.WAIT, reason)
