"""Finds the rejects of one file among those of its manifest."""

from collections.abc import Sequence
from itertools import islice

from compactor.core.documents.records import Commit, FileReport, RedrivenInput
from compactor.core.errors import StagingError
from compactor.core.ports import ObjectStore
from compactor.ops.redrive.rejected_lines.line_numbers import numbers_of
from compactor.ops.redrive.rejected_lines.writing import has_rejects_of, reject_rows
from compactor.ops.trace.trace import TracedReject

MOST_LINES = 10


def own_rejects(
    store: ObjectStore, commit: Commit, report: FileReport, settled: Sequence[RedrivenInput] = ()
) -> tuple[list[str], list[TracedReject]]:
    """The files that have rejects of an input file, and its first rejected lines.

    Args:
        store: Has the rejects. A file of them that cannot be read is named all the same.
        commit: The commit of the manifest.
        report: The report on the file.
        settled: Lines that are no rejects any more.
    """
    uris: list[str] = []
    lines: dict[tuple[int, str], None] = {}
    gone = numbers_of(settled)
    for file in commit.rejects if report.reject_rows else ():
        try:
            if not has_rejects_of(store, file.final, report.origin_uri):
                continue
            uris.append(file.final)
            rows = (row for row in reject_rows(store, file.final) if row[0] == report.origin_uri)
            left = (row for row in rows if (numbers := gone.get((row[0], row[3]))) is None or row[1] not in numbers)
            for row in left:
                if len(lines) > MOST_LINES:
                    break
                lines[row[1], row[3]] = None
        except StagingError:  # `verify` says what is wrong with it
            uris.append(file.final)
    places = report.value_lines
    offsets = places.offsets_of if places is not None else lambda _: (None, None)
    return uris, [TracedReject(line, reason, *offsets(line)) for line, reason in islice(lines, MOST_LINES)]
