"""The port of what adds up rows."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from compactor.schema.column_types import ColumnType

KernelArray = tuple[int, bytes | None, bytes | None, bytes]
"""The offset of an Arrow array, its bits of validity, its offsets and its data, as far as it has them."""

KernelSum = tuple[int, int]
"""A number of rows, and the sum of their digests."""


@dataclass(frozen=True, slots=True)
class KernelRows:
    """Some rows. The module reads these fields by name.

    Attributes:
        rows: Their number.
        columns: Some columns, by number; texts in a column of another type are canonical ones of its values.
        ends: Where each sum ends; the next one begins there.
        rescued: Of the rescued data the maps, the keys and the values.
        moved: Columns whose values are among the rescued data.
        retired: Columns of texts whose values are rescued ones, by key.
    """

    rows: int
    columns: list[tuple[int, KernelArray]]
    ends: list[int]
    rescued: tuple[KernelArray, KernelArray, KernelArray] | None = None
    moved: list[int] = field(default_factory=list)
    retired: list[tuple[str, KernelArray]] = field(default_factory=list)


class DigestKernel(Protocol):
    """Adds up digests of rows. Safe for many threads. Columns have numbers, from 0."""

    def lines(
        self, block: bytes, constants: Sequence[tuple[str, str]]
    ) -> tuple[int, int, Sequence[tuple[int, int, int]], KernelSum]:
        """Add up whole lines, each with its line feed, as the rows that they should be.

        Args:
            block: The lines.
            constants: Texts by key, for lines that do not have that key.

        Returns:
            The number of lines, the number of blank lines, the lines that may be no records (number, first byte, and
            line feed of each), and the sum of all others.
        """

    def rows(self, given: KernelRows) -> list[KernelSum]:
        """Add up rows.

        Raises:
            ValueError: The arrays do not have these rows, or are of other types.
        """


NewDigestKernel = Callable[[Mapping[str, ColumnType]], DigestKernel]
"""Makes a kernel for columns, by key."""
