"""What lines of a file are judged as, and what is counted of them: values, no I/O."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import NamedTuple


@dataclass(frozen=True, slots=True)
class Limits:
    """What one input file may ask for.

    Attributes:
        max_line_bytes: A longer line is rejected; at least 1.
        max_decompressed_bytes: A file that decodes to more is set aside whole.
    """

    max_line_bytes: int
    max_decompressed_bytes: int


@dataclass(frozen=True, slots=True)
class Reject:
    """A line that is set aside, or a piece of one that is too long.

    Attributes:
        line_number: From 1; blank lines count.
        byte_offset: Where `raw` begins in the decoded bytes of the file.
        reason: One of `compactor.ndjson.inspection.REASONS`.
        raw: The exact bytes, without the line feed.
    """

    line_number: int
    byte_offset: int
    reason: str
    raw: bytes


class Refused(NamedTuple):
    """A line of a block that is no record.

    Attributes:
        line: Its number in the block, from 0.
        start: Where it begins in the block.
        reason: One of `compactor.ndjson.inspection.REASONS`.
        raw: Its bytes, without the line feed.
    """

    line: int
    start: int
    reason: str
    raw: bytes


class Judged(NamedTuple):
    """What a block of lines holds: all that is neither blank nor refused is a record.

    Attributes:
        lines: All lines.
        blank_lines: Lines of nothing but white space.
        refused: The others that are no record, in order; may be read once.
    """

    lines: int
    blank_lines: int
    refused: Iterable[Refused]


Judge = Callable[[bytes], Judged]
"""Decides about whole lines, each with its line feed and none of them too long; keeps of them what it needs."""


@dataclass(frozen=True, slots=True)
class LineCounts:
    """What was found in a file: `records + rejected_lines + blank_lines == lines`.

    Attributes:
        decoded_bytes: Length of the decoded bytes.
        lines: All lines; a last one without line feed counts.
        blank_lines: Lines of nothing but spaces, tabs and carriage returns.
        records: Lines that are one JSON object.
        rejected_lines: All others.
        rejects: Number of rejected lines by reason.
        reject_rows: Number of `Reject` values; more than `rejected_lines` where a line was too long.
        has_bom: The file begins with a UTF-8 byte order mark, which is no part of the first line.
    """

    decoded_bytes: int
    lines: int
    blank_lines: int
    records: int
    rejected_lines: int
    rejects: dict[str, int]
    reject_rows: int
    has_bom: bool
