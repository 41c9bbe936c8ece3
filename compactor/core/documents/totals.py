"""Adds up the reports on input files, each line once. The sums of every command come from here. No I/O."""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field

from compactor.core.documents.records import FileReport, FileStatus


@dataclass(slots=True)
class Totals:
    """Sums over input files: `lines == rows + rejected_lines + blank_lines + erased_rejects`.

    Attributes:
        files_by_status: Files by the result for each; not those of redriven lines, whose files are counted already.
        input_bytes: Stored bytes of the compacted ones of these.
        tombstones: Blank lines that stand for records of topics without a value.
        absent_offsets: Blank lines that stand for offsets of topics without a committed record.
        further_lines: Lines of values of topics beside their first ones, where values are lines.
        unkept_rejects: Rejected lines that are only counted; their bytes are in the input file alone.
        erased_rejects: Lines that were rejected, and erased on request since.
        rejects_by_reason: Rejected lines by reason.
        redriven_by_reason: Lines that were redriven, by the reason for which they had been rejected before.
    """

    files_by_status: Counter[str] = field(default_factory=Counter)
    input_bytes: int = 0
    lines: int = 0
    rows: int = 0
    rejected_lines: int = 0
    unkept_rejects: int = 0
    blank_lines: int = 0
    tombstones: int = 0
    absent_offsets: int = 0
    further_lines: int = 0
    erased_rejects: int = 0
    rejects_by_reason: Counter[str] = field(default_factory=Counter)
    redriven_by_reason: Counter[str] = field(default_factory=Counter)

    @property
    def files(self) -> int:
        return self.files_by_status.total()


def totals_of(files: Iterable[FileReport], *, with_source: bool) -> Totals:
    """Add up files.

    Args:
        files: The reports.
        with_source: Whether the sums are added to those of the files that redriven lines are from. Such a line is
            counted there as one line and one reject: here it is no further line, and one reject less.
    """
    found = Totals()
    for file in files:
        is_redriven = bool(file.source_uri)
        found.rows += file.records
        found.rejected_lines += file.rejected_lines
        found.blank_lines += file.blank_lines
        if file.kafka is not None:
            found.tombstones += file.kafka.tombstones
            found.absent_offsets += file.kafka.absent
            found.further_lines += file.kafka.further_lines
        found.erased_rejects += file.erased_rejects
        found.unkept_rejects += sum(file.unkept_rejects.values())
        found.rejects_by_reason.update(file.rejects)
        if is_redriven and file.lines:
            found.redriven_by_reason[file.rejected_as] += file.lines
        if is_redriven and with_source:
            found.rejected_lines -= file.lines
            found.rejects_by_reason[file.rejected_as] -= file.lines
        else:
            found.lines += file.lines
            found.files_by_status[file.status] += 1
            found.input_bytes += file.size_bytes if file.status is FileStatus.COMPACTED else 0
    return found


def are_few_rows(rows: int, rejected_lines: int) -> bool:
    """Whether under half of the lines that are not blank became rows."""
    return rows < rejected_lines


def without_zeros(counts: Counter[str]) -> Counter[str]:
    """Counts that are not zero, as a sum of many may have some."""
    return Counter({reason: lines for reason, lines in counts.items() if lines})
