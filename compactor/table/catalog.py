"""The port of the catalogues that hold the table. No rule of the protocol is decided behind it."""

from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Protocol

from compactor.core.partitions import PartitionValues, Transform
from compactor.schema.schema import SchemaVersion
from compactor.table.upkeep import TableFolder, TableHistory


@dataclass(frozen=True, slots=True)
class FilePartition:
    """A value that all rows of a file have, or None, for one field of the partitions within a date.

    Attributes:
        name: Of the field.
        transform: What makes the value of that of the column.
        field_id: Of the column.
        type: Of the column, as the registry spells it.
        buckets: How many there are, for `bucket`.
        value: As in `compactor.core.partitions.PartitionValues`.
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
        uri: Where it is.
        size_bytes: Its length.
        records: How many rows it has.
        date: The value of its partition, as YYYY-MM-DD.
        partition: Its partition within the date, if its commit names one. Files that are read from a table have none.
        values: Of a file that is read from a table, the values of its partition within the date, of which there may be
            none; None if they cannot be told.
    """

    uri: str
    size_bytes: int
    records: int
    date: str
    partition: tuple[FilePartition, ...] = field(default=(), compare=False)
    values: PartitionValues | None = field(default=None, compare=False)


@dataclass(frozen=True, slots=True)
class TableHead:
    """The state of the table at one instant, which the next change is based on.

    Attributes:
        owner: The state whose commits the table has, as it was told when the table was made; a property of the table.
        table_id: The identity that the catalogue gave the table; a table that is dropped and made again has another.
        snapshot_id: The current snapshot; None for a table without one.
        fence: The number of the last batch whose files the table has taken; 0 before the first. It is a property of
            the table, for the summaries of snapshots expire with them.
        schema_version: The version of the registry whose columns the table has; 0 before the first.
        refused: The number of the last batch that the table passed over: the fence has its number, and the table took
            nothing of it. 0 if there was none. A property of the table, too.
    """

    owner: str
    table_id: str
    snapshot_id: int | None
    fence: int
    schema_version: int
    refused: int = 0


@dataclass(frozen=True, slots=True)
class TableChange:
    """What one batch does to the table, all of it in one transaction.

    Attributes:
        batch: Its number, which becomes the fence.
        added: Files that become live.
        removed: URIs that are not live afterwards: those of an earlier generation of a rebuilt manifest. One that is
            not live before is no error. None of them is among `added`.
        schema: The version whose columns the files need; None if the table has them.
        is_refused: Whether the table passes over the batch: nothing but the fence and `refused` changes.
        keeps_rows: Whether the added files have the rows of the removed ones and no others, as readers may want to know
            that follow the table.
    """

    batch: int
    added: tuple[TableFile, ...]
    removed: tuple[str, ...] = ()
    schema: SchemaVersion | None = field(default=None)
    is_refused: bool = False
    keeps_rows: bool = False


class TableCatalog(Protocol):
    """A catalogue with the one table of a stream. Every call may be made from several processes at once."""

    def head(self) -> TableHead | None:
        """The state of the table now; None if there is no table.

        Raises:
            TryAgainError: The catalogue does not answer.
            OperatorError: It refuses, or the table lacks the owner or the fence: this product did not make it, or
                another one took its properties.
        """

    def create(self, owner: str, schema: SchemaVersion) -> TableHead:
        """Make the table, with fence 0, or return the head of the one that another process made first.

        Raises:
            TryAgainError: No answer; the table may be there.
            OperatorError: The catalogue refuses.
        """

    def commit(self, head: TableHead, change: TableChange) -> int:
        """Do all of a change or nothing of it, and only if the table is still the one of `head`, at its snapshot.

        Returns:
            The id of the snapshot with the change.

        Raises:
            TableConflict: The table is no longer at `head`; nothing was changed by this call.
            TableCommitUnknown: No answer, or one that does not tell (500, 502, 503, 504, a time-out): the change may
                be in the table, or may still get into it as long as the table stays at `head`.
            TableRefused: The catalogue refuses this change, or its files cannot be adopted; it may take another one.
            OperatorError: The catalogue refuses any change.
        """

    def snapshot_of(self, batch: int) -> int | None:
        """The snapshot by which the table took a batch; None if it expired, or if there was none.

        Raises:
            TryAgainError: The catalogue does not answer.
            OperatorError: It refuses.
        """

    def live_files(self, snapshot_id: int | None = None) -> Iterator[TableFile]:
        """The files of a snapshot, of the current one by default; a file that is listed twice comes twice.

        Raises:
            TryAgainError: The catalogue or the store does not answer.
            OperatorError: It refuses, or has no such snapshot.
        """

    def files_below(self, folder: str) -> frozenset[str]:
        """The URIs of all files below a folder that any snapshot has that did not expire.

        Args:
            folder: Ends with `/`, and is spelled as in the URIs of the files.

        Raises:
            TryAgainError: The catalogue or the store does not answer.
            OperatorError: It refuses.
        """

    def history(self) -> tuple[TableHead, TableHistory] | None:
        """The state of the table, and its snapshots and manifests of the same instant; None if there is no table.

        Raises:
            TryAgainError: The catalogue or the store does not answer.
            OperatorError: As for `head`.
        """

    def expire(self, head: TableHead, snapshot_ids: Collection[int]) -> None:
        """Forget snapshots, if the table is still the one of `head`, at its snapshot. No file is removed.

        Raises:
            TableConflict: As for `commit`, and so are the others.
            TableCommitUnknown: The snapshots may be gone, or may still go.
            TableRefused: The catalogue refuses it.
            OperatorError: It refuses any change.
        """

    def merge_manifests(self, head: TableHead) -> int:
        """Have the same files in fewer manifests, if the table is still the one of `head`, at its snapshot.

        Returns:
            The id of the snapshot that has them so.

        Raises:
            TableConflict: As for `commit`, and so are the others.
            TableCommitUnknown: The snapshot may be there, or may still come.
            TableRefused: The catalogue refuses it.
            OperatorError: It refuses any change.
        """

    def folder(self, without: Collection[int] = ()) -> TableFolder | None:
        """The folder of the table's metadata, and which of its files are needed; None if it cannot be listed.

        Args:
            without: Snapshots whose files do not count as needed by them.

        Raises:
            TryAgainError: The catalogue or the store does not answer.
            OperatorError: It refuses, or a file that the table needs is gone.
        """

    def remove(self, names: Iterable[str]) -> int:
        """Remove files from the folder of the table's metadata; return how many were there.

        Raises:
            TryAgainError: The catalogue or the store does not answer; some of the files may be gone.
            OperatorError: It refuses.
        """
