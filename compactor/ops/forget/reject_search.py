"""Finds rejected lines that hold a value, in Parquet files of rejects."""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import groupby

from compactor.core.ports import ObjectStore
from compactor.ops.forget.wanted import Wanted
from compactor.ops.redrive.reject_lines import RejectRow, reject_rows

_LINE = 2  # the first columns name the line


@dataclass(frozen=True, slots=True)
class RejectFound:
    """A rejected line that holds a value.

    Attributes:
        rows: In how many rows it is kept: one that is too long is kept in pieces.
    """

    source_uri: str
    line_number: int
    reason: str
    rows: int


def rejects_found(store: ObjectStore, uri: str, wanted: Wanted) -> Iterator[RejectFound]:
    """Yield the lines in a file of rejects that hold a value, in their order.

    Raises:
        StagingError: It is missing, truncated, or not a file of rejects.
    """
    for (source_uri, number), rows in groupby(reject_rows(store, uri), key=lambda row: row[:_LINE]):
        reason, many, is_found = _searched(rows, wanted)
        if is_found:
            yield RejectFound(source_uri, number, reason, many)


def _searched(rows: Iterator[RejectRow], wanted: Wanted) -> tuple[str, int, bool]:
    """The reason and the number of the rows of one line, and whether it holds a value."""
    reason, many, is_found, before = "", 0, False, b""
    for row in rows:
        reason, raw = row[3], row[4]
        many += 1
        is_found = is_found or (wanted.in_line(raw) if many == 1 else wanted.broken.holds(before + raw))
        before = (before + raw)[-wanted.broken.overlap_bytes :]
    return reason, many, is_found
