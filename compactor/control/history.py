"""What Glue's run history says: which runs failed, how long to pause, whether the breaker is open. No I/O."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from compactor.control.runs import JobRun, JobState, has_successor
from compactor.core.backoff import pause_seconds
from compactor.settings.control_policy import Policy

_CRASHED = {JobState.FAILED, JobState.ERROR}
_GLUES_OWN = {JobState.EXPIRED, JobState.STOPPED, JobState.SUCCEEDED}
"""How a run may end that Glue restarts in its window; one that reached its time limit it never restarts."""

_NOT_BEGUN = {JobState.WAITING, JobState.STARTING, JobState.UNKNOWN}


@dataclass(frozen=True, slots=True)
class Breaker:
    """Whether starting again still helps.

    Attributes:
        failures: Failed runs that count now.
        opened_at: The end of the failed run that opened it, or of the trial that failed since; None while it is closed.
    """

    failures: int = 0
    opened_at: datetime | None = None


class RunHistory:
    """Glue's runs, read with a policy in mind.

    Args:
        runs: The newest first.
        closed_at: When somebody closed the breaker by hand: what failed before counts no more.
        policy: What counts as a failure.
        now: The time.
    """

    def __init__(self, runs: Sequence[JobRun], closed_at: datetime | None, policy: Policy, now: datetime) -> None:
        self._runs = runs
        self._closed_at = closed_at
        self._policy = policy
        self._now = now

    def is_failed(self, run: JobRun) -> bool:
        """Whether a run ended as it should not have.

        A long run that reached its time limit, or was stopped, did its work; a short one did not. An expired run is
        Glue's own restart, unless nothing came after it.
        """
        if run.is_living:
            return False
        if run.state in _CRASHED:
            return True
        if run.state in _GLUES_OWN and self._policy.is_maintenance(_end(run)):
            return False
        if run.state is JobState.EXPIRED:
            return not has_successor(run, self._runs) and self._waited_for_successor(run)
        return self._is_short(run)

    def awaits_restart_until(self, run: JobRun) -> datetime | None:
        """Until when Glue may still restart a run by itself; None if it will not."""
        is_long_in_window = self._policy.is_maintenance(_end(run)) and not self._is_short(run)
        is_restart = run.state is JobState.EXPIRED or (run.state in _GLUES_OWN and is_long_in_window)
        until = _end(run) + timedelta(seconds=self._policy.expired_grace_seconds)
        return until if is_restart and self._now < until and not has_successor(run, self._runs) else None

    def failures_in_a_row(self) -> int:
        """How many of the latest runs failed, down to the last one that worked for a while."""
        count = 0
        for run in self._runs:
            if run.is_living:
                continue
            if not self._counts(run):
                break
            count += 1
            if self._worked(run):
                break
        return count

    def next_start_at(self) -> datetime | None:
        """Before when nothing is started, as the latest runs failed; None if they did not."""
        failures = self.failures_in_a_row()
        latest = next((run for run in self._runs if not run.is_living), None)
        if not failures or latest is None:
            return None
        policy = self._policy
        pause = pause_seconds(
            failures,
            first_seconds=policy.backoff_first_seconds,
            longest_seconds=policy.backoff_longest_seconds,
            chance=1.0,
        )
        return _end(latest) + timedelta(seconds=pause)

    def breaker(self) -> Breaker:
        """Whether so many runs failed within the window that starting again does not help.

        Told anew from the history each time. A run that works for a while closes it.
        """
        failures: list[datetime] = []
        opened_at: datetime | None = None
        for run in sorted(self._runs, key=lambda run: run.ended_at or self._now):
            if self._worked(run):
                failures, opened_at = [], None
            if self._counts(run):
                since = _end(run) - timedelta(seconds=self._policy.breaker_window_seconds)
                is_trial = opened_at is not None
                failures = [*(end for end in failures if is_trial or end > since), _end(run)]
                if len(failures) >= self._policy.breaker_failures:
                    opened_at = _end(run)
        return Breaker(len(failures), opened_at)

    def _counts(self, run: JobRun) -> bool:
        return self.is_failed(run) and (self._closed_at is None or _end(run) > self._closed_at)

    def _worked(self, run: JobRun) -> bool:
        """Whether a run showed that the job can work: it lived for long, or ended for want of work."""
        if run.state is JobState.SUCCEEDED:
            return not self._is_short(run)
        return run.state not in _NOT_BEGUN and run.lived_seconds(self._now) >= self._policy.proven_seconds

    def _is_short(self, run: JobRun) -> bool:
        by_itself = run.state is JobState.SUCCEEDED
        return self._policy.is_short(run.lived_seconds(self._now), ended_by_itself=by_itself)

    def _waited_for_successor(self, run: JobRun) -> bool:
        return (self._now - _end(run)).total_seconds() >= self._policy.expired_grace_seconds


def _end(run: JobRun) -> datetime:
    return run.ended_at or run.changed_at
