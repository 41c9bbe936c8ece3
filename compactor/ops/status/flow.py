"""Compares arrival with processing, and estimates the time until the backlog is empty. Decisions, no I/O."""

from collections import Counter
from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta

from compactor.core.documents.counts import without_zeros
from compactor.core.documents.records import RecentCommit
from compactor.ledger.backlog import Backlog
from compactor.ledger.sizing import with_share
from compactor.ledger.work_time import covered_seconds, work_spans
from compactor.ops.status.values import Drain, Misfits, OutputSizes, Rates, Rejects

WINDOW_SECONDS = 900.0
"""The window of rates, long enough that a pause between two manifests does not look like the end of the input."""

_LEAST_WINDOW_SECONDS = 1.0


def rates(
    recent: Sequence[RecentCommit], waiting: Iterable[tuple[datetime, float]], now: datetime, *, slots: int
) -> Rates:
    """The rates of arrival and of processing.

    Everything that arrived in the window either waits or is among the latest commits. `waiting` has the creation time
    and the input bytes of each waiting manifest that is not among them. If all slots for summaries are taken, the
    window starts no earlier than the oldest of them.
    """
    start = now - timedelta(seconds=WINDOW_SECONDS)
    if len(recent) >= slots:
        start = max(start, min(each.decided_at for each in recent))
    window = max((now - start).total_seconds(), _LEAST_WINDOW_SECONDS)
    arrivals = [*((_arrived_at(each), float(each.input_bytes)) for each in recent), *waiting]
    worked = covered_seconds(work_spans(recent))
    return Rates(
        window_seconds=window,
        arriving_bytes_per_second=sum(length for moment, length in arrivals if moment > start) / window,
        processed_bytes_per_second=sum(each.input_bytes for each in recent if each.decided_at > start) / window,
        at_work_bytes_per_second=sum(each.input_bytes for each in recent) / worked if worked else None,
    )


def _arrived_at(commit: RecentCommit) -> datetime:
    """When a manifest was created; if unknown, when work on it began."""
    return commit.arrived_at or commit.decided_at - timedelta(seconds=commit.seconds)


def drain(backlog: Backlog, found: Rates, *, is_running: bool) -> Drain:
    """The time until the backlog is empty, if input keeps arriving at this rate and the job works without pauses."""
    if not backlog.manifests:
        return Drain(0.0, is_never=False, reason="nothing waits")
    if not is_running:
        return Drain(None, is_never=True, reason="no job runs")
    at_work, arriving = found.at_work_bytes_per_second, found.arriving_bytes_per_second
    if at_work is None or backlog.input_bytes is None:
        missing = "nothing was committed so far" if at_work is None else "no waiting manifest could be read"
        return Drain(None, is_never=False, reason=missing)
    if not found.processed_bytes_per_second and backlog.oldest_seconds >= found.window_seconds:
        return Drain(None, is_never=True, reason="nothing was committed lately")
    if at_work <= arriving:
        return Drain(None, is_never=True, reason="more arrives than is processed")
    return Drain(
        backlog.input_bytes / (at_work - arriving),
        is_never=False,
        reason="the rate at work minus the arrival rate",
    )


def rejects(recent: Sequence[RecentCommit]) -> Rejects:
    """The rejected lines of the latest commits, without those that another of these commits has redriven."""
    reasons, lines = Counter[str](), 0
    known = {commit.manifest_id for commit in recent}
    for commit in recent:
        reasons.update(commit.rejects)
        lines += commit.rejected_lines
        if commit.rejects_of in known:
            reasons.subtract(commit.redriven)
            lines -= sum(commit.redriven.values())
    return Rejects(len(recent), lines, dict(without_zeros(reasons)))


def misfits(recent: Sequence[RecentCommit]) -> Misfits:
    """The values in the latest commits that do not fit their column's type."""
    columns = Counter[str]()
    for commit in recent:
        columns.update(commit.misfits)
    return Misfits(len(recent), columns.total(), dict(columns))


def output_sizes(recent: Sequence[RecentCommit], target_file_bytes: int) -> OutputSizes:
    """How much of the latest commits' output is in right-sized files.

    Commits with a different recorded target are ignored.
    """
    known = [
        (each.output_bytes, each.right_sized_bytes, each.small_bytes)
        for each in recent
        if each.target_file_bytes == target_file_bytes
    ]
    if not known:
        return OutputSizes(target_file_bytes, 0, None)
    size_bytes, right_sized_bytes, small_bytes = map(sum, zip(*known, strict=True))
    return OutputSizes(target_file_bytes, len(known), with_share(size_bytes, right_sized_bytes, small_bytes))
