"""What a run does before it listens: finishes what was decided, repeats what was begun, sweeps what was orphaned."""

from datetime import timedelta

from compactor.batches import BatchResult, BatchRunner
from compactor.errors import CompactorError
from compactor.layout import Layout
from compactor.ledger import Ledger
from compactor.logs import log_event
from compactor.ports import Clock, ObjectStore

ORPHAN_AGE_SECONDS = 24 * 3600.0
"""Staging that nobody wrote to for so long belongs to no living attempt."""

CHECKPOINT_AGE_SECONDS = 15 * 24 * 3600.0
"""Glue ends a streaming run after 14 days at the latest, so an older checkpoint belongs to no living run."""


class Recovery:
    """Puts right what earlier runs left behind.

    Args:
        store: Where everything is.
        layout: The places.
        ledger: Knows the open manifests.
        runner: Carries manifests on.
        clock: Tells the age of what is left.
    """

    def __init__(self, store: ObjectStore, layout: Layout, ledger: Ledger, runner: BatchRunner, clock: Clock) -> None:
        self._store = store
        self._layout = layout
        self._ledger = ledger
        self._runner = runner
        self._clock = clock

    def recover(self) -> BatchResult:
        """Carry every open manifest on: decided ones roll forward, attempted ones are tried again, each alone.

        The cost depends on the number of open manifests only, however many are done.
        """
        open_ids = list(self._ledger.open_ids())
        if open_ids:
            log_event("recovery.started", open_manifests=len(open_ids))
        return self._runner.resume(open_ids)

    def sweep(self) -> int:
        """Delete staging of manifests that are not open, and checkpoints of dead runs, once they are old enough.

        Returns:
            How many objects were deleted.
        """
        still_open = set(self._ledger.open_ids())
        orphans = [
            *self._old_objects(self._layout.staging_folder, ORPHAN_AGE_SECONDS, spared=still_open),
            *self._old_objects(self._layout.checkpoints_folder, CHECKPOINT_AGE_SECONDS, spared=set()),
        ]
        if orphans:
            self._store.delete(orphans)
            log_event("orphans.swept", objects=len(orphans))
        return len(orphans)

    def drop_checkpoints(self) -> None:
        """Delete the checkpoints of this run, which nobody will use again; a later run sweeps what stays."""
        mine = self._layout.checkpoint(self._ledger.run_id)
        listed = self._store.list(self._layout.checkpoints_folder)
        try:
            self._store.delete([info.uri for info in listed if info.uri.startswith(mine)])
        except CompactorError as exc:
            log_event("checkpoints.kept", level="warning", error=str(exc)[:500])

    def _old_objects(self, folder: str, age_seconds: float, *, spared: set[str]) -> list[str]:
        """Objects of the sub-folders in which nothing was written for so long."""
        limit = self._clock.now() - timedelta(seconds=age_seconds)
        by_owner: dict[str, list[str]] = {}
        alive = set(spared)
        for info in self._store.list(folder):
            owner = info.uri.removeprefix(folder).partition("/")[0]
            by_owner.setdefault(owner, []).append(info.uri)
            if info.modified_at > limit:
                alive.add(owner)
        return [uri for owner, uris in by_owner.items() if owner not in alive for uri in uris]
