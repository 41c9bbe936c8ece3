"""The port of the catalogs that hold the table. Catalogs decide none of the protocol's rules."""

from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Protocol

from compactor.core.errors import OperatorError
from compactor.core.partitions import PartitionValues, Transform
from compactor.schema.schema import SchemaVersion
from compactor.table.upkeep import TableFolder, TableHistory


@dataclass(frozen=True, slots=True)
class FilePartition:
    """The common value of all rows in a file for one partition field within a date.

    Attributes:
        name: The field's name.
        transform: Computes the value from the column's value.
        field_id: The column's field id.
        type: The column's type, as in the registry.
        buckets: Number of buckets, for `bucket`.
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
    """A Parquet file with rows, as listed in the table.

    Attributes:
        date: As yyyy-mm-dd.
        partition: The partition within the date, if the commit has one; empty for files read from a table.
        values: For files read from a table, the partition values within the date, if any; None if unknown.
    """

    uri: str
    size_bytes: int
    records: int
    date: str
    partition: tuple[FilePartition, ...] = field(default=(), compare=False)
    values: PartitionValues | None = field(default=None, compare=False)


@dataclass(frozen=True, slots=True)
class TableHead:
    """The state of the table at one instant, on which the next change is based.

    Owner, fence and refused are table properties, because summaries of snapshots expire with them.

    Attributes:
        owner: The state whose commits are in the table.
        table_id: The catalog's identity of the table; a table that is dropped and recreated gets a new one.
        snapshot_id: The current snapshot; None if there is none.
        fence: The number of the last batch that the table took or skipped; 0 before the first.
        schema_version: The registry version with the table's columns; 0 before the first.
        refused: The number of the last batch that the table skipped; 0 if there was none.
    """

    owner: str
    table_id: str
    snapshot_id: int | None
    fence: int
    schema_version: int
    refused: int = 0

    def check_owner(self, owner: str) -> None:
        """Check that the table has the commits of a state."""
        if self.owner != owner:  # guard: the fence of a different state's table says nothing about these batches
            raise OperatorError(f"the table belongs to the state {self.owner}; expected a table of {owner} only")


@dataclass(frozen=True, slots=True)
class TableChange:
    """The effect of one batch on the table, in one transaction.

    Attributes:
        batch: Its number, which becomes the fence.
        added: Files that become live.
        removed: URIs that are not live afterwards, disjoint from `added`. They need not be live before.
        schema: The version with the columns that the files need; None if the table has them.
        is_refused: Whether the table skips the batch: only the fence and `refused` change.
        keeps_rows: Whether the added files have exactly the rows of the removed ones; for readers of changes.
    """

    batch: int
    added: tuple[TableFile, ...]
    removed: tuple[str, ...] = ()
    schema: SchemaVersion | None = field(default=None)
    is_refused: bool = False
    keeps_rows: bool = False


class TableCatalog(Protocol):
    """A catalog with a stream's table. Several processes may call it concurrently.

    Every method raises `TryAgainError` if the catalog or the store does not respond, and `OperatorError` if the catalog
    refuses. Methods that take a head change nothing unless the table is still the same one at the same snapshot; they
    also raise:

    - `TableConflict`: the table has moved on from the head; this call changed nothing.
    - `TableCommitUnknown`: no response, or an inconclusive one (500, 502, 503, 504, a time-out). The change may be in
      the table, or may still get there while the table stays at the head.
    - `TableRefused`: the catalog refuses this change, or cannot adopt its files; it may take others.
    """

    def head(self) -> TableHead | None:
        """Read the state of the table; None if there is no table.

        Raises:
            OperatorError: Also if the table lacks the owner or the fence: this product did not create it, or another
                one removed its properties.
        """

    def create(self, owner: str, schema: SchemaVersion) -> TableHead:
        """Create the table, with fence 0, or return the head of one that another process created first."""

    def commit(self, head: TableHead, change: TableChange) -> int:
        """Apply a change in one transaction; return the id of its snapshot."""

    def snapshot_of(self, batch: int) -> int | None:
        """The snapshot with which the table took a batch; None if it expired, or if there was none."""

    def live_files(self, snapshot_id: int | None = None) -> Iterator[TableFile]:
        """The files of a snapshot, by default the current one; duplicates are listed twice.

        Raises:
            OperatorError: Also if there is no such snapshot.
        """

    def files_below(self, folder: str) -> frozenset[str]:
        """The URIs of all files below a folder in any unexpired snapshot.

        Args:
            folder: Ends with `/`, spelled as in the files' URIs.
        """

    def history(self) -> tuple[TableHead, TableHistory] | None:
        """The table's state with its snapshots and manifests at the same instant; None if there is no table."""

    def expire(self, head: TableHead, snapshot_ids: Collection[int]) -> None:
        """Expire snapshots. Removes no files."""

    def merge_manifests(self, head: TableHead) -> int:
        """List the same files in fewer manifests; return the new snapshot's id."""

    def folder(self, without: Collection[int] = ()) -> TableFolder | None:
        """The table's metadata folder, and which of its files are needed; None if it cannot be listed.

        Args:
            without: Snapshots that do not count as needing files.

        Raises:
            OperatorError: Also if a file that the table needs is missing.
        """

    def remove(self, names: Iterable[str]) -> int:
        """Remove files from the metadata folder; return how many existed.

        Raises:
            TryAgainError: Some of the files may already be removed.
        """
