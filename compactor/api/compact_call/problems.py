"""Says what keeps a call of `compact` from being complete."""

from collections.abc import Iterator

from compactor.api.compact_call.closing import Closing, unfinished_lines
from compactor.core.text.formatting import count
from compactor.ops.verify.report import VerifyReport

FEW_ROWS = "under half of the lines are rows; expected NDJSON: one JSON object a line"


def problems_of(closing: Closing) -> Iterator[str]:
    """Yield what is not done, and what a person has to act on, in one line each; nothing with exit code 0."""
    yield from unfinished_lines(closing)
    if closing.is_unfinished and not closing.run.failures:
        left = closing.left.manifests if closing.left is not None else 0
        yield f"not finished: {count(left, 'manifest')} left"
    if closing.plan.held and not closing.dry_run:
        yield f"{count(closing.plan.held, 'file')} held by another planner"
    for envelope in closing.doubtful_envelopes:
        yield f"{envelope.uri}: {envelope.words}"
    for each in closing.plan.left_out:
        yield f"{each.uri}: {each.reason}: {each.detail}"
    if closing.verification is not None:
        yield from _found(closing.verification)
        if closing.has_few_rows:
            yield FEW_ROWS


def _found(report: VerifyReport) -> Iterator[str]:
    for file in report.open_files:
        yield f"{file.uri}: {file.status}: {file.detail}"
    for letter in report.open_letters:
        yield f"manifest {letter.manifest_id}: {letter.reason}: {letter.message}"
    for each in report.discrepancies:
        yield f"{each.where}: expected {each.expected}, found {each.found}"
