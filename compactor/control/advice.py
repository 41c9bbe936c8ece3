"""Gives sizing advice: how long manifests take against the SLA, what arrives against what is processed. No I/O."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from statistics import median

from compactor.control.health import Condition, Finding, finding
from compactor.control.snapshot import Snapshot
from compactor.core.formatting import shown_seconds
from compactor.core.records import RecentCommit
from compactor.ledger.backlog import Backlog
from compactor.ledger.work_time import covered_seconds, work_spans
from compactor.settings.control_policy import Policy

MIN_COMMITS = 8  # fewer commits than this do not show a pace

MIN_WAITING = 3  # fewer waiting manifests than this do not show what arrives

LEAST_BUSY_SHARE = 0.2
LEAST_SPAN_SECONDS = 3600.0


@dataclass(frozen=True, slots=True)
class Pace:
    """The pace of the job over the latest commits."""

    commit_seconds: float  # the median time of a manifest
    processed_bytes_per_second: float  # stored input over the time in which any manifest was in progress
    busy_share: float  # that time as a fraction of `span_seconds`
    span_seconds: float  # the time from the start of the first of these commits to the end of the last
    arriving_bytes_per_second: float | None  # stored input that arrives; None where too little waits to tell


def pace(recent: Sequence[RecentCommit], backlog: Backlog | None) -> Pace | None:
    """The pace of the latest commits; None where there are too few.

    Manifests are taken in order, so all that wait arrived within the age of the oldest. Their number over that age is
    the rate of arrival.
    """
    if len(recent) < MIN_COMMITS:
        return None
    intervals = work_spans(recent)
    span = (max(end for _, end in intervals) - intervals[0][0]).total_seconds()
    busy = covered_seconds(intervals)
    if busy <= 0:
        return None
    input_bytes = sum(each.input_bytes for each in recent)
    arriving = None
    if backlog is not None and backlog.manifests >= MIN_WAITING and backlog.oldest_seconds > 0:
        arriving = input_bytes / len(recent) * backlog.manifests / backlog.oldest_seconds
    return Pace(
        commit_seconds=median(each.seconds for each in recent),
        processed_bytes_per_second=input_bytes / busy,
        busy_share=busy / span,
        span_seconds=span,
        arriving_bytes_per_second=arriving,
    )


def advice(snapshot: Snapshot, policy: Policy) -> Iterator[Finding]:
    """What a person may want to change about the size of the job."""
    found = pace(snapshot.recent or (), snapshot.backlog)
    if found is None:
        return
    if found.commit_seconds > policy.sla_seconds / 2:
        takes, sla = shown_seconds(found.commit_seconds), shown_seconds(policy.sla_seconds)
        yield finding(Condition.SLOW_MANIFESTS, f"a manifest takes {takes}, more than half of the SLA of {sla}")
    arriving, processed = found.arriving_bytes_per_second, found.processed_bytes_per_second
    if arriving is not None and arriving > processed:
        rates = f"{arriving / 1e6:,.1f} MB/s arrive and {processed / 1e6:,.1f} MB/s are processed"
        reason = f"{rates}: {arriving / processed:.1f} times the workers would keep up"
        yield finding(Condition.TOO_FEW_WORKERS, reason)
    is_quiet = found.busy_share < LEAST_BUSY_SHARE and found.span_seconds >= LEAST_SPAN_SECONDS
    if is_quiet and arriving is None and policy.mode == "always":
        reason = f"the job was at work for {found.busy_share:.0%} of the last {shown_seconds(found.span_seconds)}"
        yield finding(Condition.TOO_MANY_WORKERS, reason)
