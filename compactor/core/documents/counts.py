"""Totals of manifests and their files, kept in summaries and shown by commands. No I/O."""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, fields
from typing import Any

from compactor.core.documents.changes import Commit, DeadLetter
from compactor.core.documents.records import NEEDS_OPERATOR, FileReport, FileStatus


@dataclass(frozen=True, slots=True, kw_only=True)
class Counts:
    """Sums over manifests and files: `lines == rows + rejected_lines + blank_lines + erased_lines`.

    A compacted file version counts as one input file: a file that is replaced and compacted again counts once per
    version. Quarantined files and files of redriven lines do not count. A difference may be negative.

    Attributes:
        manifests: Committed manifests.
        dead_letters: Manifests that are dead letters.
        files_by_status: Files of committed manifests by result, without those of redriven lines; superseded versions
            as changed. A file that was quarantined and redriven counts again.
        input_bytes: Stored bytes of the input files.
        decoded_bytes: Their decoded length.
        lines: Lines of all files that could be read to the end.
        rows: Rows on record.
        rejected_lines: Lines in the rejects, or only counted there.
        unkept_rejects: Rejected lines that are only counted; only the input file has their bytes.
        blank_lines: Lines of only white space.
        erased_lines: Lines whose row or reject was erased on request; no other count has them.
        rejects_by_reason: Rejected lines by reason.
        redriven_by_reason: Redriven lines by the reason of their earlier rejection.
        rescued_values: Values in _rescued_data because they do not fit the type of their column.
        misfits: The same by column, where recorded.
        output_files: Parquet files of rows on record.
        output_bytes: Their size.
    """

    manifests: int = 0
    dead_letters: int = 0
    files_by_status: Counter[str] = field(default_factory=Counter)
    input_bytes: int = 0
    decoded_bytes: int = 0
    lines: int = 0
    rows: int = 0
    rejected_lines: int = 0
    unkept_rejects: int = 0
    blank_lines: int = 0
    erased_lines: int = 0
    rejects_by_reason: Counter[str] = field(default_factory=Counter)
    redriven_by_reason: Counter[str] = field(default_factory=Counter)
    rescued_values: int = 0
    misfits: Counter[str] = field(default_factory=Counter)
    output_files: int = 0
    output_bytes: int = 0

    def __add__(self, other: "Counts") -> "Counts":
        return Counts(**{name: _sum(value, getattr(other, name), 1) for name, value in self.by_name.items()})

    def __sub__(self, other: "Counts") -> "Counts":
        return Counts(**{name: _sum(value, getattr(other, name), -1) for name, value in self.by_name.items()})

    @property
    def by_name(self) -> dict[str, Any]:
        """Each number by its field name."""
        return {each.name: getattr(self, each.name) for each in fields(Counts)}

    @property
    def input_files(self) -> int:
        """Compacted versions of files."""
        return self.files_by_status[FileStatus.COMPACTED]

    @property
    def quarantined_by_status(self) -> Counter[str]:
        """How many files were ever quarantined, by status. A file may count several times."""
        return quarantined_of(self.files_by_status)

    @property
    def left_to_operator(self) -> Counter[str]:
        """The same, without deferred files, which the job redrives."""
        return self.quarantined_by_status - Counter({FileStatus.DEFERRED: self.files_by_status[FileStatus.DEFERRED]})

    @property
    def adds_up(self) -> bool:
        """Whether every line is accounted for."""
        return self.rows + self.rejected_lines + self.blank_lines + self.erased_lines == self.lines


def _sum(one: Any, other: Any, sign: int) -> Any:
    if not isinstance(one, Counter):
        return one + sign * other
    return Counter({name: found for name in {**one, **other} if (found := one[name] + sign * other[name])})


def counts_of(outcome: Commit | DeadLetter, *, with_source: bool = True) -> Counts:
    """The counts of one manifest; `with_source` as in `file_counts`."""
    if isinstance(outcome, DeadLetter):
        return Counts(dead_letters=1)
    return file_counts(outcome.files, with_source=with_source) + Counts(
        manifests=1,
        rows=-outcome.erased_rows,
        erased_lines=outcome.erased_rows,
        rescued_values=outcome.rescued_values,
        misfits=Counter(outcome.misfits),
        output_files=len(outcome.outputs),
        output_bytes=sum(file.size_bytes for file in outcome.outputs),
    )


def file_counts(files: Iterable[FileReport], *, with_source: bool) -> Counts:
    """Add up files.

    Args:
        files: The reports.
        with_source: Whether the counts will be added to those of the files that redriven lines come from. These count a
            redriven line as one line and one reject, so it adds no line here and subtracts the reject.
    """
    sums: Any = Counter()
    statuses, rejects, redriven = Counter[str](), Counter[str](), Counter[str]()
    for file in files:
        sums["rows"] += file.records
        sums["rejected_lines"] += file.rejected_lines
        sums["blank_lines"] += file.blank_lines
        sums["erased_lines"] += file.erased_rejects
        sums["unkept_rejects"] += sum(file.unkept_rejects.values())
        rejects.update(file.rejects)
        if file.source_uri and file.lines:
            redriven[file.rejected_as] += file.lines
        if file.source_uri and with_source:
            sums["rejected_lines"] -= file.lines
            rejects[file.rejected_as] -= file.lines
        else:
            sums["lines"] += file.lines
            statuses[file.status] += 1
            statuses.update([FileStatus.CHANGED] * file.superseded)
            if file.status is FileStatus.COMPACTED:
                sums["input_bytes"] += file.size_bytes
                sums["decoded_bytes"] += file.decoded_bytes
    return Counts(
        **sums, files_by_status=statuses, rejects_by_reason=without_zeros(rejects), redriven_by_reason=redriven
    )


def quarantined_of(files_by_status: Mapping[str, int]) -> Counter[str]:
    """Quarantined files by result; see `NEEDS_OPERATOR`."""
    return Counter({each: files for each, files in files_by_status.items() if each in NEEDS_OPERATOR})


def bytes_per_byte(output_bytes: int, input_bytes: int) -> float | None:
    """Parquet bytes per stored input byte; None without input."""
    return output_bytes / input_bytes if input_bytes else None


def are_few_rows(rows: int, rejected_lines: int) -> bool:
    """Whether less than half of the non-blank lines became rows."""
    return rows < rejected_lines


def without_zeros(counts: Counter[str]) -> Counter[str]:
    """The counts without zeros."""
    return Counter({each: number for each, number in counts.items() if number})
