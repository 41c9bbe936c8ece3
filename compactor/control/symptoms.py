"""Tells from a snapshot whether a run is silent, stuck or idle. Decisions, no I/O; what is unknown is no symptom."""

from datetime import datetime

from compactor.control.health import lacks_progress
from compactor.control.runs import JobRun
from compactor.control.snapshot import Snapshot, Source
from compactor.ledger.backlog import Backlog
from compactor.settings.control_policy import Policy

STALL_RESTARTS = 2
"""Restarts without one commit after which a stall is left to a person: another restart would not help."""


def is_silent(run: JobRun, snapshot: Snapshot, policy: Policy, now: datetime) -> bool:
    """Whether a run that should send heartbeats has sent none for too long."""
    if snapshot.heartbeats is None or snapshot.heartbeats.living:
        return False
    up = run.lived_seconds(now)
    last = snapshot.heartbeats.last_at
    silence = up if last is None else min(up, (now - last).total_seconds())
    return up >= policy.start_grace_seconds and silence >= policy.hang_seconds


def is_stuck(run: JobRun, snapshot: Snapshot, policy: Policy, now: datetime) -> bool:
    """Whether a run has committed nothing for too long although work waits. It may send heartbeats all the same."""
    if snapshot.backlog is None or snapshot.recent is None:
        return False
    return lacks_progress(
        snapshot.backlog,
        up_since=run.started_at,
        last_commit_at=snapshot.last_commit_at,
        stall_seconds=policy.stall_seconds,
        now=now,
    )


def is_stalled(run: JobRun, snapshot: Snapshot, policy: Policy, now: datetime) -> bool:
    """Whether a run is stuck in a way that a restart may fix.

    A manifest that waits for a person looks the same, and no restart helps there. So only a few restarts are tried.
    """
    return is_stuck(run, snapshot, policy, now) and runs_without_commit(snapshot) <= STALL_RESTARTS


def runs_without_commit(snapshot: Snapshot) -> int:
    """How many runs were started since the latest commit."""
    last = snapshot.last_commit_at
    return sum(last is None or run.started_at > last for run in snapshot.runs or ())


def is_idle(run: JobRun, snapshot: Snapshot, policy: Policy, now: datetime) -> bool:
    """Whether there has been nothing to do for a while, and no event is on its way."""
    backlog, queue, recent = snapshot.backlog, snapshot.queue, snapshot.recent
    if backlog is None or recent is None or backlog.manifests or (queue and queue.messages):
        return False
    if Source.QUEUE in snapshot.unknown:
        return False
    since = max(run.started_at, snapshot.last_commit_at or run.started_at)
    return (now - since).total_seconds() >= policy.idle_stop_seconds


def is_worth_a_start(backlog: Backlog, policy: Policy) -> bool:
    """Whether enough waits to start an idle job, or so long that it would be late otherwise."""
    is_half_late = backlog.oldest_seconds >= policy.sla_seconds / 2
    return backlog.manifests >= policy.backlog_start_manifests or bool(backlog.manifests and is_half_late)
