"""Shows what a verification has found, in the same words after `compact` and `verify`."""

from typing import Any

from compactor.cli.ui.output import shallow
from compactor.core.text.formatting import by_name, count
from compactor.ops.verify.report import VerifyReport


def verified_document(report: VerifyReport) -> dict[str, Any]:
    """A verification as JSON."""
    return {
        **shallow(report, "input_files", "quarantined_by_status"),
        "open_quarantined_files": len(report.open_files),
        "open_dead_letters": len(report.open_letters),
    }


def counted_words(report: VerifyReport) -> str:
    """In how many of the output files rows were counted, and how many are missing."""
    files, verified = report.output_files, report.output_files_verified
    expired = sum(each.files for each in report.expired if each.part == "rows")
    others = (
        (report.output_files_missing, "missing"),
        (expired, "expired"),
        (report.output_files_summed, "of closed dates, by their summaries"),
        (files - verified - report.output_files_missing - expired - report.output_files_summed, "not as recorded"),
    )
    parts = [f"{number:,} {what}" for number, what in others if number]
    if not parts:
        return f"counted in the footers of {'all ' if files > 1 else ''}{count(files, 'output file')}"
    return f"counted in the footers of {verified:,} of {count(files, 'output file')} ({', '.join(parts)})"


def quarantined_words(report: VerifyReport) -> str:
    """How many files need a person, and how many were ever quarantined; empty if none was."""
    ever = report.quarantined_by_status.total()
    if not ever:
        return ""
    waiting = f"{len(report.open_files):,} need a person" if len(report.open_files) != 1 else "1 needs a person"
    return f"{waiting}; {ever:,} in all, settled or not ({by_name(report.quarantined_by_status)})"
