"""What a task needs of the module that turns lines into Parquet: a port, and the plan that it works by."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol

from compactor.schema.schema import SchemaVersion


@dataclass(frozen=True, slots=True)
class RowPlan:
    """What rows are made of.

    Attributes:
        schema: Its columns.
        metadata_columns: Columns that the compactor adds.
        manifest_id: For the column `_manifest_id`.
        processed_at: For the column `_processed_at`.
        rescues_unknown: Whether keys without a column go to the rescued data.
        compression: Parquet's codec.
        held_bytes: How many bytes of records are held back as rows, so that their file can be withdrawn.
    """

    schema: SchemaVersion
    metadata_columns: Sequence[str]
    manifest_id: str
    processed_at: datetime
    rescues_unknown: bool
    compression: str
    held_bytes: int


class Kernel(Protocol):
    """Builds the rows of some files, one file after the other, and hands on Parquet as it grows.

    All calls may raise `StagingError`: the module has a fault.
    """

    @property
    def output_bytes(self) -> int:
        """The length of the Parquet file so far, what was not handed on yet included."""

    @property
    def lacks_columns(self) -> bool:
        """Whether a key came up that has no place to go. No rows are built from then on."""

    @property
    def rescued_values(self) -> int:
        """Values that do not fit the type of their column, of files that were read to their end."""

    def seen_keys(self) -> list[str]:
        """The keys with a column that files which were read to their end have."""

    def begin_file(self, source_uri: str) -> None:
        """Begin a file; the one before was ended or withdrawn."""

    def read(self, block: bytes) -> tuple[int, int, list[tuple[int, int, int]]]:
        """Take in whole lines, each with its line feed.

        Returns:
            How many lines there are, how many of them are blank, and those that are no records: the number of each in
            the block, from 0, where it begins, and where its line feed is.

        Raises:
            FileError: `too_many_keys`.
        """

    def withdraw_file(self) -> bool:
        """Forget the rows of the current file.

        Returns:
            False if some of them have been handed on; nothing is changed then.
        """

    def end_file(self) -> list[str]:
        """End a file that was read to its end.

        Returns:
            The keys without a column that no file had before, as first seen.
        """

    def take(self) -> bytes:
        """The Parquet bytes that were completed since the last call."""

    def finish_output(self) -> bytes:
        """End the Parquet file; the next row begins another one.

        Returns:
            Its last bytes, behind those of `take`. No file without rows ever begins.
        """


NewKernel = Callable[[RowPlan], Kernel]
