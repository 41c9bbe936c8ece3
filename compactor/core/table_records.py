"""The records of a table sink: which manifests each numbered batch of the table has."""

from datetime import datetime

from compactor.core.manifest_key import ManifestKey
from compactor.core.records import Document


class BatchedManifest(Document):
    """One generation of a manifest in a batch. Its commit has the files."""

    date: str
    manifest_id: str
    generation: int = 1

    @property
    def key(self) -> ManifestKey:
        return ManifestKey(self.date, self.manifest_id)


class TableBatch(Document):
    """What the table takes in one transaction. Create-only: of several processes, one writes the batch of a number.

    Attributes:
        number: From 1, without gaps. The table's fence is the number of the last batch that it took.
        manifests: No other batch that took effect has the same generation of any of them.
    """

    number: int
    manifests: list[BatchedManifest]
    run_id: str
    created_at: datetime


class FinishedBatches(Document):
    """Up to which batch every manifest is done, or held back from one that was refused.

    Overwritten; it may lag behind and never runs ahead.
    """

    upto: int


class RefusedBatch(Document):
    """A batch that the table has passed over: it never takes effect, and later batches may have its manifests.

    Create-only, and written after the table's fence has passed the batch, before any later batch is sent.

    Attributes:
        reason: Why the catalogue refused it, in its words.
    """

    number: int
    reason: str
    run_id: str
    created_at: datetime


class HeldManifest(BatchedManifest):
    """A generation of a manifest that the catalogue refused alone. No batch takes it while this is there.

    Attributes:
        batch: The refused batch that had it alone.
        reason: Why the catalogue refused it, in its words.
    """

    batch: int
    reason: str
    run_id: str
    created_at: datetime
