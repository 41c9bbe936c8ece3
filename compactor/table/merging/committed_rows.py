"""Opens the rows of a commit's file: in the file itself, or in the merged file that replaced it."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import pyarrow as pa

from compactor.core.documents.changes import StagedFile
from compactor.core.errors import StagingError
from compactor.core.ports import ObjectStore
from compactor.engines.parquet_files import ParquetFacts, StoredParquet, facts_of, open_parquet
from compactor.ledger.visible import Visible
from compactor.table.merging.writing import batches_of


@dataclass(frozen=True, slots=True)
class GroupRows:
    """Rows of one row group: `start` is the number of earlier rows in the group."""

    group: int
    start: int
    rows: int


@dataclass(frozen=True, slots=True)
class OpenedRows:
    """The rows of a commit's file.

    Attributes:
        uri: The file with the rows.
        numbers: Their positions in that file.
        is_moved: Whether it is a merged file, which may have further columns and other rows.
    """

    uri: str
    parquet: StoredParquet
    size_bytes: int
    numbers: range
    is_moved: bool

    @property
    def facts(self) -> ParquetFacts:
        """That file's footer."""
        return facts_of(self.uri, self.parquet, self.size_bytes)

    def groups(self) -> Iterator[GroupRows]:
        """The row groups with these rows."""
        at = 0
        for group in range(self.parquet.num_row_groups):
            rows = self.parquet.metadata.row_group(group).num_rows
            start, stop = max(self.numbers.start - at, 0), min(self.numbers.stop - at, rows)
            if start < stop:
                yield GroupRows(group, start, stop - start)
            at += rows

    def table(self, at: GroupRows, columns: Sequence[str] | None = None) -> pa.Table:
        """The rows of one row group."""
        return self.parquet.read_row_group(at.group, columns=columns).slice(at.start, at.rows)

    def batches(self, batch_rows: int, columns: Sequence[str] | None = None) -> Iterator[pa.RecordBatch]:
        """All rows, in batches of at most `batch_rows`.

        Raises:
            StagingError: The file is damaged, or has fewer rows.
        """
        return batches_of(self.uri, self.parquet, self.numbers, batch_rows, columns)

    def lacks(self, column: str) -> bool:
        """Whether the commit's file lacked a column that otherwise has a value in every row."""
        if column not in self.parquet.schema_arrow.names:
            return True
        if not self.is_moved:
            return False
        return any(batch.column(0).null_count for batch in self.batches(1 << 16, [column]))


@dataclass(frozen=True, slots=True)
class CommittedRows:
    """Opens the rows of commits' files. Safe for many threads."""

    store: ObjectStore
    visible: Visible

    def open(self, date: str, file: StagedFile) -> OpenedRows:
        """Open the rows of a commit's file, given its date.

        Raises:
            StagingError: They are missing, or the file is truncated or not Parquet.
        """
        try:
            parquet, size_bytes = open_parquet(self.store, file.final)
        except StagingError:
            moved = self.visible.moved(date, file.final) if self.store.stat(file.final) is None else None
            if moved is None:
                raise
            parquet, size_bytes = open_parquet(self.store, moved.file.uri)
            numbers = range(moved.first, moved.first + moved.rows)
            return OpenedRows(moved.file.uri, parquet, size_bytes, numbers, is_moved=True)
        return OpenedRows(file.final, parquet, size_bytes, range(parquet.metadata.num_rows), is_moved=False)
