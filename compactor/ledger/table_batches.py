"""The numbered batches of a table sink, as they are on record."""

from collections.abc import Sequence
from dataclasses import dataclass

from compactor.core.errors import ObjectNotFound
from compactor.core.layout import Layout
from compactor.core.ports import Clock, ObjectStore
from compactor.core.records import Document, read_record
from compactor.core.table_records import BatchedManifest, FinishedBatches, TableBatch
from compactor.ledger.refused_batches import RefusedBatches


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
        try:
            data = self.store.read(uri)
        except ObjectNotFound:
            return None
        return read_record(TableBatch.model_validate_json, data, uri, kind="TableBatch", expected="a batch")

    def create(self, number: int, manifests: Sequence[BatchedManifest]) -> TableBatch:
        """Record a batch, unless its number has one.

        Returns:
            The batch that is valid from now on: this one, or another process's.
        """
        made = TableBatch(number=number, manifests=list(manifests), run_id=self.run_id, created_at=self.clock.now())
        if self.store.create(self.layout.table_batch(number), _json(made)):
            return made
        found = self.batch(number)
        if found is None:
            raise ObjectNotFound(f"{self.layout.table_batch(number)}: it was there a moment ago")
        return found

    def finished(self) -> int:
        """A batch up to which every manifest is done; others behind it may be, too."""
        uri = self.layout.finished_batches
        try:
            data = self.store.read(uri)
        except ObjectNotFound:
            return 0
        parse = FinishedBatches.model_validate_json
        return read_record(parse, data, uri, kind="FinishedBatches", expected="the number of a batch").upto

    def note_finished(self, upto: int) -> None:
        """Record that every manifest of the batches up to this one is done."""
        self.store.put(self.layout.finished_batches, _json(FinishedBatches(upto=upto)))


def _json(document: Document) -> bytes:
    return document.model_dump_json().encode()
