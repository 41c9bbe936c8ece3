"""The records of a table sink: which manifests each numbered batch of the table has."""

from datetime import datetime

from compactor.core.documents.records import Document
from compactor.core.manifest_key import ManifestKey


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


class TableProgress(Document):
    """How far one job is with the table, for people to see. Overwritten after each commit that took effect or failed.

    Attributes:
        as_of: When this was so.
        waiting: Placed manifests of the job that the table has not taken.
        waiting_since: When the first of these was placed.
        last_batch: The last batch that the job applied; 0 before the first.
        committed_at: When it did.
        failures: How many commits have failed since.
        failing_since: When the first of these failed.
        error: Why the last of these failed; empty if none did.
        placed: Those that wait, the first `NOTED_MANIFESTS` of them: the run of another shard may commit them.
    """

    run_id: str
    as_of: datetime
    waiting: int = 0
    waiting_since: datetime | None = None
    last_batch: int = 0
    committed_at: datetime | None = None
    failures: int = 0
    failing_since: datetime | None = None
    error: str = ""
    placed: tuple[BatchedManifest, ...] = ()


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
        held_by: The run that holds its manifest back, if it had one; empty if it had more, or if that is not known.
    """

    number: int
    reason: str
    run_id: str
    created_at: datetime
    held_by: str = ""


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


class DoomedMetadata(Document):
    """Files of the table's metadata that may have lowest and highest values of erased rows.

    Written before their snapshots expire, and deleted once they are removed, so that an erasure that died is finished.

    Attributes:
        names: In the folder of the metadata. Those that the table still needs are not removed.
    """

    names: list[str]
