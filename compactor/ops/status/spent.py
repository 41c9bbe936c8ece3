"""Computes the cost of the workers so far, from Glue's runs and the latest commits. Decisions, no I/O."""

from collections.abc import Sequence
from datetime import datetime, timedelta

from compactor.control.runs import JobRun
from compactor.core.documents.records import RecentCommit
from compactor.cost.measured_cost import measured_cost
from compactor.cost.prices import JobSize
from compactor.ops.status.values import Spent

NOT_ON_GLUE = "not on Glue"
OF_SHARED_JOB = "that of a job which works on other streams, too"

_DAY = timedelta(days=1)
_HOUR_SECONDS = 3600.0


def spent(runs: Sequence[JobRun], recent: Sequence[RecentCommit], now: datetime) -> Spent:
    """The cost of the runs, which reach back at least to the latest one."""
    priced = [(run, run.size) for run in runs if run.size is not None and run.size.is_priced]
    if not priced:
        return Spent("no run on Glue whose workers have a price")
    latest, job = max(priced, key=lambda each: each[0].started_at)
    measured = measured_cost(recent, job.dollars_per_hour)
    return Spent(
        job=job,
        run_seconds=latest.lived_seconds(now),
        run_dollars=_dollars(latest, job, latest.started_at, now),
        day_dollars=sum(_dollars(run, size, max(run.started_at, now - _DAY), now) for run, size in priced),
        dollars_per_hour=job.dollars_per_hour,
        dollars_per_terabyte=None if measured is None else measured.dollars_per_terabyte_elapsed,
    )


def _dollars(run: JobRun, size: JobSize, start: datetime, now: datetime) -> float:
    """The cost of a run since a moment; 0 if it had ended by then."""
    seconds = ((run.ended_at or now) - start).total_seconds()
    return max(0.0, seconds) * size.dollars_per_hour / _HOUR_SECONDS
