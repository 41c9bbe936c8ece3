"""Prepares what earlier runs left open: records which attempts ended with their run, and deletes orphans."""

from collections import defaultdict
from contextlib import suppress
from dataclasses import dataclass

from compactor.core.attempts import to_blame
from compactor.core.errors import CompactorError, StuckError
from compactor.core.map_ordered import map_ordered
from compactor.core.records import Accepted, Attempt, AttemptFailure
from compactor.job.retention.cleaner import Cleaner
from compactor.ledger.heartbeat import Runs
from compactor.ledger.state import State
from compactor.telemetry.logs import log_event


@dataclass(frozen=True, slots=True)
class _Casualty:
    """A manifest that was in flight when its run died.

    Attributes:
        earlier_deaths: How many earlier attempts at it ended with their run.
    """

    accepted: Accepted
    attempt: Attempt
    earlier_deaths: int


@dataclass(frozen=True, slots=True)
class Recovery:
    """Finds what earlier runs left open."""

    state: State
    runs: Runs
    cleaner: Cleaner

    def open_ids(self) -> list[str]:
        """Record the deaths of runs, and return the ids of all open manifests.

        The cost depends on the number of open manifests only, however many are done.
        """
        open_ids = list(self.state.ledger.open_ids())
        casualties: dict[str, list[_Casualty]] = defaultdict(list)
        for found in map_ordered(self._casualties, open_ids):
            for casualty in found:
                casualties[casualty.attempt.run_id].append(casualty)
        living = self.runs.living_among(casualties) | {self.state.ledger.run_id} if casualties else frozenset()
        for run_id, lost in casualties.items():
            if run_id not in living:
                self._record_death(run_id, lost)
        return open_ids

    def _casualties(self, manifest_id: str) -> list[_Casualty]:
        """The attempts at an open manifest without a recorded end; none if a record of it cannot be read."""
        with suppress(StuckError):
            accepted = self.state.ledger.accepted(manifest_id)
            if accepted is not None:
                attempts = self.state.ledger.state(accepted.key).attempts
                unended = [state.attempt for state in attempts.unfolded if state.failure is None]
                return [_Casualty(accepted, attempt, attempts.deaths) for attempt in unended]
        return []

    def _record_death(self, run_id: str, lost: list[_Casualty]) -> None:
        blamed = to_blame({each.accepted.manifest_id: each.earlier_deaths for each in lost})
        log_event("run.died", dead_run_id=run_id, in_flight=len(lost), blamed=blamed or "")
        for each in lost:
            failure = AttemptFailure(
                manifest_id=each.accepted.manifest_id,
                number=each.attempt.number,
                passing=each.accepted.manifest_id != blamed,
                died=True,
                error=f"run {run_id} died with {len(lost)} manifests in flight",
                failed_at=self.state.clock.now(),
            )
            self.state.ledger.fail(each.accepted.key, failure)

    def sweep(self) -> None:
        """Delete old staging of manifests that are not open, and old checkpoints of dead runs."""
        report = self.cleaner.sweep()
        if report.removed:
            log_event("orphans.swept", removed=dict(report.removed))

    def drop_checkpoints(self) -> None:
        """Delete the checkpoints of this run, which no other run uses; a later sweep deletes what stays."""
        layout = self.state.layout
        mine = layout.checkpoint(self.state.ledger.run_id)
        try:
            listed = self.state.store.list(layout.checkpoints_folder)
            self.state.store.delete([info.uri for info in listed if info.uri.startswith(mine)])
        except CompactorError as exc:
            log_event("checkpoints.kept", error=exc)
