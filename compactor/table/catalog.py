"""The port of the catalogs that hold the table. Catalogs decide on no rule of the protocol."""

from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Protocol

from compactor.core.partitions import PartitionValues, Transform
from compactor.schema.schema import SchemaVersion
from compactor.table.upkeep import TableFolder, TableHistory


@dataclass(frozen=True, slots=True)
class FilePartition:
    """The common value of all rows of a file for one field of the partitions within a date.

    Attributes:
        name: Of the field.
        transform: Computes the value from that of the column.
        field_id: Of the column.
        type: Of the column, as the registry spells it.
        buckets: How many, for `bucket`.
        value: As in `compactor.core.partitions.PartitionValues`; may be None.
    """

    name: str
    transform: Transform
    field_id: int
    type: str
    buckets: int
    value: str | None


@dataclass(frozen=True, slots=True)
class TableFile:
    """A Parquet file of rows, as the table lists it.

    Attributes:
        records: The number of rows.
        date: As yyyy-mm-dd.
        partition: The partition within the date, if the commit names one; empty for files read from a table.
        values: For files read from a table, the values of the partition within the date, if any; None if unknown.
    """

    uri: str
    size_bytes: int
    records: int
    date: str
    partition: tuple[FilePartition, ...] = field(default=(), compare=False)
    values: PartitionValues | None = field(default=None, compare=False)


@dataclass(frozen=True, slots=True)
class TableHead:
    """The state of the table at one instant. The next change is based on it.

    Owner, fence and refused are properties of the table, because summaries of snapshots expire with them.

    Attributes:
        owner: The state whose commits the table has.
        table_id: The catalog's identity of the table; a table that is dropped and made again has another one.
        snapshot_id: The current snapshot; None for a table without one.
        fence: The number of the last batch that the table took or passed over; 0 before the first.
        schema_version: The version of the registry whose columns the table has; 0 before the first.
        refused: The number of the last batch that the table passed over; 0 if there was none.
    """

    owner: str
    table_id: str
    snapshot_id: int | None
    fence: int
    schema_version: int
    refused: int = 0


@dataclass(frozen=True, slots=True)
class TableChange:
    """What one batch does to the table, in one transaction.

    Attributes:
        batch: Its number, which becomes the fence.
        added: Files that become live.
        removed: URIs that are not live afterwards, none of them in `added`. They need not be live before.
        schema: The version whose columns the files need; None if the table has them.
        is_refused: Whether the table passes over the batch: only the fence and `refused` change.
        keeps_rows: Whether the added files have exactly the rows of the removed ones; for readers of changes.
    """

    batch: int
    added: tuple[TableFile, ...]
    removed: tuple[str, ...] = ()
    schema: SchemaVersion | None = field(default=None)
    is_refused: bool = False
    keeps_rows: bool = False


class TableCatalog(Protocol):
    """A catalog with the one table of a stream. Several processes may call it at once.

    Every method raises `TryAgainError` if the catalog or the store does not answer, and `OperatorError` if the catalog
    refuses. Methods that take a head change nothing unless the table is still the one of that head, at its snapshot;
    they also raise:

    - `TableConflict`: the table is no longer at the head; this call changed nothing.
    - `TableCommitUnknown`: no answer, or an inconclusive one (500, 502, 503, 504, a time-out). The change may be in the
      table, or may still get into it as long as the table stays at the head.
    - `TableRefused`: the catalog refuses this change, or cannot adopt its files; it may take another one.
    """

    def head(self) -> TableHead | None:
        """Read the state of the table; None if there is no table.

        Raises:
            OperatorError: Also if the table lacks the owner or the fence: this product did not make it, or another one
                removed its properties.
        """

    def create(self, owner: str, schema: SchemaVersion) -> TableHead:
        """Make the table, with fence 0, or return the head of the one that another process made first."""

    def commit(self, head: TableHead, change: TableChange) -> int:
        """Apply a change in one transaction; return the id of the snapshot with it."""

    def snapshot_of(self, batch: int) -> int | None:
        """The snapshot by which the table took a batch; None if it expired, or if there was none."""

    def live_files(self, snapshot_id: int | None = None) -> Iterator[TableFile]:
        """The files of a snapshot, by default the current one; a file that is listed twice comes twice.

        Raises:
            OperatorError: Also if there is no such snapshot.
        """

    def files_below(self, folder: str) -> frozenset[str]:
        """The URIs of all files below a folder that a snapshot has. Expired snapshots do not count.

        Args:
            folder: Ends with `/`, and is spelled as in the URIs of the files.
        """

    def history(self) -> tuple[TableHead, TableHistory] | None:
        """The state of the table with its snapshots and manifests at the same instant; None if there is no table."""

    def expire(self, head: TableHead, snapshot_ids: Collection[int]) -> None:
        """Forget snapshots. No file is removed."""

    def merge_manifests(self, head: TableHead) -> int:
        """List the same files in fewer manifests; return the id of the snapshot that does."""

    def folder(self, without: Collection[int] = ()) -> TableFolder | None:
        """The folder of the table's metadata, and which of its files are needed; None if it cannot be listed.

        Args:
            without: Snapshots whose files do not count as needed by them.

        Raises:
            OperatorError: Also if a file that the table needs is gone.
        """

    def remove(self, names: Iterable[str]) -> int:
        """Remove files from the folder of the table's metadata; return how many were there.

        Raises:
            TryAgainError: Some of the files may be gone.
        """
