"""The numbered batches of a table sink, as they are on record."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from compactor.core.documents.table_records import BatchedManifest, FinishedBatches, TableBatch
from compactor.core.errors import ObjectNotFound
from compactor.core.layout import Layout, ManifestKey
from compactor.core.map_ordered import map_ordered
from compactor.core.ports import Clock, ObjectStore
from compactor.ledger.table.refused_batches import RefusedBatches

SEARCHED_BATCHES = 2000
"""How many batches are read to find the one of a manifest: more than a day of them."""

CLOCKS_DIFFER = timedelta(minutes=5)
"""By how much the clocks of those who decide a manifest and of those who batch it may differ."""

_THREADS = 4


@dataclass(frozen=True, slots=True)
class TableBatches:
    """Reads and writes the batches of one state, for one run."""

    store: ObjectStore
    layout: Layout
    clock: Clock
    run_id: str

    @property
    def refused(self) -> RefusedBatches:
        """Those of them that the table has passed over."""
        return RefusedBatches(self.store, self.layout, self.clock, self.run_id)

    def batch(self, number: int) -> TableBatch | None:
        """The batch of a number; None if there is none yet. It never changes."""
        uri = self.layout.table_batch(number)
        return TableBatch.find(self.store, uri, "a batch")

    def has(self, number: int) -> bool:
        """Whether a number has a batch."""
        return self.store.stat(self.layout.table_batch(number)) is not None

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
            The batch that is valid from now on: this one, or another process's.
        """
        made = TableBatch(
            number=number,
            manifests=list(manifests),
            merge=merge,
            unmerged=list(unmerged),
            released=list(released),
            run_id=self.run_id,
            created_at=self.clock.now(),
        )
        if self.store.create(self.layout.table_batch(number), made.to_json()):
            return made
        found = self.batch(number)
        if found is None:
            raise ObjectNotFound(f"{self.layout.table_batch(number)}: it was there a moment ago")
        return found

    def recorded(self) -> int:
        """The number of the last batch on record: found by doubling, as there are no gaps."""
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
        """The number of the batch that has a generation of a manifest; None if none of `SEARCHED_BATCHES` has.

        A batch that the table has passed over counts for nothing.

        Args:
            key: The manifest.
            generation: From 1.
            since: When it was decided: the search begins with the batches of that time.
            after: The last batch that need not be read.
            searches_all: Read as many batches as it takes.
        """
        last = self.recorded()
        numbers = range(max(self._first_from(since - CLOCKS_DIFFER, last), after + 1), last + 1)
        numbers = numbers if searches_all else numbers[:SEARCHED_BATCHES]
        named = (key, generation)
        found = map_ordered(self.batch, numbers, threads=_THREADS)
        has_it = (each for each in found if each and named in [(one.key, one.generation) for one in each.manifests])
        return next((each.number for each in has_it if not self.refused.has(each.number)), None)

    def _first_from(self, moment: datetime, last: int) -> int:
        """The number of the first batch of a time or later; one more than the last if all are earlier."""
        low, high = 0, last + 1
        while high - low > 1:
            middle = (low + high) // 2
            batch = self.batch(middle)
            low, high = (middle, high) if batch is not None and batch.created_at < moment else (low, middle)
        return high

    def finished(self) -> int:
        """A batch up to which every manifest is done; others behind it may be, too."""
        uri = self.layout.finished_batches
        try:
            data = self.store.read(uri)
        except ObjectNotFound:
            return 0
        return FinishedBatches.read(data, uri, "the number of a batch").upto

    def note_finished(self, upto: int) -> None:
        """Record that every manifest of the batches up to this one is done."""
        self.store.put(self.layout.finished_batches, FinishedBatches(upto=upto).to_json())
