"""What a person should be told of, whatever is done about it. Decisions, no I/O."""

from collections.abc import Iterator
from datetime import datetime

from compactor.control.actions import Action, ActionKind
from compactor.control.history import RunHistory
from compactor.control.runs import JobRun, JobState
from compactor.control.snapshot import Snapshot
from compactor.control.symptoms import STALL_RESTARTS, is_silent, is_stuck, runs_without_commit, waiting_work
from compactor.core.formatting import shown_seconds
from compactor.settings.control_policy import Policy


def alarms(snapshot: Snapshot, policy: Policy, now: datetime) -> tuple[Action, ...]:
    """Everything that is not as it should be, each under a word that stays as long as its cause does."""
    found = (*_of_sources(snapshot), *_of_runs(snapshot, policy, now), *_of_backlog(snapshot, policy))
    return tuple(Action(ActionKind.ALARM, reason, about=about) for about, reason in found)


def _of_sources(snapshot: Snapshot) -> Iterator[tuple[str, str]]:
    for source, why in snapshot.unknown.items():
        yield f"unknown_{source.name.lower()}", f"{source} could not be read: {why}"


def _of_runs(snapshot: Snapshot, policy: Policy, now: datetime) -> Iterator[tuple[str, str]]:
    living = snapshot.living_runs
    if snapshot.runs is not None:
        breaker = RunHistory(snapshot.runs, snapshot.breaker_closed_at, policy, now).breaker()
        if breaker.opened_at:
            every = shown_seconds(policy.breaker_cooldown_seconds)
            tried = f"{breaker.failures} runs failed in a row, so the job is tried only every {every}"
            yield "breaker_open", f"{tried}; mend the cause, then `compactor control --close-breaker`"
        if not living:
            yield from _of_foreign_runs(snapshot, policy, now)
    if len(living) > 1:
        names = ", ".join(run.run_id for run in living)
        yield "several_runs", f"runs {names} live at once; set MaxConcurrentRuns of the Glue job to 1"
    elif living:
        yield from _of_run(living[0], snapshot, policy, now)


def _of_foreign_runs(snapshot: Snapshot, policy: Policy, now: datetime) -> Iterator[tuple[str, str]]:
    latest = snapshot.runs[0] if snapshot.runs else None
    since = (now - (latest.ended_at or latest.changed_at)).total_seconds() if latest else policy.hang_seconds
    if snapshot.signs and snapshot.signs.living and since >= policy.hang_seconds:
        run = snapshot.signs.living[0]
        yield "foreign_run", f"run {run.run_id} works on this state, but Glue has no run; none is started beside it"


def _of_run(run: JobRun, snapshot: Snapshot, policy: Policy, now: datetime) -> Iterator[tuple[str, str]]:
    unchanged = (now - run.changed_at).total_seconds()
    if run.state is JobState.UNKNOWN:
        yield "unknown_state", f"run {run.run_id} is in a state that this release does not know"
    elif run.state is not JobState.RUNNING:
        limit = policy.drain_seconds if run.state is JobState.STOPPING else policy.start_grace_seconds
        if unchanged >= limit:
            yield "state_lasts", f"run {run.run_id} is {run.state} for {shown_seconds(unchanged)}; see Glue's console"
    elif is_silent(run, snapshot, policy, now):
        work = waiting_work(snapshot) or "no manifest waits, as far as is known"
        yield "no_sign_of_life", f"run {run.run_id} is RUNNING and gives no sign of life; {work}"
    elif is_stuck(run, snapshot, policy, now):
        vain = runs_without_commit(snapshot)
        more = "" if vain <= STALL_RESTARTS else f"; {vain} runs in a row did no better, so it is not restarted again"
        yield "no_progress", f"run {run.run_id} has committed nothing while {waiting_work(snapshot)}{more}"


def _of_backlog(snapshot: Snapshot, policy: Policy) -> Iterator[tuple[str, str]]:
    sla = shown_seconds(policy.sla_seconds)
    if snapshot.dead_letters:
        yield "dead_letters", f"{snapshot.dead_letters} messages are in the dead-letter queue: nobody could read them"
    if snapshot.queue_oldest_seconds is not None and snapshot.queue_oldest_seconds > policy.sla_seconds:
        age = shown_seconds(snapshot.queue_oldest_seconds)
        yield "queue_late", f"the oldest event waits in the queue for {age}, longer than {sla}; see the builder's log"
    if snapshot.backlog is not None and snapshot.backlog.oldest_seconds > policy.sla_seconds:
        yield "manifests_late", f"{waiting_work(snapshot)}, longer than {sla}"
