"""One manifest's life, from delivered to done: open, attempt, decide, publish."""

from dataclasses import dataclass, field, replace

from compactor.core.crash_points import CrashPoint, OnCrashPoint, ignore_crash_point
from compactor.core.documents.records import Accepted, Attempt, Commit, DeadLetter
from compactor.core.errors import EngineLost, ManifestError
from compactor.core.rules.attempts import Attempts
from compactor.job.attempts import AttemptFailures, AttemptReviewer, Review, SelfTest
from compactor.job.publication import Publisher
from compactor.job.results import Delivery, Ending, Result, result_of
from compactor.job.shards import Share, WholeShare
from compactor.job.staging import Stager
from compactor.ledger.ledger import LedgerState
from compactor.ledger.sizing_history import SizingHistory
from compactor.ledger.state import State
from compactor.table.named import needs_table

LEFT_SECONDS = 900.0
"""The age up to which the attempt of a living run is left to it.

A run may have lost track of an older one, as when the record of an attempt was written and the answer was lost, and its
manifest went to another shard before it was tried again. One more attempt is then at worst for nothing.
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class ManifestCompactor:
    """Takes one manifest as far as it goes. Safe to call again for any manifest at any time, from any driver.

    Attributes:
        stager: Makes an attempt.
        publisher: Carries a decided manifest to done.
        history: Learns from commits.
        failures: Takes failed attempts.
        reviewer: Decides whether a manifest is tried again.
        self_test: Tells manifests that always fail from an environment in which all do.
        share: Which manifests this run takes, and which other runs live.
        on_crash_point: Called at each crash point.
        leaves_placed: Whether manifests whose files a table has to list are left to it once they are placed.
    """

    state: State
    stager: Stager
    publisher: Publisher
    history: SizingHistory
    failures: AttemptFailures
    reviewer: AttemptReviewer
    self_test: SelfTest
    share: Share = field(default_factory=WholeShare)
    on_crash_point: OnCrashPoint = ignore_crash_point
    leaves_placed: bool = False

    def compact(self, delivery: Delivery) -> Result:
        """Bring a delivered manifest to done, or to its place.

        Raises:
            TryAgainError: Passing trouble, or a staged result that did not add up; the attempt is on record.
            OperatorError: A person must act.
        """
        accepted = delivery.accepted
        self.failures.record()
        found = self.state.ledger.state(accepted.key)
        if self._is_elsewhere(found):  # guard: what a living run works on is left to it
            return result_of(delivery, Ending.ELSEWHERE)
        if found.outcome is not None and found.is_done:  # guard: a done manifest is a no-op
            self.publisher.clean_up(accepted, found.outcome)
            result = result_of(delivery, Ending.ALREADY_DONE, found.outcome)
        else:
            result = self._published(self._decided(delivery, found))
        if delivery.uri != accepted.source_uri:
            self.publisher.remove_delivery(delivery.uri, delivery.digest)
        return result

    def _is_elsewhere(self, found: LedgerState) -> bool:
        """Whether a living run of another shard is about to decide it. One more attempt would be for nothing."""
        last = found.attempts.unfolded[-1] if found.outcome is None and found.attempts.unfolded else None
        if self.share.is_whole or last is None or last.failure is not None:
            return False
        run_id, age = last.attempt.run_id, self.state.clock.now() - last.attempt.started_at
        is_left = run_id != self.state.ledger.run_id and abs(age.total_seconds()) < LEFT_SECONDS
        return is_left and self.share.is_living(run_id)

    def _decided(self, delivery: Delivery, found: LedgerState) -> Result:
        """Return the recorded outcome; without one, the result of a refusal or of one more attempt."""
        accepted = delivery.accepted
        if found.outcome is not None:  # guard: a decided manifest is rolled forward, not worked on again
            return result_of(delivery, Ending.DECIDED, found.outcome)
        if delivery.refusal is not None:
            return self._decide(delivery, self._dead_letter(accepted, delivery.refusal))
        self._open(accepted)
        attempts = found.attempts
        verified = self.stager.verified(accepted, _numbers(attempts)) if attempts.unfolded else None
        if verified is not None:  # guard: verified work is not done again
            return self._decide(delivery, verified, attempts.last_number)
        review = self._reviewed(accepted, attempts, alone=delivery.alone)
        if review.verdict is not None:
            return self._decide(delivery, self._dead_letter(accepted, review.verdict), attempts.last_number)
        self.state.ledger.fold(accepted.key, attempts)
        attempt = self.state.ledger.begin(
            accepted.key,
            after=attempts.last_number,
            alone=delivery.alone,
            after_progress=review.after_progress,
            after_self_test=review.after_self_test,
        )
        self.on_crash_point(CrashPoint.ATTEMPTED, accepted.manifest_id)
        return self._attempt(delivery, attempt)

    def _reviewed(self, accepted: Accepted, attempts: Attempts, *, alone: bool) -> Review:
        """Review the attempts, with a self-test if that can tell of the last one, or the next one may tell with it."""
        review = self.reviewer.review(accepted.manifest_id, attempts)
        since = review.undecided_since
        may_tell = alone or (not review.after_progress and any(each.is_experiment for each in attempts.unfolded[-1:]))
        if since is None or not may_tell or not self.self_test.has_passed_since(since):
            return review
        return self.reviewer.review(accepted.manifest_id, attempts, self_test_passed=True)

    def _open(self, accepted: Accepted) -> None:
        self.state.ledger.open(accepted.key)
        self.on_crash_point(CrashPoint.OPENED, accepted.manifest_id)

    def _attempt(self, delivery: Delivery, attempt: Attempt) -> Result:
        """Stage the manifest, keep what was verified, and decide it."""
        accepted = delivery.accepted
        try:
            commit, new_columns = self.stager.stage(accepted, attempt)
        except ManifestError as exc:
            return self._decide(delivery, self._dead_letter(accepted, exc), attempt.number)
        except EngineLost as lost:
            # Without a record of its end: if it was alone, the manifest may have killed the engine.
            if self.failures.is_stopping:  # but what asked this process to end may have ended the engine
                self.failures.add(accepted.key, attempt, lost, passing=True)
                self.failures.record()
            raise
        except Exception as exc:
            self.failures.add(accepted.key, attempt, exc)
            # Another driver may have decided meanwhile, and deleted the staging of this attempt.
            decided = self.state.ledger.state(accepted.key).outcome
            if decided is not None:  # guard: a driver whose staging was cleaned up under it finds that it lost
                self.failures.drop(accepted.key, attempt)
                found = result_of(delivery, Ending.DECIDED, decided)
                return replace(found, attempts=attempt.number, wasted=True)
            self.stager.discard(accepted, attempt)
            self.failures.record()
            raise
        try:
            self.stager.keep(commit)
            return self._decide(delivery, commit, attempt.number, new_columns)
        except Exception as exc:
            # The verified commit stays in staging, where the next attempt finds it. It may be there although the answer
            # to its write was lost, and another driver may be deciding it now: nothing of it may be deleted.
            # guard: staging whose outcome got no answer stays
            # guard: a failed write of the outcome is never held against the manifest
            self.failures.add(accepted.key, attempt, exc, passing=True)
            self.failures.record()
            raise

    def _dead_letter(self, accepted: Accepted, error: ManifestError) -> DeadLetter:
        return DeadLetter(
            manifest_id=accepted.manifest_id,
            date=accepted.date,
            reason=error.reason,
            message=error.message,
            source_uri=accepted.source_uri,
            run_id=self.state.ledger.run_id,
            decided_at=self.state.clock.now(),
        )

    def _decide(
        self, delivery: Delivery, outcome: Commit | DeadLetter, attempts: int = 0, new_columns: int = 0
    ) -> Result:
        """Record the outcome. Return the valid one, which another driver may have recorded first."""
        winner = self.state.ledger.decide(outcome)
        self.on_crash_point(CrashPoint.DECIDED, delivery.manifest_id)
        if winner == outcome and isinstance(outcome, Commit):
            manifest = delivery.accepted.manifest
            self.failures.note_commit()
            self.history.add(outcome, arrived_at=manifest.created_at if manifest else None)
        is_late = winner != outcome and isinstance(outcome, Commit)
        decided = result_of(delivery, Ending.DECIDED, winner)
        return replace(decided, attempts=attempts, new_columns=new_columns, wasted=is_late)

    def _published(self, decided: Result) -> Result:
        accepted, outcome = decided.accepted, decided.outcome
        if outcome is None:
            raise TypeError(f"manifest {decided.manifest_id}: expected an outcome")
        if not self.leaves_placed or not needs_table(outcome):
            return decided.done(self.publisher.roll_forward(accepted, outcome))
        placed = self.publisher.place(accepted, outcome)
        if not isinstance(placed, Commit):
            raise TypeError(f"manifest {accepted.manifest_id}: a commit was superseded by a dead letter")
        waiting = replace(decided.delivery, since=self.state.clock.now()) if decided.delivery else None
        return replace(decided, ending=Ending.PLACED, outcome=placed, delivery=waiting)


def _numbers(attempts: Attempts) -> list[int]:
    return [state.attempt.number for state in reversed(attempts.unfolded)]
