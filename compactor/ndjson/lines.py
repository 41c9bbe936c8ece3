"""The values that describe the lines of a file and their classification. No I/O."""

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, NamedTuple

from compactor.core.documents.manifest import FileRange
from compactor.core.documents.records import FileFormat
from compactor.core.inputs.record_place import RecordPlace

if TYPE_CHECKING:
    from compactor.settings.settings import Settings

OnTooManyRejects = Literal["quarantine", "keep_rows"]
"""What to do with a file with too many rejects: quarantine it, or keep its rows and only the first rejects."""

MAX_REJECTED_BYTES = 64 * 1024 * 1024
"""The most bytes of rejected lines kept per input file."""

HONEST_RATIO = 100
"""Decoded bytes per stored byte, about five times as many as event logs in gzip have."""

_EXTRA_SCRATCH_BYTES = 2 * 1024 * 1024 * 1024
"""The scratch space for a task in addition to the repaired copy of the largest file."""


@dataclass(frozen=True, slots=True)
class RejectLimits:
    """The most rejects kept per input file.

    Attributes:
        max_bytes: The bytes of these lines, so that a few long lines cost no more than many short ones.
        on_excess: What to do with a file that has more.
    """

    max_lines: int = 100_000
    max_bytes: int = MAX_REJECTED_BYTES
    on_excess: OnTooManyRejects = "quarantine"


@dataclass(frozen=True, slots=True)
class Limits:
    """Limits for one input file, and for a task that reads several.

    Attributes:
        max_line_bytes: A longer line is rejected; at least 1.
        max_decompressed_bytes: A file that decodes to more is quarantined.
        rejects: The most rejects to keep.
        max_scratch_bytes: The most scratch space on the local disk per task.
        task_bytes: A task that has decoded this much, and `task_ratio` times the stored bytes, leaves its further files
            to a later manifest; None for a task that reads all of them.
        task_ratio: Decoded bytes per stored byte that a task may read in any amount.
    """

    max_line_bytes: int
    max_decompressed_bytes: int
    rejects: RejectLimits = RejectLimits()
    max_scratch_bytes: int = 10 * 1024 * 1024 * 1024
    task_bytes: int | None = None
    task_ratio: int = HONEST_RATIO

    @classmethod
    def of(cls, settings: "Settings") -> "Limits":
        """The limits in the settings."""
        rejects = RejectLimits(
            settings.input.max_rejected_lines,
            max_bytes=MAX_REJECTED_BYTES,
            on_excess=settings.input.on_too_many_rejects,
        )
        largest = settings.input.max_decompressed_bytes
        return cls(settings.input.max_line_bytes, largest, rejects, scratch_bytes(largest), task_bytes=largest)


def scratch_bytes(max_decompressed_bytes: int) -> int:
    """The most scratch space per task: a repaired copy of the largest file, and its rejects."""
    return max_decompressed_bytes + _EXTRA_SCRATCH_BYTES


class Reject(NamedTuple):
    """A rejected line, or part of one that is too long.

    Attributes:
        line_number: From 1; blank lines count.
        byte_offset: The offset of `raw` in the decoded file.
        reason: One of `compactor.ndjson.inspection.REASONS`.
        raw: The exact bytes, without the line feed.
        fields: What its record would get from the objects around it; see `with_fields`.
    """

    line_number: int
    byte_offset: int
    reason: str
    raw: bytes
    fields: bytes = b""


Refused = tuple[int, int, str, bytes]
"""A line of a block that is not a record: its number in the block, from 0; its byte offset in the block; the reason,
one of `compactor.ndjson.inspection.REASONS`; and the exact bytes, without the line feed."""


class Judged(NamedTuple):
    """The classification of a block. Lines that are neither blank nor refused are records.

    Attributes:
        blank_lines: Number of lines that are empty or only white space.
        refused: In order; can be iterated once.
    """

    lines: int
    blank_lines: int
    refused: Iterable[Refused]


