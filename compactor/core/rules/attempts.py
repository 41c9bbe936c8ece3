"""Decides from recorded attempts whether and when a manifest is retried, and what may run with it. No I/O."""

import zlib
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum

from compactor.core.documents.records import Attempt, AttemptFailure, AttemptsFolded
from compactor.core.rules.backoff import pause_seconds

SUSPICIOUS_DEATHS = 2
"""After this many deaths a manifest waits and runs alone. A single one is normal: a lost machine loses everything in
flight."""

_HIGHEST_CRC = 0xFFFFFFFF


class Lane(StrEnum):
    """What may run at the same time as an attempt.

    Attributes:
        FRESH: Anything. A first attempt.
        AGAIN: Anything, after some first attempts.
        ALONE: Nothing: several drivers died while it ran, it may be the last, or must not share the scratch disk.
        UNDECIDED: Nothing, until another manifest succeeds: this attempt may be the last, and must give a clear result.
    """

    FRESH = "fresh"
    AGAIN = "again"
    ALONE = "alone"
    UNDECIDED = "undecided"


@dataclass(frozen=True, slots=True)
class RetryRules:
    """When and how often a manifest is tried again.

    Attributes:
        max_attempts: How many attempts that count make a manifest a dead letter.
        first_pause_seconds: The longest pause after the first failure; it doubles with each further failure.
        longest_pause_seconds: The longest pause.
    """

    max_attempts: int
    first_pause_seconds: float = 1.0
    longest_pause_seconds: float = 600.0


@dataclass(frozen=True, slots=True)
class AttemptState:
    """One attempt without an outcome, with its failure if recorded."""

    attempt: Attempt
    failure: AttemptFailure | None

    @property
    def ended_at(self) -> datetime:
        """When it failed; when it started if no failure is recorded."""
        return self.failure.failed_at if self.failure else self.attempt.started_at

    @property
    def is_death(self) -> bool:
        return self.failure is None or self.failure.died

    @property
    def is_experiment(self) -> bool:
        """Whether it is evidence about the manifest once the job has converted its sample: that one is not refused."""
        is_refused = self.failure is not None and self.failure.refused
        return self.attempt.alone and self.attempt.after_self_test and not is_refused


@dataclass(frozen=True, slots=True)
class Attempts:
    """All attempts at a manifest without an outcome.

    Attributes:
        unfolded: Attempts with their own records, in order.
        folded: The sum of the earlier ones; None if nothing was folded.
    """

    unfolded: tuple[AttemptState, ...] = ()
    folded: AttemptsFolded | None = None

    @property
    def last_number(self) -> int:
        folded = self.folded.upto if self.folded else 0
        return max((state.attempt.number for state in self.unfolded), default=folded)

    @property
    def failures(self) -> int:
        """How many attempts failed, except those that ended with their driver and do not count against the manifest."""
        folded = self.folded.failures if self.folded else 0
        return folded + len(_paused_for(self.unfolded))

    @property
    def deaths(self) -> int:
        """How many attempts ended with their driver."""
        died = sum(state.failure is not None and state.failure.died for state in self.unfolded)
        return died + (self.folded.deaths if self.folded else 0)


def held_against(
    attempts: Attempts,
    living_runs: Collection[str],
    *,
    others_got_through: bool = False,
    self_test_passed: bool = False,
) -> int:
    """Count the attempts that show that the manifest itself is to blame.

    A failure counts if it was recorded as such. A failure with an undecided cause counts if other manifests were
    committed before the next attempt. It also counts if nothing else was in flight, and the job converted its own
    sample right before the attempt and again after it. A death without a record is undecided if nothing else was in
    flight.

    Args:
        attempts: All attempts at a manifest without an outcome.
        living_runs: Runs with a heartbeat, including the current one.
        others_got_through: Whether another manifest was committed since the last attempt.
        self_test_passed: Whether the job converted its sample after the last attempt.
    """
    states = attempts.unfolded
    later = [state.attempt for state in states[1:]]
    progress = [*(attempt.after_progress for attempt in later), others_got_through]
    tested = [*(attempt.after_self_test for attempt in later), self_test_passed]
    counted = 0
    for state, got_through, passed in zip(states, progress, tested, strict=False):
        is_decided = got_through or (passed and state.is_experiment)
        counted += _is_failure(state) or (is_decided and _is_undecided(state, living_runs))
    return counted + (attempts.folded.held if attempts.folded else 0)


def _is_failure(state: AttemptState) -> bool:
    return state.failure is not None and not state.failure.passing  # guard: a transient failure does not count


