"""How a running job looks from outside: silent, stalled, idle. Decisions, no I/O; what is not known is no symptom."""

from datetime import datetime, timedelta

from compactor.control.runs import JobRun
from compactor.control.snapshot import Backlog, Snapshot, Source
from compactor.core.formatting import shown_seconds
from compactor.settings.control_policy import Policy

STALL_RESTARTS = 2
"""Restarts without one commit after which a stall is left to a person: starting again does not help."""


def waiting_work(snapshot: Snapshot) -> str:
    """The work that waits for the job, in words; nothing if there is none, or if it is not known."""
    backlog = snapshot.backlog
    if backlog is None or not backlog.manifests:
        return ""
    return f"{backlog.manifests} manifests wait, the oldest for {shown_seconds(backlog.oldest_seconds)}"


def is_silent(run: JobRun, snapshot: Snapshot, policy: Policy, now: datetime) -> bool:
    """Whether a run that should give signs of life has given none for too long."""
    if snapshot.signs is None or snapshot.signs.living:
        return False
    up = run.lived_seconds(now)
    last = snapshot.signs.last_at
    silence = up if last is None else min(up, (now - last).total_seconds())
    return up >= policy.start_grace_seconds and silence >= policy.hang_seconds


def is_stuck(run: JobRun, snapshot: Snapshot, policy: Policy, now: datetime) -> bool:
    """Whether a run has committed nothing for too long although work waits. It may give signs of life all the same."""
    backlog, recent = snapshot.backlog, snapshot.recent
    if backlog is None or not backlog.manifests or recent is None:
        return False
    limit = now - timedelta(seconds=policy.stall_seconds)
    is_old = backlog.oldest_seconds >= policy.stall_seconds and run.started_at <= limit
    return is_old and (snapshot.last_commit_at is None or snapshot.last_commit_at <= limit)


def is_stalled(run: JobRun, snapshot: Snapshot, policy: Policy, now: datetime) -> bool:
    """Whether a run is stuck in a way that a restart may mend.

    A manifest that waits for a person looks the same, and no restart helps there: so it is tried a few times only.
    """
    return is_stuck(run, snapshot, policy, now) and runs_without_commit(snapshot) <= STALL_RESTARTS


def runs_without_commit(snapshot: Snapshot) -> int:
    """How many runs were started since the latest commit."""
    last = snapshot.last_commit_at
    return sum(last is None or run.started_at > last for run in snapshot.runs or ())


def is_idle(run: JobRun, snapshot: Snapshot, policy: Policy, now: datetime) -> bool:
    """Whether there is nothing to do and was nothing for a while, on its way neither."""
    backlog, queue, recent = snapshot.backlog, snapshot.queue, snapshot.recent
    if backlog is None or recent is None or backlog.manifests or (queue and queue.waiting + queue.in_flight):
        return False
    if Source.QUEUE in snapshot.unknown:
        return False
    since = max(run.started_at, snapshot.last_commit_at or run.started_at)
    return (now - since).total_seconds() >= policy.idle_stop_seconds


def is_worth_a_start(backlog: Backlog, policy: Policy) -> bool:
    """Whether enough waits to start an idle job; also the little that would be late otherwise."""
    is_half_late = backlog.oldest_seconds >= policy.sla_seconds / 2
    return backlog.manifests >= policy.backlog_start_manifests or bool(backlog.manifests and is_half_late)
