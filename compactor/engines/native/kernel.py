"""The kernel's port; it turns lines into Parquet."""

from collections.abc import Callable
from typing import Protocol

from compactor.engines.engine import RowPlan

RefusedPlace = tuple[int, int, int, str]
"""A line that is not a record: its number in its block, from 0; the offsets of its first byte and of its line feed in
the block; and the reason, one of `compactor.ndjson.inspection.REASONS`, empty if only inspection can find it.
"""


class Kernel(Protocol):
    """Builds the rows of files, one file after the other, and returns the Parquet bytes as they are completed.

    Every call may raise `StagingError`, which means a kernel fault.
    """

    @property
    def output_bytes(self) -> int:
        """The length of the Parquet file so far, without the last batch of rows, but including bytes not yet taken."""

    @property
    def lacks_columns(self) -> bool:
        """Whether some key has no column and must not be rescued. From then on, no rows are built."""

    @property
    def rescued_values(self) -> int:
        """Number of values that do not fit the type of their column, in ended files."""

    def begin_file(self, source_uri: str) -> None:
        """Start a file. The previous one has been ended or withdrawn."""

    def read(self, block: bytes) -> tuple[int, int, list[RefusedPlace]]:
        """Read a block of whole lines, each with its line feed.

        Returns:
            The number of lines, the number of blank lines, and the lines that are not records.
        """

    def withdraw_file(self) -> bool:
        """Discard the current file's rows.

        Returns:
            False if some of them are already in the output; then nothing changes.
        """

    def end_file(self) -> tuple[list[str], bool]:
        """End a file that was read completely.

        Returns:
            The collected keys without a column that are new to this output, in first-seen order; and whether the file
                has other
            keys without a column.
        """

    def take(self) -> bytes:
        """The next completed Parquet bytes; empty if there are none.

        Those of the last batch of rows come later, or when the file has ended.
        """

    def finish_output(self) -> None:
        """End the Parquet file and complete all of its bytes.

        Take them all before the next row, which starts a new file.
        """


NewKernel = Callable[[RowPlan], Kernel]
