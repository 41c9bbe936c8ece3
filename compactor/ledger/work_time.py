"""Measures durations: total work time, and files' time from arrival to visible rows. No I/O."""

from collections.abc import Iterable
from datetime import datetime, timedelta

from compactor.core.documents.changes import Commit
from compactor.core.documents.manifest import Manifest, ManifestFile
from compactor.core.documents.records import Accepted, FileStatus, RecentCommit


def covered_seconds(spans: Iterable[tuple[datetime, datetime]]) -> float:
    """The total length of the union of time spans."""
    return sum((end - start for start, end in merged_spans(spans)), timedelta()).total_seconds()


def merged_spans(spans: Iterable[tuple[datetime, datetime]]) -> list[tuple[datetime, datetime]]:
    """The union of time spans, as ordered spans that do not touch. A span that ends before it starts is ignored."""
    merged: list[tuple[datetime, datetime]] = []
    for start, end in sorted(spans):
        if merged and start <= merged[-1][1]:
            merged[-1] = (merged[-1][0], max(end, merged[-1][1]))
        elif end > start:
            merged.append((start, end))
    return merged


def work_spans(commits: Iterable[RecentCommit]) -> list[tuple[datetime, datetime]]:
    """Start and end of each commit's work, sorted."""
    return sorted((each.decided_at - timedelta(seconds=each.seconds), each.decided_at) for each in commits)


def arrival_seconds(accepted: Accepted, commit: Commit, done_at: datetime) -> tuple[float, ...]:
    """The seconds from each file's arrival until its rows became visible.

    A file arrives with its event; without one, when a listing found it, or else when its manifest was created. The age
    of a file that an operator planned is not a delay of the job.
    """
    manifest = accepted.manifest
    if manifest is None:
        return ()
    compacted = {report.uri for report in commit.files if report.status is FileStatus.COMPACTED}
    arrived = [_arrival(file, manifest) for file in manifest.files if file.uri in compacted]
    # Clocks differ: a file that seems visible before its arrival took no time.
    return tuple(max(0.0, (done_at - moment).total_seconds()) for moment in arrived)


def _arrival(file: ManifestFile, manifest: Manifest) -> datetime:
    return manifest.listed_at or file.event_time or manifest.created_at
