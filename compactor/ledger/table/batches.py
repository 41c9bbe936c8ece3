"""The numbered batches of a table sink, the batches that the table skipped, and the manifests held back."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from compactor.core.documents.table_records import (
    BatchedManifest,
    FinishedBatches,
    HeldManifest,
    RefusedBatch,
    TableBatch,
)
from compactor.core.errors import ObjectNotFound, OperatorError, RecordUnreadable
from compactor.core.layout import ManifestKey
from compactor.core.map_ordered import map_ordered
from compactor.ledger.state import State

SEARCHED_BATCHES = 2000
"""How many batches are read to find a manifest's batch: more than a day of them."""

CLOCKS_DIFFER = timedelta(minutes=5)
"""The maximum clock difference between the processes that decide a manifest and those that batch it."""

_THREADS = 4


@dataclass(frozen=True, slots=True)
class RefusedBatches:
    """The batches that the table skipped, and the manifests that are held back."""

    state: State

    def has(self, number: int) -> bool:
        """Whether the table skipped a batch. The record's existence shows this; its reason is for people."""
        return self.state.store.stat(self.state.layout.refused_batch(number)) is not None

    def record(self, batch: TableBatch, reason: str) -> None:
        """Record that the table skipped a batch; its manifest is held back if the batch had no other.

        The manifest's record comes first, so that a late process does not hold the manifest back again after the batch
        was recorded as refused and an operator released the manifest. A process that was late in between undoes its own
        record: the batch's record shows which run held the manifest back.

        Args:
            batch: The batch; the table's fence has its number, but not its files.
            reason: The catalog's error. The first process's reason is kept.
        """
        if self.has(batch.number):
            return
        held = self._hold(batch.manifests[0], batch.number, reason) if len(batch.manifests) == 1 else None
        refusal = RefusedBatch(
            number=batch.number,
            reason=reason,
            run_id=self.state.ledger.run_id,
            created_at=self.state.clock.now(),
            held_by=held.run_id if held is not None else "",
        )
        uri = self.state.layout.refused_batch(batch.number)
        if self.state.store.create(uri, refusal.to_json()) or held is None or held.run_id != self.state.ledger.run_id:
            return
        first = RefusedBatch.read(self.state.store.read(uri), uri, "a refused batch")
        # guard: a process that was overtaken holds back what it held back
        if first.held_by not in {"", self.state.ledger.run_id}:
            self.release(held)  # guard: a late process does not hold back a released manifest again

    def _hold(self, alone: BatchedManifest, batch: int, reason: str) -> HeldManifest | None:
        """Hold a manifest back, unless it is already; return that record, or None if it was released just now."""
        run_id, now = self.state.ledger.run_id, self.state.clock.now()
        held = HeldManifest(**alone.model_dump(), batch=batch, reason=reason, run_id=run_id, created_at=now)
        is_made = self.state.store.create(self.state.layout.held(alone.key, alone.generation), held.to_json())
        return held if is_made else self.held(alone.key, alone.generation)

    def is_held(self, key: ManifestKey, generation: int) -> bool:
        """Whether a manifest's generation is held back."""
        return self.state.store.stat(self.state.layout.held(key, generation)) is not None

    def held(self, key: ManifestKey, generation: int) -> HeldManifest | None:
        """The record of a held-back generation; None if it is not held back."""
        return self._held(self.state.layout.held(key, generation))

    def all_held(self) -> Iterator[HeldManifest]:
        """All records of held-back manifests."""
        uris = (info.uri for info in self.state.store.list(self.state.layout.held_folder))
        return (found for found in map_ordered(self._held, uris) if found is not None)

    def is_due(self, held: HeldManifest) -> bool:
        """Whether the table should have a held-back manifest: no rebuild has replaced it."""
        return self.state.store.stat(self.state.layout.outcome(held.key, held.generation + 1)) is None

    def due(self) -> int:
        """How many held-back manifests the table should have. An unreadable record counts as one."""
        uris = (info.uri for info in self.state.store.list(self.state.layout.held_folder))
        return sum(map_ordered(self._is_due, uris))

    def release(self, held: HeldManifest) -> None:
        """Allow batches to include a manifest again."""
        self.state.store.delete([self.state.layout.held(held.key, held.generation)])

    def _is_due(self, uri: str) -> bool:
        try:
            held = self._held(uri)
        except RecordUnreadable:
            return True
        return held is not None and self.is_due(held)

    def _held(self, uri: str) -> HeldManifest | None:
        return HeldManifest.find(self.state.store, uri, "a manifest that is held back")


