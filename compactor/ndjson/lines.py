"""The values that describe the lines of a file and their classification. No I/O."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Literal, NamedTuple, Protocol

from compactor.core.documents.manifest import FileRange
from compactor.core.documents.records import FileFormat

OnTooManyRejects = Literal["quarantine", "keep_rows"]
"""What to do with a file with too many rejects: quarantine it whole, or keep its rows and only the first rejects."""


@dataclass(frozen=True, slots=True)
class RejectLimits:
    """The most rejects to keep of one input file.

    Attributes:
        max_lines: Rejected lines.
        max_bytes: Their bytes.
        on_excess: What to do with a file that has more.
    """

    max_lines: int = 100_000
    max_bytes: int = 64 * 1024 * 1024
    on_excess: OnTooManyRejects = "quarantine"


@dataclass(frozen=True, slots=True)
class Limits:
    """Limits for one input file.

    Attributes:
        max_line_bytes: A longer line is rejected; at least 1.
        max_decompressed_bytes: A file that decodes to more is quarantined.
        rejects: The most rejects to keep.
        max_scratch_bytes: The most that the scratch files of a task may take on the local disk.
    """

    max_line_bytes: int
    max_decompressed_bytes: int
    rejects: RejectLimits = RejectLimits()
    max_scratch_bytes: int = 10 * 1024 * 1024 * 1024


class Reject(NamedTuple):
    """A rejected line, or a part of one that is too long.

    Attributes:
        line_number: From 1; blank lines count.
        byte_offset: The offset of `raw` in the decoded file.
        reason: One of `compactor.ndjson.inspection.REASONS`.
        raw: The exact bytes, without the line feed.
    """

    line_number: int
    byte_offset: int
    reason: str
    raw: bytes


Refused = tuple[int, int, str, bytes]
"""A line of a block that is not a record: its number in the block, from 0; its byte offset in the block; the reason,
one of `compactor.ndjson.inspection.REASONS`; and the exact bytes, without the line feed."""


class Judged(NamedTuple):
    """The classification of a block. Lines that are neither blank nor refused are records.

    Attributes:
        lines: Number of all lines.
        blank_lines: Number of lines that are empty or only white space.
        refused: In order; can be iterated once.
    """

    lines: int
    blank_lines: int
    refused: Iterable[Refused]


Judge = Callable[[bytes], Judged]
"""Classifies a block of whole lines, each with its line feed and none over-long, and stores the records."""


@dataclass(frozen=True, slots=True)
class LineCounts:
    """The counts of a file: `records + rejected_lines + blank_lines == lines`.

    Attributes:
        lines: All lines, including a last one without a line feed.
        blank_lines: Lines that are empty or consist of spaces, tabs and carriage returns.
        records: Lines that are one JSON object.
        rejects: Number of rejected lines by reason.
        reject_rows: Number of `Reject` values; greater than `rejected_lines` if a line was too long.
        has_bom: The file begins with a UTF-8 byte order mark, which is not part of the first line.
        format: How it was read. Of a JSON file, elements count as lines.
    """

    decoded_bytes: int
    lines: int
    blank_lines: int
    records: int
    rejected_lines: int
    rejects: dict[str, int]
    reject_rows: int
    has_bom: bool
    format: FileFormat


def in_whole_file(part: FileRange | None, on_reject: Callable[[Reject], None]) -> Callable[[Reject], None]:
    """What receives the rejects of a range of a file, and passes them on with their places in the whole file."""
    if part is None:
        return on_reject
    lines, length_bytes = part.lines_before, part.from_byte

    def passed_on(reject: Reject) -> None:
        line_number, byte_offset, reason, raw = reject
        on_reject(Reject(line_number + lines, byte_offset + length_bytes, reason, raw))

    return passed_on


class Splitter(Protocol):
    """Passes all lines or elements of a file to a judge, and counts them."""

    def __call__(
        self,
        pieces: Iterable[bytes],
        limits: Limits,
        judge: Judge,
        *,
        on_reject: Callable[[Reject], None],
        block_bytes: int = ...,
    ) -> LineCounts:
        """See `compactor.ndjson.line_splitting.split_lines`."""
