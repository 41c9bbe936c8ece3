"""Finds what people should be told of, whatever is done about it. Decisions, no I/O."""

from collections.abc import Iterator
from datetime import datetime

from compactor.control.health import Condition, Finding, columns_nearly_full, finding, is_late, waiting_work
from compactor.control.history import RunHistory
from compactor.control.runs import JobRun, JobState
from compactor.control.snapshot import Snapshot
from compactor.control.symptoms import STALL_RESTARTS, is_silent, is_stuck, runs_without_commit
from compactor.core.formatting import count, shown_seconds
from compactor.schema.schema import ColumnsUsed
from compactor.settings.control_policy import Policy


def alarms(snapshot: Snapshot, policy: Policy, now: datetime) -> Iterator[Finding]:
    """Every condition that people should know of."""
    for source, why in snapshot.unknown.items():
        yield finding(Condition.UNKNOWN, f"{source} could not be read: {why.rstrip('.')}", subject=source.name.lower())
    yield from _of_runs(snapshot, policy, now)
    yield from _of_backlog(snapshot, policy)
    for latest in (snapshot.recent or ())[-1:]:
        yield from columns_nearly_full(ColumnsUsed(latest.columns, latest.max_columns))


def _of_runs(snapshot: Snapshot, policy: Policy, now: datetime) -> Iterator[Finding]:
    living = snapshot.living_runs
    if snapshot.runs is not None:
        closed_at = snapshot.breaker_closed_at
        history = RunHistory(runs=snapshot.runs, breaker_closed_at=closed_at, policy=policy, now=now)
        breaker = history.breaker()
        if breaker.opened_at:
            every = shown_seconds(policy.breaker_cooldown_seconds)
            failed = f"{breaker.failures} runs failed in a row, so only one run is tried every {every}"
            yield finding(Condition.CRASH_LOOP, failed)
        if not living:
            yield from _of_foreign_runs(snapshot, policy, now)
    if len(living) > 1:
        names = ", ".join(run.run_id for run in living)
        yield finding(Condition.SEVERAL_RUNS, f"runs {names} are alive at once")
    elif living:
        yield from _of_run(living[0], snapshot, policy, now)


def _of_foreign_runs(snapshot: Snapshot, policy: Policy, now: datetime) -> Iterator[Finding]:
    latest = snapshot.runs[0] if snapshot.runs else None
    since = (now - (latest.ended_at or latest.changed_at)).total_seconds() if latest else policy.hang_seconds
    if snapshot.heartbeats and snapshot.heartbeats.living and since >= policy.hang_seconds:
        run = snapshot.heartbeats.living[0]
        works = f"run {run.run_id} works on this state, but Glue has no run; none is started beside it"
        yield finding(Condition.FOREIGN_RUN, works)


def _of_run(run: JobRun, snapshot: Snapshot, policy: Policy, now: datetime) -> Iterator[Finding]:
    unchanged = (now - run.changed_at).total_seconds()
    if run.state is JobState.UNKNOWN:
        yield finding(Condition.UNKNOWN_STATE, f"run {run.run_id} is in a state that this release does not know")
    elif run.state is not JobState.RUNNING:
        limit = policy.drain_seconds if run.state is JobState.STOPPING else policy.start_grace_seconds
        if unchanged >= limit:
            lasts = f"run {run.run_id} has been {run.state} for {shown_seconds(unchanged)}"
            yield finding(Condition.STATE_LASTS, lasts)
    elif is_silent(run, snapshot, policy, now):
        work = waiting_work(snapshot.backlog) or "no manifest is known to wait"
        yield finding(Condition.NO_HEARTBEAT, f"run {run.run_id} is RUNNING and sends no heartbeat; {work}")
    elif is_stuck(run, snapshot, policy, now):
        vain = runs_without_commit(snapshot)
        more = "" if vain <= STALL_RESTARTS else f"; {vain} runs in a row did no better, so it is not restarted again"
        reason = f"run {run.run_id} has committed nothing while {waiting_work(snapshot.backlog)}{more}"
        yield finding(Condition.NO_PROGRESS, reason)


def _of_backlog(snapshot: Snapshot, policy: Policy) -> Iterator[Finding]:
    sla = shown_seconds(policy.sla_seconds)
    if letters := snapshot.dead_letters:
        are = f"{count(letters, 'S3 event')} {'is' if letters == 1 else 'are'} in the dead-letter queue"
        yield finding(Condition.EVENTS_DEAD_LETTERED, are)
    if snapshot.queue_oldest_seconds is not None and snapshot.queue_oldest_seconds > policy.sla_seconds:
        age = shown_seconds(snapshot.queue_oldest_seconds)
        yield finding(Condition.QUEUE_AGE, f"the oldest event has waited in the queue for {age}; the SLA is {sla}")
    if snapshot.backlog is not None and is_late(snapshot.backlog, policy.sla_seconds):
        yield finding(Condition.OLDEST_MANIFEST, f"{waiting_work(snapshot.backlog)}; the SLA is {sla}")
