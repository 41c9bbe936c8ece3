"""Decides from the attempts on record whether, when and beside what a manifest is tried again. No I/O."""

import zlib
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum

from compactor.core.documents.records import Attempt, AttemptFailure, AttemptsFolded
from compactor.core.rules.backoff import pause_seconds

SUSPICIOUS_DEATHS = 2
"""Deaths after which a manifest waits, and runs alone. One is normal: what is in flight is lost with a machine."""

_HIGHEST_CRC = 0xFFFFFFFF


class Lane(StrEnum):
    """What may run beside an attempt.

    Attributes:
        FRESH: Anything. A first attempt.
        AGAIN: Anything, after some first attempts.
        ALONE: Nothing: drivers died beside it again and again, it may be the last, or must not share the scratch disk.
        UNDECIDED: Nothing, until another manifest gets through: this attempt may be the last, and has to tell.
    """

    FRESH = "fresh"
    AGAIN = "again"
    ALONE = "alone"
    UNDECIDED = "undecided"


@dataclass(frozen=True, slots=True)
class RetryRules:
    """When and how often a manifest is tried again.

    Attributes:
        max_attempts: The number of attempts that count against a manifest before it becomes a dead letter.
        first_pause_seconds: The longest pause after the first failure; it doubles with each further one.
        longest_pause_seconds: The longest pause.
    """

    max_attempts: int
    first_pause_seconds: float = 1.0
    longest_pause_seconds: float = 600.0


@dataclass(frozen=True, slots=True)
class AttemptState:
    """One attempt without an outcome, with its failure if it is on record."""

    attempt: Attempt
    failure: AttemptFailure | None

    @property
    def ended_at(self) -> datetime:
        """When it failed; if that is not on record, when it began."""
        return self.failure.failed_at if self.failure else self.attempt.started_at

    @property
    def is_death(self) -> bool:
        return self.failure is None or self.failure.died

    @property
    def is_experiment(self) -> bool:
        """Whether it tells of the manifest if the job can still convert its sample: that one is not refused."""
        is_refused = self.failure is not None and self.failure.refused
        return self.attempt.alone and self.attempt.after_self_test and not is_refused


@dataclass(frozen=True, slots=True)
class Attempts:
    """All attempts at one manifest that has no outcome.

    Attributes:
        unfolded: In order, those with records of their own.
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
        """How many attempts failed, except those that ended with their driver and are not held against the manifest."""
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

    A failure counts if it was recorded as such. One whose cause was undecided then counts if other manifests were
    committed before the next attempt. It also counts if nothing else was in flight, and the job converted a sample of
    its own right before the attempt and again after it. A death without a record is undecided if nothing else was in
    flight.

    Args:
        attempts: All attempts at a manifest that has no outcome.
        living_runs: Runs that have a heartbeat, the current one included.
        others_got_through: Whether another manifest was committed since the last attempt.
        self_test_passed: Whether the job converted its sample after the last attempt.
    """
    states = attempts.unfolded
    later = [state.attempt for state in states[1:]]
    progress = [*(attempt.after_progress for attempt in later), others_got_through]
    tested = [*(attempt.after_self_test for attempt in later), self_test_passed]
    counted = 0
    for state, got_through, passed in zip(states, progress, tested, strict=False):
        is_told = got_through or (passed and state.is_experiment)
        counted += _is_failure(state) or (is_told and _is_undecided(state, living_runs))
    return counted + (attempts.folded.held if attempts.folded else 0)


def _is_failure(state: AttemptState) -> bool:
    return state.failure is not None and not state.failure.passing  # guard: passing trouble does not count


def _is_undecided(state: AttemptState, living_runs: Collection[str]) -> bool:
    if state.failure is None:
        # guard: an attempt of a run that lives is no death
        return state.attempt.alone and state.attempt.run_id not in living_runs
    return state.failure.undecided


def lane(attempts: Attempts, held: int, rules: RetryRules, *, others_got_through: bool = False) -> Lane:
    """Return what may run beside the next attempt.

    Args:
        attempts: The attempts so far.
        held: How many of them count, from `held_against`.
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
    """Return the earliest time of the next attempt; None for at once.

    The pause doubles with each failure, and its jitter depends on the manifest and the number of failures alone, so
    that every driver computes the same time. After the first death there is no pause, unless the manifest is blamed;
    after more there is one, or the drivers that follow would die as well before others get through. A failure that a
    clock recorded further in the future than the longest pause causes none, nor does a run that began so late.

    Args:
        manifest_id: The manifest.
        attempts: The attempts so far.
        rules: The limits.
        now: The present time; None if all times on record are to be believed.
        run_began_at: When the run began that would try again; None if no run asks.
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
    """The failures that a pause always follows."""
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
    """Return the last error that may be the manifest's own, or else the last, and whether it was a refusal.

    A death tells of everything that was in flight, and passing trouble of the environment: neither must hide what the
    manifest itself failed for. Another driver may record either after the attempt that decided.
    """
    told = [state.failure for state in attempts.unfolded if state.failure is not None and not state.failure.died]
    told = [failure for failure in told if failure.undecided or not failure.passing] or told
    return (told[-1].error, told[-1].refused) if told else (last_error(attempts), False)
