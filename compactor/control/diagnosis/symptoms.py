"""Determines from a snapshot whether a run is silent, stuck or idle. Decisions, no I/O; unknown is no symptom."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from math import inf

from compactor.control.diagnosis.health import lacks_progress, waiting_work
from compactor.control.snapshot import JobRun, JobState, Snapshot, Source, has_successor
from compactor.core.rules.backoff import pause_seconds
from compactor.core.text.formatting import shown_seconds
from compactor.settings.control_policy import Policy

_CRASHED = {JobState.FAILED, JobState.ERROR}
_GLUES_OWN = {JobState.EXPIRED, JobState.STOPPED, JobState.SUCCEEDED}
"""The end states after which Glue restarts a run in its maintenance window. Glue never restarts one that timed out."""

_NOT_BEGUN = {JobState.WAITING, JobState.STARTING, JobState.UNKNOWN}


@dataclass(frozen=True, slots=True)
class Breaker:
    """The circuit breaker against crash loops."""

    failures: int = 0  # failed runs that count now
    # The end of the failed run that opened it, or of the trial that failed since; None while it is closed
    opened_at: datetime | None = None


STALL_RESTARTS = 2
"""Restarts without a commit after which a stall needs an operator: another restart would not help."""

START_LIMIT_SECONDS = {JobState.WAITING: 6 * 3600.0, JobState.STARTING: 3600.0}
"""How long a run may take to start, by state: a start takes minutes, seldom tens of them.

