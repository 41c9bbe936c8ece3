"""The records of a table sink: which manifests each numbered batch of the table has."""

from datetime import datetime

from pydantic import Field

from compactor.core.documents.document import Document
from compactor.core.layout import ManifestKey


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
        manifests: No other batch that took effect has the same generation of any of them. None in a batch of a merge,
            unless they are rebuilt, and the merge has what is left of merged files with their rows.
        merge: The merge whose files take the place of those that they have the rows of; empty in other batches.
        unmerged: Merged files that the files take the place of whose rows they have; none in other batches.
        released: Merged files whose parts may be removed from then on; none in other batches. It changes nothing in the
            table: no batch of its number can need these parts.
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
        """Whether files that the table had before may be gone, or may go."""
        # guard: a merge that was begun before files may go is never taken
        is_of_merges = bool(self.merge or self.unmerged or self.released)
        return is_of_merges or any(each.generation > 1 for each in self.manifests)


class MergedPart(BatchedManifest):
    """A file of a commit whose rows a merged file has.

    Attributes:
        uri: The file. It stays where it is, unless it is released.
        rows: Number of its rows, which follow each other in the merged file.
        size_bytes: Its length.
    """

    uri: str
    rows: int
    size_bytes: int


class MergedFile(Document):
    """A file with the rows of several files of one partition.

    Attributes:
        uri: Where it is.
        rows: Number of rows in its footer: the sum over its parts.
        size_bytes: Its length.
        date: The date of all its rows.
        partition: The values of its partition within the date.
        parts: The files whose rows it has, in the order of the rows. All are of commits, and none is a merged file.
    """

    uri: str
    rows: int
    size_bytes: int
    date: str
    partition: list[str | None] = Field(default_factory=list)
    parts: list[MergedPart]


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
        generation: 1, or which rebuild of it.
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
