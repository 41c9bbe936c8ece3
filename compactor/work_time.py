"""How long work took where several pieces of it were under way at once. Decisions, no I/O."""

from collections.abc import Iterable
from datetime import datetime, timedelta

from compactor.records import RecentCommit


def covered_seconds(spans: Iterable[tuple[datetime, datetime]]) -> float:
    """The length of what spans of time cover together."""
    covered = timedelta()
    end_so_far: datetime | None = None
    for start, end in sorted(spans):
        from_here = start if end_so_far is None else max(start, end_so_far)
        covered += max(end - from_here, timedelta())
        end_so_far = end if end_so_far is None else max(end, end_so_far)
    return covered.total_seconds()


def work_spans(commits: Iterable[RecentCommit]) -> list[tuple[datetime, datetime]]:
    """From begin to end of the work on each commit, in order."""
    return sorted((each.decided_at - timedelta(seconds=each.seconds), each.decided_at) for each in commits)
