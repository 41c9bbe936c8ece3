"""Reviews the attempts at a manifest: whether, when and beside what it is tried again."""

from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass
from datetime import datetime

from compactor.core.attempts import Attempts, Lane, RetryRules, due_at, held_against, lane, last_error
from compactor.core.errors import ManifestError
from compactor.core.records import Accepted
from compactor.ledger.ledger import Ledger
from compactor.ledger.sizing_history import SizingHistory


@dataclass(frozen=True, slots=True)
class Review:
    """What follows from the attempts at a manifest.

    Attributes:
        verdict: Why it is not tried again; None if it is.
        lane: What may run beside the next attempt.
        due_at: The earliest time of the next attempt; None for at once.
        after_progress: Whether another manifest was committed since the last attempt failed.
        is_failing: Whether the last attempt failed for a reason that is not passing, and none was committed since.
    """

    verdict: ManifestError | None = None
    lane: Lane = Lane.FRESH
    due_at: datetime | None = None
    after_progress: bool = False
    is_failing: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class AttemptReviewer:
    """Reviews attempts by what is on record.

    Attributes:
        history: Knows when other manifests were committed.
        living_runs: Returns which of some runs have a heartbeat, this run included.
    """

    ledger: Ledger
    history: SizingHistory
    rules: RetryRules
    living_runs: Callable[[Iterable[str]], Collection[str]]

    def review(self, manifest_id: str, attempts: Attempts) -> Review:
        """Review the attempts at a manifest that has no outcome."""
        failure = attempts.unfolded[-1].failure if attempts.unfolded else None
        progress = failure is not None and self.history.has_commit_since(failure.failed_at, other_than=manifest_id)
        held = self._held(attempts, progress)
        if held >= self.rules.max_attempts:
            reason = "forbidden" if failure is not None and failure.refused else "retries_exhausted"
            message = f"manifest {manifest_id}: {held} attempts failed; the last: {last_error(attempts)}"
            return Review(ManifestError(reason, message))
        return Review(
            lane=lane(attempts, held, self.rules),
            due_at=due_at(manifest_id, attempts, self.rules),
            after_progress=progress,
            is_failing=not progress and failure is not None and (not failure.passing or failure.undecided),
        )

    def review_of(self, accepted: Accepted) -> Review:
        """Review a manifest. One with an outcome needs no attempt, and may go on at once beside anything."""
        found = self.ledger.state(accepted.key)
        return Review() if found.outcome is not None else self.review(accepted.manifest_id, found.attempts)

    def _held(self, attempts: Attempts, progress: bool) -> int:
        """Count the attempts against the manifest; read heartbeats only if they can change the count."""
        held = held_against(attempts, {self.ledger.run_id}, others_got_through=progress)
        if held < self.rules.max_attempts:
            return held
        living = self.living_runs({each.attempt.run_id for each in attempts.unfolded})
        return held_against(attempts, living, others_got_through=progress)
