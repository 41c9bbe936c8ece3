"""One manifest's life, from delivered to done: open, attempt, stage, verify, decide, publish."""

from dataclasses import dataclass, field, replace

from compactor.core.crash_points import CrashPoint, OnCrashPoint, ignore_crash_point
from compactor.core.documents.changes import Commit, DeadLetter
from compactor.core.documents.records import Attempt
from compactor.core.errors import EngineLost, ManifestError
from compactor.core.rules.attempts import Attempts
from compactor.job.attempts import AttemptFailures, AttemptReviewer, Review, SelfTest
from compactor.job.publication import Publisher
from compactor.job.results import Delivery, Ending, Result, result_of
from compactor.job.shards import Share
from compactor.job.staging import Stager
from compactor.ledger.ledger import LedgerState
from compactor.ledger.sizing_history import SizingHistory
from compactor.ledger.state import State
from compactor.table.named import needs_table

LEFT_SECONDS = 900.0
"""The age up to which a living run's attempt is left to it.

A run may have lost track of an older one, for instance if the record of an attempt was written but the response was
lost, and its manifest went to another shard before the retry. A duplicate attempt wastes work at worst.
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class ManifestCompactor:
    """Takes one manifest as far as possible. Safe to repeat for any manifest at any time, from any driver.

    Attributes:
        stager: Stages and verifies an attempt, and saves the verified commit.
        reviewer: Decides whether a manifest is retried.
        self_test: Shows whether a manifest is at fault, or the environment.
        share: Which manifests this run takes, and which other runs are alive.
        waits_for_table: Whether published manifests wait for a table to list their files.
    """

    state: State
    stager: Stager
    failures: AttemptFailures
    reviewer: AttemptReviewer
    self_test: SelfTest
    publisher: Publisher
    history: SizingHistory
    share: Share = field(default_factory=Share)
    on_crash_point: OnCrashPoint = ignore_crash_point
    waits_for_table: bool = False

    def compact(self, delivery: Delivery) -> Result:
        """Bring a delivered manifest to done, or to its final place.

        Raises:
            TryAgainError: A transient failure, or an inconsistent staged result; the attempt is on record.
            OperatorError: An operator must act.
        """
        accepted = delivery.accepted
        self.failures.record()
        found = self.state.ledger.state(accepted.key)
        if self._is_elsewhere(found):  # guard: what a living run works on is left to it
            return result_of(delivery, Ending.ELSEWHERE)
        if found.outcome is not None and found.is_done:  # guard: a done manifest is a no-op
            self.publisher.clean_up(accepted, found.outcome)
            result = result_of(delivery, Ending.ALREADY_DONE, found.outcome)
        elif found.outcome is not None:  # guard: a decided manifest is rolled forward, not worked on again
            result = self._published(result_of(delivery, Ending.DECIDED, found.outcome))
        else:
            draft = self._drafted(delivery, found.attempts)
            result = self._published(draft if draft.ending is Ending.DECIDED else self._decided(draft))
        if delivery.uri != accepted.source_uri:
            self.publisher.remove_delivery(delivery.uri, delivery.digest)
        return result

    def _is_elsewhere(self, found: LedgerState) -> bool:
        """Whether a living run of another shard is about to decide it."""
        last = found.attempts.unfolded[-1] if found.outcome is None and found.attempts.unfolded else None
        if self.share.is_whole or last is None or last.failure is not None:
            return False
        run_id, age = last.attempt.run_id, self.state.clock.now() - last.attempt.started_at
        is_left = run_id != self.state.ledger.run_id and abs(age.total_seconds()) < LEFT_SECONDS
        return is_left and self.share.is_living(run_id)

    def _drafted(self, delivery: Delivery, attempts: Attempts) -> Result:
        """The decision to make: a refusal, giving up, or an attempt's commit.

        Another driver's outcome is returned as decided.
        """
        key = delivery.accepted.key
        if delivery.refusal is not None:
            return self._letter(delivery, delivery.refusal)
        self.state.ledger.open(key)
        self.on_crash_point(CrashPoint.OPENED, key.id)
        numbers = [each.attempt.number for each in reversed(attempts.unfolded)]
        verified = self.stager.verified(delivery.accepted, numbers) if numbers else None
        if verified is not None:  # guard: verified work is not repeated
            return result_of(delivery, Ending.DRAFTED, verified, attempts=attempts.last_number)
        review = self._reviewed(key.id, attempts, alone=delivery.alone)
        if review.verdict is not None:
            return replace(self._letter(delivery, review.verdict), attempts=attempts.last_number)
        self.state.ledger.fold(key, attempts)
        attempt = self.state.ledger.begin(
            key,
            after=attempts.last_number,
            alone=delivery.alone,
            after_progress=review.after_progress,
            after_self_test=review.after_self_test,
        )
        self.on_crash_point(CrashPoint.ATTEMPTED, key.id)
        return replace(self._made(delivery, attempt), attempt=attempt, attempts=attempt.number)

    def _reviewed(self, manifest_id: str, attempts: Attempts, *, alone: bool) -> Review:
        """Review the attempts, with a self-test if that may explain the last failure or the next one."""
        review = self.reviewer.review(manifest_id, attempts)
        since = review.undecided_since
        may_tell = alone or (not review.after_progress and any(each.is_experiment for each in attempts.unfolded[-1:]))
        if since is None or not may_tell or not self.self_test.has_passed_since(since):
            return review
        return self.reviewer.review(manifest_id, attempts, self_test_passed=True)

    def _made(self, delivery: Delivery, attempt: Attempt) -> Result:
        """Stage a manifest; record a failure, unless another driver has decided the manifest."""
        accepted = delivery.accepted
        try:
            commit, new_columns = self.stager.stage(accepted, attempt)
        except ManifestError as exc:
            return self._letter(delivery, exc)
        except EngineLost as lost:
            # No end is recorded: if the manifest was alone, it may have killed the engine.
            if self.failures.is_stopping:  # the request to end may have ended the engine, too
                self.failures.add(accepted.key, attempt, lost, passing=True)
                self.failures.record()
            raise
        except Exception as exc:
            self.failures.add(accepted.key, attempt, exc)
            # Another driver may have decided meanwhile, and deleted this attempt's staging.
            decided = self.state.ledger.state(accepted.key).outcome
            if decided is not None:  # guard: a driver whose staging was deleted notices that it lost
                self.failures.drop(accepted.key, attempt)
                return replace(result_of(delivery, Ending.DECIDED, decided), wasted=True)
            self.stager.discard(accepted, attempt)
            self.failures.record()
            raise
        return replace(result_of(delivery, Ending.DRAFTED, commit), new_columns=new_columns)

    def _letter(self, delivery: Delivery, error: ManifestError) -> Result:
        accepted = delivery.accepted
        letter = DeadLetter(
            manifest_id=accepted.manifest_id,
            date=accepted.date,
            reason=error.reason,
            message=error.message,
            source_uri=accepted.source_uri,
            run_id=self.state.ledger.run_id,
            decided_at=self.state.clock.now(),
        )
        return result_of(delivery, Ending.DRAFTED, letter)

    def _decided(self, draft: Result) -> Result:
        """Record the outcome; return the valid one, which another driver may have recorded first."""
        accepted, outcome, attempt = draft.accepted, draft.verdict, draft.attempt
        try:
            if attempt is not None and isinstance(outcome, Commit):
                self.stager.keep(outcome)
            winner = self.state.ledger.decide(outcome)
            self.on_crash_point(CrashPoint.DECIDED, accepted.manifest_id)
            if winner == outcome and isinstance(outcome, Commit):
                self.failures.note_commit()
                self.history.add(outcome, arrived_at=accepted.manifest.created_at if accepted.manifest else None)
        except Exception as exc:
            if attempt is not None:
                # A verified commit stays in staging, where the next attempt finds it. It may exist although the
                # response to its write was lost, and another driver may be deciding it now: none of it may be deleted.
                # guard: staging stays if the write of its outcome got no answer
                # guard: a failed write of the outcome is never held against the manifest
                self.failures.add(accepted.key, attempt, exc, passing=True)
                self.failures.record()
            raise
        is_late = winner != outcome and isinstance(outcome, Commit)
        return replace(draft, ending=Ending.DECIDED, outcome=winner, wasted=is_late)

    def _published(self, decided: Result) -> Result:
        accepted, outcome = decided.accepted, decided.verdict
        if not self.waits_for_table or not needs_table(outcome):
            return decided.done(self.publisher.roll_forward(accepted, outcome))
        published = self.publisher.place(accepted, outcome)
        if not isinstance(published, Commit):
            raise TypeError(f"manifest {accepted.manifest_id}: a commit was superseded by a dead letter")
        waiting = replace(decided.taken_in, since=self.state.clock.now())
        return replace(decided, ending=Ending.PUBLISHED, outcome=published, delivery=waiting)
