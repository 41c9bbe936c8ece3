"""One manifest's life, from delivered to done: open, attempt, decide, publish."""

from dataclasses import dataclass, field, replace

from compactor.core.crash_points import CrashPoint, OnCrashPoint, ignore_crash_point
from compactor.core.documents.records import Commit
from compactor.job.attempts import Attempter
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
        attempter: Makes an attempt, and drafts the outcome.
        stager: Keeps what an attempt has verified.
        publisher: Carries a decided manifest to done.
        history: Learns from commits.
        share: Which manifests this run takes, and which other runs live.
        on_crash_point: Called at each crash point.
        leaves_placed: Whether manifests whose files a table has to list are left to it once they are placed.
    """

    state: State
    attempter: Attempter
    stager: Stager
    publisher: Publisher
    history: SizingHistory
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
        self.attempter.failures.record()
        found = self.state.ledger.state(accepted.key)
        if self._is_elsewhere(found):  # guard: what a living run works on is left to it
            return result_of(delivery, Ending.ELSEWHERE)
        if found.outcome is not None and found.is_done:  # guard: a done manifest is a no-op
            self.publisher.clean_up(accepted, found.outcome)
            result = result_of(delivery, Ending.ALREADY_DONE, found.outcome)
        elif found.outcome is not None:  # guard: a decided manifest is rolled forward, not worked on again
            result = self._published(result_of(delivery, Ending.DECIDED, found.outcome))
        else:
            draft = self.attempter.draft(delivery, found.attempts)
            result = self._published(draft if draft.ending is Ending.DECIDED else self._decided(draft))
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

    def _decided(self, draft: Result) -> Result:
        """Record the outcome. Return the valid one, which another driver may have recorded first."""
        accepted, outcome, attempt = draft.accepted, draft.outcome, draft.attempt
        if outcome is None:
            raise TypeError(f"manifest {draft.manifest_id}: expected an outcome")
        try:
            if attempt is not None and isinstance(outcome, Commit):
                self.stager.keep(outcome)
            winner = self.state.ledger.decide(outcome)
            self.on_crash_point(CrashPoint.DECIDED, accepted.manifest_id)
            if winner == outcome and isinstance(outcome, Commit):
                self.attempter.failures.note_commit()
                self.history.add(outcome, arrived_at=accepted.manifest.created_at if accepted.manifest else None)
        except Exception as exc:
            if attempt is not None:
                # A verified commit stays in staging, where the next attempt finds it. It may be there although the
                # answer to its write was lost, and another driver may be deciding it now: nothing of it may be deleted.
                # guard: staging whose outcome got no answer stays
                # guard: a failed write of the outcome is never held against the manifest
                self.attempter.failures.add(accepted.key, attempt, exc, passing=True)
                self.attempter.failures.record()
            raise
        is_late = winner != outcome and isinstance(outcome, Commit)
        return replace(draft, ending=Ending.DECIDED, outcome=winner, wasted=is_late)

    def _published(self, decided: Result) -> Result:
        accepted, outcome = decided.accepted, decided.outcome
        if outcome is None:
            raise TypeError(f"manifest {decided.manifest_id}: expected an outcome")
        if not self.leaves_placed or not needs_table(outcome):
            return decided.done(self.publisher.roll_forward(accepted, outcome))
        placed = self.publisher.place(accepted, outcome)
        if not isinstance(placed, Commit):
            raise TypeError(f"manifest {accepted.manifest_id}: a commit was superseded by a dead letter")
        waiting = replace(decided.taken_in, since=self.state.clock.now())
        return replace(decided, ending=Ending.PLACED, outcome=placed, delivery=waiting)
