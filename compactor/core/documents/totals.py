"""The figures of input files and of commits, each line counted once. The sums of every command come from here. No I/O.

An input file is a version of a file that was compacted: read to its end, each of its lines a row, a reject or blank. A
file that is replaced and compacted again counts once a version. A quarantined file is none, and neither is a file of
redriven lines, beside the file that they are from.
"""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from compactor.core.documents.records import NEEDS_OPERATOR, Commit, FileReport, FileStatus


@dataclass(slots=True)
class Totals:
    """Sums over files: `lines == rows + rejected_lines + blank_lines + erased_lines`.

    Attributes:
        files_by_status: Files by the result for each; not those of redriven lines, whose files are counted already.
        input_bytes: Stored bytes of the input files, which are the compacted ones of these.
        decoded_bytes: Their length after decoding.
        tombstones: Blank lines that stand for records of topics without a value.
        absent_offsets: Blank lines that stand for offsets of topics without a committed record.
        further_lines: Lines of values of topics beside their first ones, where values are lines.
        unkept_rejects: Rejected lines that are only counted; their bytes are in the input file alone.
        erased_lines: Lines whose row or reject was erased on request since. No other count of lines has them.
        rejects_by_reason: Rejected lines by reason.
        redriven_by_reason: Lines that were redriven, by the reason for which they had been rejected before.
    """

    files_by_status: Counter[str] = field(default_factory=Counter)
    input_bytes: int = 0
    decoded_bytes: int = 0
    lines: int = 0
    rows: int = 0
    rejected_lines: int = 0
    unkept_rejects: int = 0
    blank_lines: int = 0
    tombstones: int = 0
    absent_offsets: int = 0
    further_lines: int = 0
    erased_lines: int = 0
    rejects_by_reason: Counter[str] = field(default_factory=Counter)
    redriven_by_reason: Counter[str] = field(default_factory=Counter)

    @property
    def input_files(self) -> int:
        return self.files_by_status[FileStatus.COMPACTED]

    @property
    def quarantined_by_status(self) -> Counter[str]:
        """How many files were quarantined, by status; one that is quarantined again counts again."""
        return quarantined_of(self.files_by_status)


@dataclass(slots=True)
class CommitTotals(Totals):
    """Sums over the files of a commit, and its output.

    Attributes:
        output_files: Parquet files of rows.
        output_bytes: Their size.
        rescued_values: Values that do not fit the type of their column.
        misfits: The same by column.
    """

    output_files: int = 0
    output_bytes: int = 0
    rescued_values: int = 0
    misfits: Counter[str] = field(default_factory=Counter)


def totals_of(files: Iterable[FileReport], *, with_source: bool) -> Totals:
    """Add up files.

    Args:
        files: The reports.
        with_source: Whether the sums are added to those of the files that redriven lines are from. Such a line is
            counted there as one line and one reject: here it is no further line, and one reject less.
    """
    found = Totals()
    _add(found, files, with_source=with_source)
    return found


def commit_totals(commit: Commit, *, with_source: bool) -> CommitTotals:
    """Add up a commit; `with_source` is as for `totals_of`."""
    found = CommitTotals(
        rows=-commit.erased_rows,
        erased_lines=commit.erased_rows,
        output_files=len(commit.outputs),
        output_bytes=sum(file.size_bytes for file in commit.outputs),
        rescued_values=commit.rescued_values,
        misfits=Counter(commit.misfits),
    )
    _add(found, commit.files, with_source=with_source)
    return found


def _add(found: Totals, files: Iterable[FileReport], *, with_source: bool) -> None:
    for file in files:
        is_redriven = bool(file.source_uri)
        found.rows += file.records
        found.rejected_lines += file.rejected_lines
        found.blank_lines += file.blank_lines
        if file.kafka is not None:
            found.tombstones += file.kafka.tombstones
            found.absent_offsets += file.kafka.absent
            found.further_lines += file.kafka.further_lines
        found.erased_lines += file.erased_rejects
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
            if file.status is FileStatus.COMPACTED:
                found.input_bytes += file.size_bytes
                found.decoded_bytes += file.decoded_bytes


def quarantined_of(files_by_status: Mapping[str, int]) -> Counter[str]:
    """Of files by the result for each, those that were quarantined. One that changed was not: see `NEEDS_OPERATOR`."""
    return Counter({each: files for each, files in files_by_status.items() if each in NEEDS_OPERATOR})


def bytes_per_byte(output_bytes: int, input_bytes: int) -> float | None:
    """Parquet bytes for each stored input byte; None without input."""
    return output_bytes / input_bytes if input_bytes else None


def are_few_rows(rows: int, rejected_lines: int) -> bool:
    """Whether under half of the lines that are not blank became rows."""
    return rows < rejected_lines


def without_zeros(counts: Counter[str]) -> Counter[str]:
    """Counts that are not zero, as a sum of many may have some."""
    return Counter({reason: lines for reason, lines in counts.items() if lines})
