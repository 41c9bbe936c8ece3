"""Judges Glue's run history: which runs failed, how long to pause, whether the breaker is open. No I/O."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from compactor.control.runs import JobRun, JobState, has_successor
from compactor.control.snapshot import Snapshot, Source
from compactor.core.rules.backoff import pause_seconds
from compactor.core.text.formatting import shown_seconds
from compactor.settings.control_policy import Policy

_CRASHED = {JobState.FAILED, JobState.ERROR}
_GLUES_OWN = {JobState.EXPIRED, JobState.STOPPED, JobState.SUCCEEDED}
"""How a run may end that Glue restarts in its maintenance window. Glue never restarts one that timed out."""

_NOT_BEGUN = {JobState.WAITING, JobState.STARTING, JobState.UNKNOWN}


@dataclass(frozen=True, slots=True)
class Breaker:
    """The circuit breaker against crash loops."""

    failures: int = 0  # failed runs that count now
    # The end of the failed run that opened it, or of the trial that failed since; None while it is closed
    opened_at: datetime | None = None


@dataclass(frozen=True, slots=True)
class RunHistory:
    """Glue's runs, judged by a policy, which says what counts as a failure. Unknown runs count as none."""

    snapshot: Snapshot
    policy: Policy
    now: datetime

    @property
    def runs(self) -> Sequence[JobRun]:
        return self.snapshot.runs or ()

    def seconds_since(self, moment: datetime) -> float:
        return (self.now - moment).total_seconds()

    def age(self, moment: datetime) -> str:
        """The time since then, in words."""
        return shown_seconds(self.seconds_since(moment))

    @property
    def has_seen(self) -> bool:
        """Whether it is known what earlier checks saw of the runs."""
        return Source.SEEN not in self.snapshot.unknown

    def _since(self, run: JobRun) -> Mapping[str, datetime]:
        """When a check first saw a run in each state; empty if none before this one saw it alive."""
        seen = self.snapshot.run_seen
        return seen.since if seen and seen.run_id == run.run_id else {}

    def state_seconds(self, run: JobRun) -> float:
        """For how long checks have seen a living run in its state: 0 at the first. Glue tells no such time."""
        return self.seconds_since(self._since(run).get(run.state, self.now) if self.has_seen else run.changed_at)

    def up_seconds(self, run: JobRun) -> float:
        """For how long checks have seen a run RUNNING, up to its end or to now: a start may take minutes or hours.

        Of a run that ended and that no check saw alive, and where it is not known what they saw, it is the time since
        its request.
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
        """Whether a failed run counts now: the breaker counts it, or it delays the start of the next one."""
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
        """Whether so many runs failed within the window that starting again does not help.

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
        """Whether a run failed, and since then no operator has closed the breaker or deployed the job.

        A deployment counts as a repair: it changes the definition of the job, which names the place of the settings. A
        cause that lasts opens the breaker again.
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
