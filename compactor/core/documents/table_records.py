"""The records of a table: which manifests each numbered batch contains."""

from datetime import datetime

from pydantic import Field

from compactor.core.documents.document import Document, ManifestRecord


class BatchedManifest(ManifestRecord):
    """One generation of a manifest in a batch. Its commit has the files."""

    generation: int = 1


class TableBatch(Document):
    """One transaction on the table. Create-only, so that only one process writes the batch with a given number.

    Attributes:
        number: From 1, without gaps. The table's fence is its last batch number.
        manifests: Effective batches never share a manifest's generation. A batch with a merge has only rebuilt
            manifests, if any; the merge then contains what remains of merged files with their rows.
        merge: The merge whose files replace their parts; may be empty.
        unmerged: Merged files that are replaced by their parts.
        released: Merged files whose parts may be removed from now on. The table stays unchanged: the batch only ensures
            that no other batch with its number needs these parts.
    """

    number: int
    manifests: list[BatchedManifest]
    merge: str = ""
    unmerged: list[str] = Field(default_factory=list)
    released: list[str] = Field(default_factory=list)
    run_id: str
    created_at: datetime

    @property
    def replaces_files(self) -> bool:
        """Whether the batch may remove files from the table."""
        # guard: a merge started before originals may be deleted is never applied
        is_of_merges = bool(self.merge or self.unmerged or self.released)
        return is_of_merges or any(each.generation > 1 for each in self.manifests)


class MergedPart(BatchedManifest):
    """A file of a commit whose rows are in a merged file, consecutively.

    Attributes:
        uri: The file. It stays until it is released.
    """

    uri: str
    rows: int
    size_bytes: int


class MergedFile(Document):
    """A file with the rows of several files of one partition.

    Attributes:
        rows: Rows in its footer: the sum over its parts.
        partition: The values of its partition within the date.
        parts: The files with its rows, in order. All are files of commits, never merged files.
    """

    uri: str
    rows: int
    size_bytes: int
    date: str
    partition: list[str | None] = Field(default_factory=list)
    parts: list[MergedPart]


class TableProgress(Document):
    """A job's progress with the table, for operators. Overwritten after each commit that succeeds or fails.

    Attributes:
        waiting: The job's published manifests that are not in the table yet.
        waiting_since: When the first of these was published.
        last_batch: The last batch that the job applied; 0 before the first.
        committed_at: When it applied that batch.
        failures: Failed commits since then.
        failing_since: When the first of these failed.
        error: Why the last of these failed; empty if none did.
        published: The first `NOTED_MANIFESTS` waiting manifests: a run of another shard may commit them.
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
    published: tuple[BatchedManifest, ...] = ()


class FinishedBatches(Document):
    """The batch up to which every manifest is done or held back. Overwritten; may lag, but never runs ahead."""

    upto: int


class RefusedBatch(Document):
    """A batch that the table skipped. It never takes effect, and later batches may contain its manifests.

    Create-only. It is written after the table's fence has passed the batch, and before any later batch is sent.

    Attributes:
        reason: The catalog's error.
        held_by: The run that holds back its only manifest; empty if it had several, or if unknown.
    """

    number: int
    reason: str
    run_id: str
    created_at: datetime
    held_by: str = ""


class HeldManifest(BatchedManifest):
    """A manifest's generation that the catalog refused on its own. No batch includes it while this record exists.

    Attributes:
        generation: The generation of its outcome.
        batch: The refused batch.
        reason: The catalog's error.
    """

    batch: int
    reason: str
    run_id: str
    created_at: datetime


class DoomedMetadata(Document):
    """Metadata files of the table that may contain minimum and maximum values from erased rows.

    Written before their snapshots expire, and deleted once they are removed, so that a later call can finish an
    interrupted erasure.

    Attributes:
        names: File names in the metadata folder. Files that the table still needs are kept.
    """

    names: list[str]