def _is_undecided(state: AttemptState, living_runs: Collection[str]) -> bool:
    if state.failure is None:
        # guard: an attempt of a living run is not a death
        return state.attempt.alone and state.attempt.run_id not in living_runs
    return state.failure.undecided


def lane(attempts: Attempts, held: int, rules: RetryRules, *, others_got_through: bool = False) -> Lane:
    """Decide what may run at the same time as the next attempt.

    Args:
        attempts: The attempts so far.
        held: How many of them count; see `held_against`.
        rules: The limits.
        others_got_through: Whether another manifest was committed since the last attempt.
    """
    if not attempts.unfolded and not attempts.folded:
        return Lane.FRESH
    last = attempts.unfolded[-1].failure if attempts.unfolded else None
    if last is not None and last.needs_isolation:
        return Lane.ALONE
    if attempts.deaths:
        is_suspicious = attempts.deaths >= SUSPICIOUS_DEATHS or held >= rules.max_attempts - 1
        return Lane.ALONE if is_suspicious else Lane.AGAIN
    undecided = sum(state.failure is not None and state.failure.undecided for state in attempts.unfolded)
    may_be_last = undecided + held >= rules.max_attempts - 1
    is_undecided = last is not None and last.undecided and not last.refused and not others_got_through
    return Lane.UNDECIDED if is_undecided and may_be_last else Lane.AGAIN


def due_at(
    manifest_id: str,
    attempts: Attempts,
    rules: RetryRules,
    *,
    now: datetime | None = None,
    run_began_at: datetime | None = None,
) -> datetime | None:
    """The earliest time of the next attempt; None for at once.

    The pause doubles with each failure, and its jitter depends only on the manifest and the number of failures, so that
    every driver computes the same time. The first death causes no pause, unless the manifest is blamed; further deaths
    do, or the next drivers would die as well before other manifests succeed. A failure is ignored if its time is
    further in the future than the longest pause, as is a run that started so late.

    Args:
        manifest_id: The manifest.
        attempts: The attempts so far.
        rules: The limits.
        now: The present time; None to trust all recorded times.
        run_began_at: When the retrying run started; None if there is no such run.
    """
    is_suspicious = attempts.deaths >= SUSPICIOUS_DEATHS
    ended = [state.failure for state in attempts.unfolded if state.failure and is_suspicious and state.failure.died]
    ended += _paused_for(attempts.unfolded)
    if now is not None:
        believed_until = now + timedelta(seconds=rules.longest_pause_seconds)
        ended = [failure for failure in ended if failure.failed_at <= believed_until]
        if run_began_at is not None and run_began_at > believed_until:
            run_began_at = None
    if not ended:
        return None
    failures = max(attempts.failures, attempts.deaths - 1)
    seconds = pause_seconds(
        failures,
        first_seconds=rules.first_pause_seconds,
        longest_seconds=rules.longest_pause_seconds,
        chance=zlib.crc32(f"{manifest_id}/{failures}".encode(errors="surrogatepass")) / _HIGHEST_CRC,
    )
    since = max(failure.failed_at for failure in ended)
    if is_suspicious and run_began_at is not None:
        since = max(since, run_began_at)
    return since + timedelta(seconds=seconds)


def _paused_for(states: Sequence[AttemptState]) -> list[AttemptFailure]:
    """Failures that always cause a pause."""
    failures = [state.failure for state in states if state.failure is not None]
    return [failure for failure in failures if not failure.died or not failure.passing or failure.undecided]


def last_error(attempts: Attempts) -> str:
    """Describe how the last attempt ended, as far as the ledger records it."""
    if not attempts.unfolded:
        return attempts.folded.last_error if attempts.folded else "never attempted"
    latest = max(attempts.unfolded, key=lambda state: state.attempt.number)
    if latest.failure is not None:
        return latest.failure.error
    return f"run {latest.attempt.run_id} ended without a record of its failure in attempt {latest.attempt.number}"


def telling_error(attempts: Attempts) -> tuple[str, bool]:
    """The last error that may be the manifest's own, or else the last one, and whether it was a refusal.

    A death concerns everything in flight, and a transient failure the environment: neither must hide the manifest's own
    error. Another driver may record either after the attempt that decided.
    """
    conclusive = [state.failure for state in attempts.unfolded if state.failure is not None and not state.failure.died]
    conclusive = [failure for failure in conclusive if failure.undecided or not failure.passing] or conclusive
    return (conclusive[-1].error, conclusive[-1].refused) if conclusive else (last_error(attempts), False)
