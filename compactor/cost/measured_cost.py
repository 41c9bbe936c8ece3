"""Computes the cost of the latest commits: bytes and times from the ledger, dollars from the workers' price. No I/O."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from compactor.core.documents.records import RecentCommit
from compactor.core.results import as_document
from compactor.cost.prices import HOUR_SECONDS, TERABYTE, JobSize, Load
from compactor.ledger.work_time import covered_seconds, work_spans

MEASURED_DOLLARS = tuple(f"dollars_{of}{time}" for of in ("", "per_terabyte_") for time in ("at_work", "elapsed"))
"""The properties of a measured cost that are in dollars."""


@as_document(shows=("elapsed_seconds", *MEASURED_DOLLARS))
@dataclass(frozen=True, slots=True)
class MeasuredCost:
    """The cost of the latest commits, or those of a period, on these workers.

    Bytes, files and times are measured. The price, and the use of these workers for the commits, are assumed.
    """

    commits: int  # number of commits, at most 64 per stream
    since: datetime  # start of the first commit
    until: datetime  # end of the last commit
    input_files: int
    input_bytes: int  # stored size of the compacted files
    at_work_seconds: float  # time with at least one commit in progress
    dollars_per_hour: float

    @property
    def elapsed_seconds(self) -> float:
        """The time from the start of the first to the end of the last, including pauses."""
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

    @property
    def load(self) -> Load:
        """The mean load. Requires input."""
        files_per_hour = self.input_files / (self.elapsed_seconds / HOUR_SECONDS)
        return Load(files_per_hour, max(1, self.input_bytes // self.input_files))

    def per_terabyte(self, dollars: float) -> float | None:
        """Dollars divided by the input; None without input."""
        return dollars / (self.input_bytes / TERABYTE) if self.input_bytes else None


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


@dataclass(frozen=True, slots=True)
class StreamCost:
    """A stream's share of a cost: by its input bytes, so that all shares add up."""

    stream: str  # name of the stream
    commits: int  # number of commits
    input_files: int
    input_bytes: int  # stored size of the compacted files
    at_work_seconds: float  # time with at least one of its commits in progress
    share_of_input: float  # its share of all streams' input, from 0 to 1
    dollars: float  # its share of the whole cost: all services with --days, else the workers


def together(found: Sequence[MeasuredCost], dollars_per_hour: float) -> MeasuredCost:
    """The combined cost of several streams over the same period, on workers with this total price.

    Streams may work at the same time, which is unknown here, so this is the upper limit of their work time.
    """
    since, until = min(each.since for each in found), max(each.until for each in found)
    at_work = sum(each.at_work_seconds for each in found)
    return MeasuredCost(
        commits=sum(each.commits for each in found),
        since=since,
        until=until,
        input_files=sum(each.input_files for each in found),
        input_bytes=sum(each.input_bytes for each in found),
        at_work_seconds=min(at_work, (until - since).total_seconds()),
        dollars_per_hour=dollars_per_hour,
    )


def common_commits(recent: Mapping[str, Sequence[RecentCommit]], slots: int) -> dict[str, list[RecentCommit]]:
    """The latest commits of several streams, starting where those of all are known.

    Args:
        recent: Each stream's commits.
        slots: The most commits known per stream.
    """
    spans = {name: work_spans(commits) for name, commits in recent.items()}
    since = max((each[0][0] for each in spans.values() if each and len(each) >= slots), default=None)
    return {
        name: [each for each in commits if since is None or _began(each) >= since] for name, commits in recent.items()
    }


def _began(commit: RecentCommit) -> datetime:
    return commit.decided_at - timedelta(seconds=commit.seconds)


def stream_costs(found: Mapping[str, MeasuredCost], dollars: float) -> list[StreamCost]:
    """Each stream's share of a cost."""
    whole = sum(each.input_bytes for each in found.values())
    return [
        StreamCost(
            name,
            each.commits,
            each.input_files,
            each.input_bytes,
            each.at_work_seconds,
            share := each.input_bytes / whole if whole else 0.0,
            share * dollars,
        )
        for name, each in found.items()
    ]


def cost_metrics(jobs: Sequence[JobSize], recent: Sequence[RecentCommit], now: datetime) -> dict[str, float]:
    """The cost metrics, for the workers of each active run; none for workers without a known price.

    The time since the last commit counts: an idle job costs as much.
    """
    if not all(job.is_priced for job in jobs):
        return {}
    dollars_per_hour = sum(job.dollars_per_hour for job in jobs)
    found = measured_cost(recent, dollars_per_hour)
    per_terabyte = replace(found, until=now).dollars_per_terabyte_elapsed if jobs and found else None
    of_input = {} if per_terabyte is None else {"EstimatedDollarsPerTerabyte": per_terabyte}
    return {"EstimatedDollarsPerHour": dollars_per_hour, **of_input}
