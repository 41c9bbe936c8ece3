"""Decides which attempts count against a manifest. No I/O."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass

from compactor.core.records import Attempt, AttemptFailure


@dataclass(frozen=True, slots=True)
class AttemptState:
    """One attempt without an outcome, with its failure if the driver survived to record it."""

    attempt: Attempt
    failure: AttemptFailure | None


def held_against(attempts: Sequence[AttemptState], living_runs: Collection[str]) -> int:
    """Count the attempts that show that the manifest itself is to blame.

    An attempt counts if the manifest was alone in flight, and the driver died or the failure was not passing. With
    others in flight any of them may be to blame, and an attempt of a living run has not ended yet.

    Args:
        attempts: All attempts of a manifest that has no outcome.
        living_runs: Runs that have a heartbeat, the current one included.
    """
    return sum(_counts(state, living_runs) for state in attempts)


def _counts(state: AttemptState, living_runs: Collection[str]) -> bool:
    if not state.attempt.alone:
        return False
    if state.failure is not None:
        return not state.failure.passing
    return state.attempt.run_id not in living_runs


def is_suspect(attempts: Sequence[AttemptState]) -> bool:
    """Return whether a manifest must run alone next, because an earlier attempt failed or has no recorded end."""
    return any(state.failure is None or not state.failure.passing for state in attempts)


def last_error(attempts: Sequence[AttemptState]) -> str:
    """Describe how the last attempt ended, as far as the ledger records it."""
    if not attempts:
        return "never attempted"
    latest = max(attempts, key=lambda state: state.attempt.number)
    if latest.failure is not None:
        return latest.failure.error
    return f"run {latest.attempt.run_id} ended without a record of its failure in attempt {latest.attempt.number}"
