"""How long work took: while several pieces of it were under way at once, and from arrival to visible. No I/O."""

from collections.abc import Iterable
from datetime import datetime, timedelta

from compactor.core.records import Accepted, Commit, FileStatus, RecentCommit


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


def arrival_seconds(accepted: Accepted, commit: Commit, done_at: datetime) -> tuple[float, ...]:
    """How long each compacted file took, from its event, else from its manifest's creation, to being visible."""
    manifest = accepted.manifest
    if manifest is None:
        return ()
    compacted = {report.uri for report in commit.files if report.status is FileStatus.COMPACTED}
    arrived = [file.event_time or manifest.created_at for file in manifest.files if file.uri in compacted]
    # Clocks differ: what seems to be visible before it came took no time.
    return tuple(max(0.0, (done_at - moment).total_seconds()) for moment in arrived)
