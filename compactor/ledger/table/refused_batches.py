"""Batches that the table has passed over, and the manifests that are held back, as they are on record."""

from collections.abc import Iterator
from dataclasses import dataclass

from compactor.core.documents.table_records import BatchedManifest, HeldManifest, RefusedBatch, TableBatch
from compactor.core.errors import RecordUnreadable
from compactor.core.layout import Layout, ManifestKey
from compactor.core.map_ordered import map_ordered
from compactor.core.ports import Clock, ObjectStore
from compactor.ledger.state import State


@dataclass(frozen=True, slots=True)
class RefusedBatches:
    """Reads and writes the refusals of one state, for one run; what only reads has none."""

    store: ObjectStore
    layout: Layout
    clock: Clock
    run_id: str = ""

    def has(self, number: int) -> bool:
        """Whether the table has passed over a batch. The record says so by being there, and why is for people."""
        return self.store.stat(self.layout.refused_batch(number)) is not None

    def record(self, batch: TableBatch, reason: str) -> None:
        """Record that the table has passed over a batch; its manifest is held back if it was alone in it.

        The manifest comes first, so that it is not held back again by a process that is late, once the batch is on
        record as refused and an operator has released the manifest. One that was late amid this takes it back: the
        record of the batch tells which run held the manifest back.

        Args:
            batch: The batch; the fence of the table has its number without its files.
            reason: Why the catalog refused it. The reason of the first process stays.
        """
        if self.has(batch.number):
            return
        held = self._hold(batch.manifests[0], batch.number, reason) if len(batch.manifests) == 1 else None
        refusal = RefusedBatch(
            number=batch.number,
            reason=reason,
            run_id=self.run_id,
            created_at=self.clock.now(),
            held_by=held.run_id if held is not None else "",
        )
        uri = self.layout.refused_batch(batch.number)
        if self.store.create(uri, refusal.to_json()) or held is None or held.run_id != self.run_id:
            return
        first = RefusedBatch.read(self.store.read(uri), uri, "a refused batch")
        if first.held_by not in {"", self.run_id}:  # guard: a process that was overtaken holds back what it held back
            self.release(held)  # guard: what was released is not held back again by a process that was late

    def _hold(self, alone: BatchedManifest, batch: int, reason: str) -> HeldManifest | None:
        """Hold a manifest back, unless it is; return the record of that, or None if it was released just now."""
        named = alone.model_dump()
        held = HeldManifest(**named, batch=batch, reason=reason, run_id=self.run_id, created_at=self.clock.now())
        is_made = self.store.create(self.layout.held(alone.key, alone.generation), held.to_json())
        return held if is_made else self.held(alone.key, alone.generation)

    def is_held(self, key: ManifestKey, generation: int) -> bool:
        """Whether a generation of a manifest is held back."""
        return self.store.stat(self.layout.held(key, generation)) is not None

    def held(self, key: ManifestKey, generation: int) -> HeldManifest | None:
        """A generation of a manifest that is held back; None if it is not."""
        return self._held(self.layout.held(key, generation))

    def all_held(self) -> Iterator[HeldManifest]:
        """All that is held back."""
        uris = (info.uri for info in self.store.list(self.layout.held_folder))
        return (found for found in map_ordered(self._held, uris) if found is not None)

    def is_due(self, held: HeldManifest) -> bool:
        """Whether the table ought to have a manifest that is held back: no rebuild has taken its place."""
        return self.store.stat(self.layout.outcome(held.key, held.generation + 1)) is None

    def due(self) -> int:
        """How many manifests are held back that the table ought to have. What cannot be read counts, as one of them."""
        uris = (info.uri for info in self.store.list(self.layout.held_folder))
        return sum(map_ordered(self._is_due, uris))

    def release(self, held: HeldManifest) -> None:
        """Let batches take a manifest again."""
        self.store.delete([self.layout.held(held.key, held.generation)])

    def _is_due(self, uri: str) -> bool:
        try:
            held = self._held(uri)
        except RecordUnreadable:
            return True
        return held is not None and self.is_due(held)

    def _held(self, uri: str) -> HeldManifest | None:
        return HeldManifest.find(self.store, uri, "a manifest that is held back")


def refused_batches(state: State) -> RefusedBatches:
    """The refusals of a state, for what only reads them."""
    return RefusedBatches(state.store, state.layout, state.clock)
