"""Computes what the latest commits cost: bytes and times from the ledger, dollars from the workers' price. No I/O."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from compactor.core.records import RecentCommit
from compactor.cost.prices import HOUR_SECONDS, TERABYTE, JobSize
from compactor.ledger.work_time import covered_seconds, work_spans


@dataclass(frozen=True, slots=True)
class MeasuredCost:
    """The latest commits on record, and the price of the workers for the same time.

    Bytes, files and times are measured. The price, and that these workers made the commits, are assumed.
    """

    commits: int  # the number of commits, at most 64
    since: datetime  # the start of the first commit
    until: datetime  # the end of the last commit
    input_files: int
    input_bytes: int  # the stored length of the compacted files
    at_work_seconds: float  # the time during which at least one commit was in progress
    dollars_per_hour: float

    @property
    def elapsed_seconds(self) -> float:
        """The time from the start of the first to the end of the last, pauses included."""
        return (self.until - self.since).total_seconds()

    @property
    def dollars_at_work(self) -> float:
        return self.dollars_per_hour * self.at_work_seconds / HOUR_SECONDS

    @property
    def dollars_elapsed(self) -> float:
        return self.dollars_per_hour * self.elapsed_seconds / HOUR_SECONDS

    @property
    def dollars_per_terabyte_at_work(self) -> float | None:
        return self.per_terabyte(self.dollars_at_work)

    @property
    def dollars_per_terabyte_elapsed(self) -> float | None:
        return self.per_terabyte(self.dollars_elapsed)

    def per_terabyte(self, dollars: float) -> float | None:
        """Dollars over the input; None without input."""
        return dollars / (self.input_bytes / TERABYTE) if self.input_bytes else None


MEASURED_DOLLARS = tuple(f"dollars_{of}{time}" for of in ("", "per_terabyte_") for time in ("at_work", "elapsed"))
"""The properties of a measured cost that are its dollars."""


def measured_cost(recent: Sequence[RecentCommit], dollars_per_hour: float) -> MeasuredCost | None:
    """The cost of the latest commits, in any order, on workers of this price; None without commits."""
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
        dollars_per_hour=dollars_per_hour,
    )


def cost_metrics(jobs: Sequence[JobSize], recent: Sequence[RecentCommit], now: datetime) -> dict[str, float]:
    """The metrics of cost, for the workers of each run that is up; none for workers without a known price.

    The time since the last commit counts: a job that idles costs as well.
    """
    if not all(job.is_priced for job in jobs):
        return {}
    dollars_per_hour = sum(job.dollars_per_hour for job in jobs)
    found = measured_cost(recent, dollars_per_hour)
    per_terabyte = replace(found, until=now).dollars_per_terabyte_elapsed if jobs and found else None
    of_input = {} if per_terabyte is None else {"EstimatedDollarsPerTerabyte": per_terabyte}
    return {"EstimatedDollarsPerHour": dollars_per_hour, **of_input}