@dataclass(frozen=True, slots=True)
class TableBatches:
    """The batches on record."""

    state: State

    @property
    def refused(self) -> RefusedBatches:
        """The batches that the table skipped."""
        return RefusedBatches(self.state)

    def batch(self, number: int) -> TableBatch | None:
        """The batch with a number; None if there is none yet. It never changes."""
        uri = self.state.layout.table_batch(number)
        return TableBatch.find(self.state.store, uri, "a batch")

    def taken(self, number: int, fence: int) -> TableBatch:
        """A batch that the table took or skipped, whose last one is the fence."""
        batch = self.batch(number)
        if batch is None:
            raise OperatorError(
                f"the table's last batch is {fence}, but batch {number} is not on record at "
                f"{self.state.layout.table_batch(number)}; expected the state from which the table was made"
            )
        return batch

    def has(self, number: int) -> bool:
        """Whether a number has a batch."""
        return self.state.store.stat(self.state.layout.table_batch(number)) is not None

    def create(
        self,
        number: int,
        manifests: Sequence[BatchedManifest],
        *,
        merge: str = "",
        unmerged: Sequence[str] = (),
        released: Sequence[str] = (),
    ) -> TableBatch:
        """Record a batch, unless its number has one; see `TableBatch`.

        Returns:
            The valid batch: this one, or another process's.
        """
        made = TableBatch(
            number=number,
            manifests=list(manifests),
            merge=merge,
            unmerged=list(unmerged),
            released=list(released),
            run_id=self.state.ledger.run_id,
            created_at=self.state.clock.now(),
        )
        if self.state.store.create(self.state.layout.table_batch(number), made.to_json()):
            return made
        found = self.batch(number)
        if found is None:
            raise ObjectNotFound(f"{self.state.layout.table_batch(number)}: existed a moment ago")
        return found

    def recorded(self) -> int:
        """The last batch number on record: found by doubling, as there are no gaps."""
        low, high = 0, 1
        while self.batch(high) is not None:
            low, high = high, high * 2
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (middle, high) if self.batch(middle) is not None else (low, middle)
        return low

    def number_of(
        self, key: ManifestKey, generation: int, *, since: datetime, after: int = 0, searches_all: bool = False
    ) -> int | None:
        """The batch number of a manifest's generation; None if it is in none of `SEARCHED_BATCHES` batches.

        Batches that the table skipped do not count.

        Args:
            key: The manifest.
            generation: From 1.
            since: When it was decided: the search starts with batches from that time.
            after: The last batch that can be skipped.
            searches_all: Read as many batches as necessary.
        """
        last = self.recorded()
        numbers = range(max(self._first_from(since - CLOCKS_DIFFER, last), after + 1), last + 1)
        numbers = numbers if searches_all else numbers[:SEARCHED_BATCHES]
        named = (key, generation)
        found = map_ordered(self.batch, numbers, threads=_THREADS)
        has_it = (each for each in found if each and named in [(one.key, one.generation) for one in each.manifests])
        return next((each.number for each in has_it if not self.refused.has(each.number)), None)

    def _first_from(self, moment: datetime, last: int) -> int:
        """The first batch from a time on; one more than the last if all are earlier."""
        low, high = 0, last + 1
        while high - low > 1:
            middle = (low + high) // 2
            batch = self.batch(middle)
            low, high = (middle, high) if batch is not None and batch.created_at < moment else (low, middle)
        return high

    def finished(self) -> int:
        """A batch up to which every manifest is done; later ones may be done, too."""
        found = FinishedBatches.find(self.state.store, self.state.layout.finished_batches, "the number of a batch")
        return found.upto if found is not None else 0

    def note_finished(self, upto: int) -> None:
        """Record that every manifest in the batches up to this one is done."""
        self.state.store.put(self.state.layout.finished_batches, FinishedBatches(upto=upto).to_json())
