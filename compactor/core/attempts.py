"""Decides from the attempts on record whether, when and beside what a manifest is tried again. No I/O."""

import zlib
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum

from compactor.core.backoff import pause_seconds
from compactor.core.records import Attempt, AttemptFailure, AttemptsFolded

SUSPICIOUS_DEATHS = 2
"""Deaths after which a manifest is a suspect. One is normal: everything in flight is lost when a machine is."""

_HIGHEST_CRC = 0xFFFFFFFF


class Lane(StrEnum):
    """What may run beside an attempt.

    Attributes:
        FRESH: Anything. A first attempt.
        RETRY: Anything, in a share of the slots, so that failing manifests leave room for first attempts.
        SUSPECT: Anything but another suspect: drivers died of this manifest or of one that was beside it.
        ISOLATED: Nothing: this attempt may be the last, or must not share the scratch disk.
    """

    FRESH = "fresh"
    RETRY = "retry"
    SUSPECT = "suspect"
    ISOLATED = "isolated"


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


def held_against(attempts: Attempts, living_runs: Collection[str], *, others_got_through: bool = False) -> int:
    """Count the attempts that show that the manifest itself is to blame.

    A failure counts if it was recorded as such, or if its cause was undecided then and other manifests were committed
    before the next attempt. An attempt without a recorded end counts if its run is dead and nothing else was in flight.

    Args:
        attempts: All attempts at a manifest that has no outcome.
        living_runs: Runs that have a heartbeat, the current one included.
        others_got_through: Whether another manifest was committed since the last attempt.
    """
    states = attempts.unfolded
    progress = [state.attempt.after_progress for state in states[1:]] + [others_got_through]
    counted = sum(_counts(state, living_runs, after) for state, after in zip(states, progress, strict=False))
    return counted + (attempts.folded.held if attempts.folded else 0)


def _counts(state: AttemptState, living_runs: Collection[str], progress_after: bool) -> bool:
    failure = state.failure
    if failure is None:
        return state.attempt.alone and state.attempt.run_id not in living_runs
    return not failure.passing or (failure.undecided and progress_after)


def lane(attempts: Attempts, held: int, rules: RetryRules) -> Lane:
    """Return what may run beside the next attempt.

    Args:
        attempts: The attempts so far.
        held: How many of them count, from `held_against`.
        rules: The limits.
    """
    if not attempts.unfolded and not attempts.folded:
        return Lane.FRESH
    last = attempts.unfolded[-1].failure if attempts.unfolded else None
    is_last_try = attempts.deaths > 0 and held >= rules.max_attempts - 1
    if is_last_try or (last is not None and last.needs_isolation):
        return Lane.ISOLATED
    return Lane.SUSPECT if attempts.deaths >= SUSPICIOUS_DEATHS else Lane.RETRY


def due_at(manifest_id: str, attempts: Attempts, rules: RetryRules) -> datetime | None:
    """Return the earliest time of the next attempt; None for at once.

    The pause doubles with each failure, and its jitter depends on the manifest and the number of failures alone, so
    that every driver computes the same time. After a death that is not held against the manifest there is no pause.
    """
    ended = _paused_for(attempts.unfolded)
    if not ended:
        return None
    failures = attempts.failures
    seconds = pause_seconds(
        failures,
        first_seconds=rules.first_pause_seconds,
        longest_seconds=rules.longest_pause_seconds,
        chance=zlib.crc32(f"{manifest_id}/{failures}".encode(errors="surrogatepass")) / _HIGHEST_CRC,
    )
    return ended[-1].failed_at + timedelta(seconds=seconds)


def _paused_for(states: Sequence[AttemptState]) -> list[AttemptFailure]:
    """The failures that a pause follows."""
    failures = [state.failure for state in states if state.failure is not None]
    return [failure for failure in failures if not (failure.died and failure.passing)]


def to_blame(deaths: Mapping[str, int]) -> str | None:
    """Return the manifest to blame for the death of a run; None if it cannot be told.

    What was in flight and got through since is innocent. Of the rest, one that was in flight at more earlier deaths
    than any other is to blame, and so is one that is alone.

    Args:
        deaths: By manifest that was in flight and is still open, the number of earlier deaths it was in flight at.
    """
    if not deaths:
        return None
    most = max(deaths.values())
    suspects = [manifest_id for manifest_id, count in deaths.items() if count == most]
    return suspects[0] if len(suspects) == 1 else None


def last_error(attempts: Attempts) -> str:
    """Describe how the last attempt ended, as far as the ledger records it."""
    if not attempts.unfolded:
        return attempts.folded.last_error if attempts.folded else "never attempted"
    latest = max(attempts.unfolded, key=lambda state: state.attempt.number)
    if latest.failure is not None:
        return latest.failure.error
    return f"run {latest.attempt.run_id} ended without a record of its failure in attempt {latest.attempt.number}"