Judge = Callable[[bytes], Judged]
"""Classifies a block of whole lines, each with its line feed and none over-long, and stores the records."""


BLOCK_BYTES = 256 * 1024  # measured: as fast as 8 MiB, and a block of only line feeds needs less than 30 MiB of objects


@dataclass(frozen=True, slots=True)
class Receiver:
    """The receiver of a file's lines.

    Attributes:
        limits: The longest line and the largest file.
        judge: Classifies blocks of lines. A last line without a line feed gets one; the byte order mark is omitted.
        on_reject: Receives every reject, in file order.
        block_bytes: The maximum length of a block, except for a single longer line.
    """

    limits: Limits
    judge: Judge
    on_reject: Callable[[Reject], None]
    block_bytes: int = BLOCK_BYTES


@dataclass(frozen=True, slots=True)
class LineCounts:
    """A file's counts.

    Attributes:
        lines: All lines, including a last one without a line feed.
        blank_lines: Lines that are empty or consist of spaces, tabs and carriage returns.
        rejects: Number of rejected lines by reason.
        has_bom: The file starts with a UTF-8 byte order mark, which is not part of the first line.
        hole_bytes: The NUL bytes before the first line; see `compactor.ndjson.line_splitting.split_behind_hole`.
        place: Where its records are in its JSON, whose elements count as lines; None if it was read line by line.
    """

    decoded_bytes: int
    lines: int
    blank_lines: int
    rejects: dict[str, int]
    has_bom: bool
    hole_bytes: int
    place: RecordPlace | None

    @property
    def format(self) -> FileFormat:
        return "ndjson" if self.place is None else "json"

    @property
    def rejected_lines(self) -> int:
        return sum(self.rejects.values())

    @property
    def records(self) -> int:
        return self.lines - self.blank_lines - self.rejected_lines


def in_whole_file(part: FileRange | None, on_reject: Callable[[Reject], None]) -> Callable[[Reject], None]:
    """Wrap a range's reject receiver, so that it gets places in the whole file."""
    return on_reject if part is None else behind(part.lines_before, part.from_byte, on_reject)


def behind(lines: int, length_bytes: int, on_reject: Callable[[Reject], None]) -> Callable[[Reject], None]:
    """Wrap the reject receiver of a part of a file that has some lines and bytes before it."""

    def passed_on(reject: Reject) -> None:
        on_reject(
            reject._replace(line_number=reject.line_number + lines, byte_offset=reject.byte_offset + length_bytes)
        )

    return passed_on


Splitter = Callable[[Iterable[bytes], Receiver], LineCounts]
"""Passes all lines or elements of a decoded file to a receiver and counts them; see
`compactor.ndjson.line_splitting.split_lines`."""

_START = re.compile(rb"([ \t\r]*)\{([ \t\r]*\})?")
_LINE_FEEDS_ARE_SPACE = re.compile(rb'(?:[^"]++|"(?:[^"\\\n]++|\\[^\n]|)*+"|)*+')


def with_fields(line: bytes, fields: bytes) -> bytes:
    """Add fields, such as `"a":1,"b":2`, to the start of an object. A line that is not an object is not changed."""
    found = _START.match(line)
    if found is None:
        return line
    if found[2] is None:
        return found[1] + b"{" + fields + b"," + line[found.end() :]
    return found[1] + b"{" + fields + line[found.start(2) :]


def on_one_line(element: bytes) -> bytes:
    """An element without line feeds, of the same length, which is valid JSON exactly if the element is."""
    if b"\n" not in element:
        return element
    return element.replace(b"\n", b" " if _LINE_FEEDS_ARE_SPACE.fullmatch(element) else b"\r")


def rejected_record(raw: bytes, fields: bytes) -> bytes:
    """A rejected line or element as inspection saw it."""
    return with_fields(on_one_line(raw), fields) if fields else on_one_line(raw)
