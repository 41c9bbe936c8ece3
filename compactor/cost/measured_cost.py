"""What the latest runs cost: bytes and times from the ledger, dollars from the price of the workers. No I/O."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from compactor.core.records import RecentCommit
from compactor.cost.prices import TERABYTE, JobSize
from compactor.ledger.work_time import covered_seconds, work_spans

_HOUR_SECONDS = 3600.0


@dataclass(frozen=True, slots=True)
class MeasuredCost:
    """The latest commits on record, and what so long a time of the workers costs.

    Bytes, files and times are measured; that these workers were the ones at work, and their price, are not.

    Attributes:
        commits: How many; the ledger keeps the summaries of the latest.
        since: The start of the first of them.
        until: The end of the last of them.
        input_files: Compacted.
        input_bytes: Stored length of those.
        at_work_seconds: Time during which at least one of them was in work.
        dollars_per_hour: Of the workers.
    """

    commits: int
    since: datetime
    until: datetime
    input_files: int
    input_bytes: int
    at_work_seconds: float
    dollars_per_hour: float

    @property
    def elapsed_seconds(self) -> float:
        """From the start of the first to the end of the last, pauses included."""
        return (self.until - self.since).total_seconds()

    @property
    def dollars_at_work(self) -> float:
        return self.dollars_per_hour * self.at_work_seconds / _HOUR_SECONDS

    @property
    def dollars_elapsed(self) -> float:
        return self.dollars_per_hour * self.elapsed_seconds / _HOUR_SECONDS

    def per_terabyte(self, dollars: float) -> float | None:
        """Dollars over the input; None where there was none."""
        return dollars / (self.input_bytes / TERABYTE) if self.input_bytes else None


def measured_cost(recent: Sequence[RecentCommit], job: JobSize) -> MeasuredCost | None:
    """What the latest commits cost if this job made them; None if there are none.

    Args:
        recent: Summaries in any order.
        job: The workers.
    """
    if not recent:
        return None
    spans = work_spans(recent)
    return MeasuredCost(
        commits=len(recent),
        since=spans[0][0],
        until=max(end for _, end in spans),
        input_files=sum(commit.input_files for commit in recent),
        input_bytes=sum(commit.input_bytes for commit in recent),
        at_work_seconds=covered_seconds(spans),
        dollars_per_hour=job.dollars_per_hour,
    )


def cost_metrics(jobs: Sequence[JobSize], recent: Sequence[RecentCommit], now: datetime) -> dict[str, float]:
    """The metrics of cost, as of now; none for workers that have no price in the table.

    Args:
        jobs: The workers of each run that is up. While none is, an hour costs nothing.
        recent: Summaries of the latest commits. Time since the last of them counts: a job that idles costs as well.
        now: The time.
    """
    if not all(job.is_priced for job in jobs):
        return {}
    dollars_per_hour = sum(job.dollars_per_hour for job in jobs)
    values = {"EstimatedDollarsPerHour": dollars_per_hour}
    input_bytes = sum(commit.input_bytes for commit in recent)
    if jobs and input_bytes:
        since = min(commit.decided_at - timedelta(seconds=commit.seconds) for commit in recent)
        dollars = dollars_per_hour * (now - since).total_seconds() / _HOUR_SECONDS
        values["EstimatedDollarsPerTerabyte"] = dollars / (input_bytes / TERABYTE)
    return values
