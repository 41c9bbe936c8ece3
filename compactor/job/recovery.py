"""Starts a run: finishes decided manifests, retries those that were begun, and deletes orphans."""

from collections.abc import Callable
from dataclasses import dataclass

from compactor.core.errors import CompactorError
from compactor.job.batches import BatchResult, BatchRunner
from compactor.job.retention.cleaner import Cleaner
from compactor.ledger.state import State
from compactor.telemetry.logs import log_event


@dataclass(frozen=True, slots=True)
class Recovery:
    """Finishes what earlier runs left open."""

    state: State
    runner: BatchRunner
    cleaner: Cleaner

    def recover(self, *, is_stopping: Callable[[], bool] = lambda: False) -> BatchResult:
        """Resume every open manifest: decided ones roll forward, attempted ones are tried again, each alone.

        The cost depends on the number of open manifests only, however many are done.
        """
        open_ids = list(self.state.ledger.open_ids())
        if open_ids:
            log_event("recovery.started", open_manifests=len(open_ids))
        return self.runner.resume(open_ids, is_stopping=is_stopping)

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
