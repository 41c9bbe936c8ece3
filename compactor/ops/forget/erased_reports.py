"""The reports on input files after rejected lines of them were erased. No I/O."""

from collections import defaultdict
from collections.abc import Mapping, Sequence

from compactor.core.documents.records import FileReport
from compactor.ops.forget.reject_search import RejectFound
from compactor.ops.redrive.reject_lines import LineNumbers


def erased_reports(
    files: Sequence[FileReport], found: Sequence[RejectFound], redriven: Mapping[tuple[str, str], LineNumbers]
) -> list[FileReport]:
    """The reports without these lines.

    Args:
        files: The reports on compacted files; several may have redriven lines of one file.
        found: Lines whose kept bytes go.
        redriven: Lines that are rows, or rejects of another manifest, by file and reason. They go from the rejects, and
            count as before: the other manifest has the line.
    """
    reports, places = list(files), defaultdict[str, list[int]](list)
    for number, file in enumerate(files):
        places[file.origin_uri].append(number)
    for line in found:
        at = next((at for at in places[line.source_uri] if _counts(reports[at], line)), None)
        if at is None:  # a sample of a quarantined file
            continue
        report = reports[at]
        update: dict[str, object] = {"reject_rows": report.reject_rows - line.rows}
        numbers = redriven.get((line.source_uri, line.reason))
        if numbers is None or line.line_number not in numbers:
            left = report.rejects[line.reason] - 1
            rejects = {**report.rejects, line.reason: left}
            update |= {
                "rejected_lines": report.rejected_lines - 1,
                "erased_rejects": report.erased_rejects + 1,
                "rejects": {reason: lines for reason, lines in rejects.items() if lines},
            }
        reports[at] = report.model_copy(update=update)
    return reports


def _counts(report: FileReport, line: RejectFound) -> bool:
    """Whether a line may be among those that a report counts and whose bytes were kept."""
    kept = report.rejects.get(line.reason, 0) - report.unkept_rejects.get(line.reason, 0)
    return kept > 0 and report.reject_rows >= line.rows
