"""What a run does before it listens: finishes what was decided, repeats what was begun, sweeps what was orphaned."""

from collections.abc import Callable

from compactor.core.errors import CompactorError
from compactor.core.layout import Layout
from compactor.core.ports import ObjectStore
from compactor.job.batches import BatchResult, BatchRunner
from compactor.job.retention.cleaner import Cleaner
from compactor.ledger.ledger import Ledger
from compactor.telemetry.logs import log_event


class Recovery:
    """Puts right what earlier runs left behind.

    Args:
        store: Where everything is.
        layout: The places.
        ledger: Knows the open manifests.
        runner: Carries manifests on.
        cleaner: Sweeps up.
    """

    def __init__(
        self, store: ObjectStore, layout: Layout, ledger: Ledger, runner: BatchRunner, cleaner: Cleaner
    ) -> None:
        self._store = store
        self._layout = layout
        self._ledger = ledger
        self._runner = runner
        self._cleaner = cleaner

    def recover(self, *, is_stopping: Callable[[], bool] = lambda: False) -> BatchResult:
        """Carry every open manifest on: decided ones roll forward, attempted ones are tried again, each alone.

        The cost depends on the number of open manifests only, however many are done.
        """
        open_ids = list(self._ledger.open_ids())
        if open_ids:
            log_event("recovery.started", open_manifests=len(open_ids))
        return self._runner.resume(open_ids, is_stopping=is_stopping)

    def sweep(self) -> None:
        """Delete staging of manifests that are not open, and checkpoints of dead runs, once they are old enough."""
        report = self._cleaner.sweep()
        if report.removed:
            log_event("orphans.swept", removed=dict(report.removed))

    def drop_checkpoints(self) -> None:
        """Delete the checkpoints of this run, which nobody will use again; a later run sweeps what stays."""
        mine = self._layout.checkpoint(self._ledger.run_id)
        listed = self._store.list(self._layout.checkpoints_folder)
        try:
            self._store.delete([info.uri for info in listed if info.uri.startswith(mine)])
        except CompactorError as exc:
            log_event("checkpoints.kept", error=exc)
