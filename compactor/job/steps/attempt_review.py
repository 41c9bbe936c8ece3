"""Reviews the attempts at a manifest: whether, when and beside what it is tried again."""

from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass
from datetime import datetime
from functools import partial

from compactor.core.documents.records import Accepted
from compactor.core.errors import ManifestError
from compactor.core.ports import Clock
from compactor.core.rules.attempts import (
    Attempts,
    AttemptState,
    Lane,
    RetryRules,
    due_at,
    held_against,
    lane,
    telling_error,
)
from compactor.ledger.ledger import Ledger, LedgerState
from compactor.ledger.sizing_history import SizingHistory


@dataclass(frozen=True, slots=True)
class Review:
    """What follows from the attempts at a manifest.

    Attributes:
        verdict: Why it is not tried again; None if it is.
        lane: What may run beside the next attempt.
        deaths: How many attempts ended with their driver.
        due_at: The earliest time of the next attempt; None for at once.
        after_progress: Whether another manifest was committed since the last attempt failed.
        after_self_test: Whether the job converted its sample since the last attempt failed; False if it was not asked.
        undecided_since: When the last attempt failed, if a self-test may tell why it or the next one does; else None.
        is_failing: Whether the last attempt failed for a reason that is not passing, and none was committed since.
    """

    verdict: ManifestError | None = None
    lane: Lane = Lane.FRESH
    deaths: int = 0
    due_at: datetime | None = None
    after_progress: bool = False
    after_self_test: bool = False
    undecided_since: datetime | None = None
    is_failing: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class AttemptReviewer:
    """Reviews attempts by what is on record.

    Attributes:
        history: Knows when other manifests were committed.
        living_runs: Returns which of some runs have a heartbeat, this run included.
        clock: Tells the time.
        run_began_at: Returns when this run began; asked only after its first heartbeat, which may correct the clock.
    """

    ledger: Ledger
    history: SizingHistory
    rules: RetryRules
    living_runs: Callable[[Iterable[str]], Collection[str]]
    clock: Clock
    run_began_at: Callable[[], datetime]

    def review(self, manifest_id: str, attempts: Attempts, *, self_test_passed: bool = False) -> Review:
        """Review the attempts at a manifest that has no outcome.

        Args:
            manifest_id: The manifest.
            attempts: All attempts at it.
            self_test_passed: Whether the job converted its sample since the last one failed.
        """
        last = attempts.unfolded[-1] if attempts.unfolded else None
        failure = last.failure if last else None
        progress = last is not None and self.history.has_commit_since(last.ended_at, other_than=manifest_id)
        held = self._held(attempts, progress, self_test_passed)
        if held >= self.rules.max_attempts:  # guard: a manifest that kills its driver each time runs out of attempts
            error, refused = telling_error(attempts)
            reason = "forbidden" if refused else "retries_exhausted"
            message = f"manifest {manifest_id}: {held} attempts failed; the last: {error}"
            return Review(ManifestError(reason, message))
        began_at, now = self.run_began_at(), self.clock.now()
        return Review(
            lane=lane(attempts, held, self.rules, others_got_through=progress),
            deaths=attempts.deaths,
            due_at=due_at(manifest_id, attempts, self.rules, now=now, run_began_at=began_at),
            after_progress=progress,
            after_self_test=self_test_passed,
            undecided_since=_undecided_since(last),
            is_failing=not progress and failure is not None and (not failure.passing or failure.undecided),
        )

    def review_of(self, accepted: Accepted, found: LedgerState | None = None) -> Review:
        """Review a manifest. One with an outcome needs no attempt, and may go on at once beside anything.

        Args:
            accepted: The manifest.
            found: What is on record about it, if that was read already.
        """
        found = found or self.ledger.state(accepted.key)
        return Review() if found.outcome is not None else self.review(accepted.manifest_id, found.attempts)

    def _held(self, attempts: Attempts, progress: bool, self_test_passed: bool) -> int:
        """Count the attempts against the manifest; read heartbeats only if they can change the count."""
        count = partial(held_against, attempts, others_got_through=progress, self_test_passed=self_test_passed)
        held = count({self.ledger.run_id})
        if held < self.rules.max_attempts:
            return held
        living = self.living_runs({each.attempt.run_id for each in attempts.unfolded})
        return count(living)


def _undecided_since(last: AttemptState | None) -> datetime | None:
    if last is None or (
        last.failure is not None and (last.failure.refused or not (last.failure.undecided or last.failure.died))
    ):
        return None
    return last.ended_at