A run that waits for capacity has a place in a queue: Glue retries "for a maximum of 15 minutes or 10 attempts" ["AWS
Glue job run statuses"] unless job queuing is enabled, EMR Serverless as long as the application says.
"""

CHANCE_SECONDS = 1500.0
"""A run that was up for this long after a manifest was started has finished it, if possible: it looks for such
manifests every 300 s.

Any left then need an operator; starting or keeping a run for them would go on forever.
"""


@dataclass(frozen=True, slots=True)
class Case:
    """A snapshot, judged by a policy at one time: its run history, and the symptoms of the active run.

    The policy defines failures. Unknown runs count as none.
    """

    snapshot: Snapshot
    policy: Policy
    now: datetime

    @property
    def runs(self) -> Sequence[JobRun]:
        return self.snapshot.runs or ()

    def seconds_since(self, moment: datetime) -> float:
        return (self.now - moment).total_seconds()

    def age(self, moment: datetime) -> str:
        """The time since a moment, in words."""
        return shown_seconds(self.seconds_since(moment))

    @property
    def has_seen(self) -> bool:
        """Whether the earlier checks' observations of the runs are known."""
        return Source.SEEN not in self.snapshot.unknown

    def _since(self, run: JobRun) -> Mapping[str, datetime]:
        """When a check first saw a run in each state; empty if none before this one saw it alive."""
        seen = self.snapshot.seen
        return seen.since_by_state if seen.run_id == run.run_id else {}

    def state_seconds(self, run: JobRun) -> float:
        """For how long checks have seen a living run in its state: 0 at the first. Glue does not report this."""
        return self.seconds_since(self._since(run).get(run.state, self.now) if self.has_seen else run.changed_at)

    def up_seconds(self, run: JobRun) -> float:
        """How long checks have seen a run RUNNING, up to its end or to now: a start may take minutes or hours.

        For an ended run that no check saw alive, and if the observations are unknown, it is the time since its request.
        """
        since = self._since(run)
        if not self.has_seen or not (since or run.is_living):
            return run.lived_seconds(self.now)
        end = run.ended_at or self.now
        return max(0.0, (end - since.get(JobState.RUNNING, end)).total_seconds())

    def is_failed(self, run: JobRun) -> bool:
        """Whether a run failed.

        A long run that timed out or was stopped did its work; a short one did not. Glue itself restarts an expired run,
        so that one failed only if no restart followed.
        """
        if run.is_living:
            return False
        if run.state in _CRASHED:
            return True
        if run.state is JobState.EXPIRED and not self.policy.is_maintenance(run.last_at):
            return not has_successor(run, self.runs) and self.awaits_restart_until(run) is None
        return self._is_short(run)

    def awaits_restart_until(self, run: JobRun) -> datetime | None:
        """Until when Glue may still restart a run; None if it will not."""
        is_long_in_window = self.policy.is_maintenance(run.last_at) and not self._is_short(run)
        is_restart = run.state is JobState.EXPIRED or (run.state in _GLUES_OWN and is_long_in_window)
        until = run.last_at + timedelta(seconds=self.policy.expired_grace_seconds)
        return until if is_restart and self.now < until and not has_successor(run, self.runs) else None

    def failures_in_a_row(self) -> int:
        """How many runs failed since the last one that worked for a while."""
        count = 0
        for run in self.runs:
            if run.is_living:
                continue
            if not self._counts(run):
                break
            count += 1
            if self._worked(run):
                break
        return count

    @property
    def has_failures(self) -> bool:
        """Whether a failed run counts now: in the breaker, or by delaying the next start."""
        return bool(self.breaker().failures or (not self.snapshot.living_runs and self.failures_in_a_row()))

    def next_start_at(self) -> datetime | None:
        """The end of the pause after failed runs; None if the latest run did not fail."""
        failures = self.failures_in_a_row()
        latest = next((run for run in self.runs if not run.is_living), None)
        if not failures or latest is None:
            return None
        policy = self.policy
        pause = pause_seconds(
            failures,
            first_seconds=policy.backoff_first_seconds,
            longest_seconds=policy.backoff_longest_seconds,
            chance=1.0,
        )
        return latest.last_at + timedelta(seconds=pause)

    def breaker(self) -> Breaker:
        """Whether enough runs failed within the window that another start does not help.

        Derived from the history each time. A run that works for a while closes the breaker.
        """
        failures: list[datetime] = []
        opened_at: datetime | None = None
        for run in sorted(self.runs, key=lambda run: run.ended_at or self.now):
            if self._worked(run):
                failures, opened_at = [], None
            if self._counts(run):
                since = run.last_at - timedelta(seconds=self.policy.breaker_window_seconds)
                is_trial = opened_at is not None
                failures = [*(end for end in failures if is_trial or end > since), run.last_at]
                if len(failures) >= self.policy.breaker_failures:
                    opened_at = run.last_at
        return Breaker(len(failures), opened_at)

    def _counts(self, run: JobRun) -> bool:
        """Whether a run failed, and no operator has closed the breaker or deployed the job since.

        A deployment counts as a repair: it changes the job's definition, which names the settings' place. A lasting
        cause opens the breaker again.
        """
        repairs = (self.snapshot.breaker_closed_at, self.snapshot.job_defined_at)
        return self.is_failed(run) and all(at is None or run.last_at > at for at in repairs)

    def _worked(self, run: JobRun) -> bool:
        """Whether a run showed that the job can work: it was up for long, or ended because nothing was left to do."""
        if run.state is JobState.SUCCEEDED:
            return not self._is_short(run)
        return run.state not in _NOT_BEGUN and self.up_seconds(run) >= self.policy.proven_seconds

    def _is_short(self, run: JobRun) -> bool:
        by_itself = run.state is JobState.SUCCEEDED
        return self.policy.is_short(self.up_seconds(run), ended_by_itself=by_itself)

    @property
    def work(self) -> str:
        """The work that waits for the job, in words; empty if none or unknown."""
        return waiting_work(self.snapshot.backlog)

    @property
    def runs_without_commit(self) -> int:
        """How many runs were started since the latest commit."""
        last = self.snapshot.last_commit_at
        return sum(last is None or run.started_at > last for run in self.runs)

    @property
    def is_worth_a_start(self) -> bool:
        """Whether work waits that a job can do."""
        backlog = self.snapshot.backlog
        return backlog is not None and bool(backlog.manifests or self.begun(had_chance=False))

    def begun(self, *, had_chance: bool) -> Sequence[str]:
        """The started manifests outside the watched prefix, the first one first.

        Args:
            had_chance: Those that a run had time to finish, and did not; or those that still wait for one.
        """
        in_order = sorted((self.snapshot.begun or {}).items(), key=lambda each: each[1])
        return [each for each, begun_at in in_order if self._had_chance(begun_at) is had_chance]

    def _had_chance(self, begun_at: datetime) -> bool:
        ends = ((run, run.ended_at or self.now) for run in self.runs)
        lives = (min(self.up_seconds(run), (end - begun_at).total_seconds()) for run, end in ends)
        return any(seconds >= CHANCE_SECONDS for seconds in lives)

    def standing(self, run: JobRun) -> str:
        """The state of a living run with its age by the checks, and that of its request if much older."""
        seconds, asked_seconds = self.state_seconds(run), run.lived_seconds(self.now)
        lasts = f"has been {run.state} for {shown_seconds(seconds)}" if seconds else f"is {run.state}"
        is_slow = asked_seconds - seconds >= self.policy.start_grace_seconds and run.state is not JobState.STOPPING
        asked = f" and was requested {shown_seconds(asked_seconds)} ago" if is_slow else ""
        return f"run {run.run_id} {lasts}{asked}"

    def never_starts(self, run: JobRun) -> bool:
        """Whether a run has been starting for so long that a new one is likelier to succeed. Nothing is in flight."""
        limit, heartbeats = START_LIMIT_SECONDS.get(run.state), self.snapshot.heartbeats
        if limit is None or heartbeats is None or heartbeats.living or not self.has_seen:
            return False
        return self.state_seconds(run) >= limit

    def is_silent(self, run: JobRun) -> bool:
        """Whether a run that should send heartbeats has sent none for too long."""
        heartbeats = self.snapshot.heartbeats
        if heartbeats is None or heartbeats.living or not self.has_seen:
            return False
        up = self.up_seconds(run)
        silence = up if heartbeats.last_at is None else min(up, self.seconds_since(heartbeats.last_at))
        return up >= self.policy.start_grace_seconds and silence >= self.policy.hang_seconds

    def is_stuck(self, run: JobRun) -> bool:
        """Whether a run has committed nothing for too long although work waits. It may still send heartbeats."""
        snapshot, stall_seconds = self.snapshot, self.policy.stall_seconds
        if snapshot.backlog is None or snapshot.recent is None or not self.has_seen:
            return False
        last, up_since = snapshot.last_commit_at, self.now - timedelta(seconds=self.up_seconds(run))
        return lacks_progress(
            snapshot.backlog, up_since=up_since, last_commit_at=last, stall_seconds=stall_seconds, now=self.now
        )

    def is_stalled(self, run: JobRun) -> bool:
        """Whether a run is stuck in a way that a restart may fix.

        A manifest that needs an operator looks the same, and a restart does not help it. So only a few restarts are
        tried.
        """
        return self.is_stuck(run) and self.runs_without_commit <= STALL_RESTARTS

    def seconds_until_timeout(self, run: JobRun) -> float:
        """The time until Glue ends a run, if so near that the run should end itself before; else 0.

        The run then has `drain_seconds` to finish the manifests in flight, but at most a tenth of its timeout.
        """
        if run.timeout_seconds is None:
            return 0.0
        left = run.timeout_seconds - run.lived_seconds(self.now)
        lead = min(self.policy.drain_seconds, run.timeout_seconds / 10)
        return max(left, 1.0) if left <= lead else 0.0

    def is_idle(self, run: JobRun) -> bool:
        """Whether there has been nothing to do for a while, and no event is on its way."""
        backlog, queue, recent = self.snapshot.backlog, self.snapshot.queue, self.snapshot.recent
        if backlog is None or recent is None or backlog.manifests or (queue and queue.messages):
            return False
        if self.begun(had_chance=False):
            return False
        if Source.QUEUE in self.snapshot.unknown:
            return False
        last = self.snapshot.last_commit_at
        idle_seconds = min(self.up_seconds(run), self.seconds_since(last) if last else inf)
        return idle_seconds >= self.policy.idle_stop_seconds
