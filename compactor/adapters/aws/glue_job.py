"""Lists, starts and stops a Glue job's runs."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from botocore.exceptions import ClientError

from compactor.adapters.aws.errors import error_code, error_for, translated, translated_pages
from compactor.control.snapshot import JobRun, JobState, newest_first
from compactor.cost.prices import JobSize

_PAGE_RUNS = 200  # the limit of GetJobRuns [Glue API]
_NEVER = datetime.fromtimestamp(0, UTC)


@dataclass(frozen=True, slots=True, kw_only=True)
class GlueJob:
    """One Glue job, with a boto3 Glue client and the number of runs to list per request."""

    client: Any
    name: str
    page_runs: int = _PAGE_RUNS

    def list(self, since: datetime) -> Sequence[JobRun]:
        found: dict[str, JobRun] = {}
        pages = self.client.get_paginator("get_job_runs").paginate(
            JobName=self.name, PaginationConfig={"PageSize": self.page_runs}
        )
        for answer in translated_pages(self._place, pages):
            page = [_run(each) for each in answer.get("JobRuns", ())]
            found.update((run.run_id, run) for run in page)
            if _ends_before(page, since):
                break
        return newest_first([run for run in found.values() if run.started_at >= since])

    def defined_at(self) -> datetime | None:
        with translated(self._place):
            changed: datetime | None = self.client.get_job(JobName=self.name)["Job"].get("LastModifiedOn")
        return changed

    def start(self) -> str | None:
        with translated(self._place):
            try:
                answer = self.client.start_job_run(JobName=self.name)
            except ClientError as exc:
                # Also if the response to a successful request was lost: the retry finds that very run.
                # guard: a start that meets a run is an outcome
                if error_code(exc) == "ConcurrentRunsExceededException":
                    return None
                raise
        return str(answer["JobRunId"])

    def stop(self, run_id: str) -> None:
        with translated(self._place):
            answer = self.client.batch_stop_job_run(JobName=self.name, JobRunIds=[run_id])
        for error in answer.get("Errors", ()):
            detail = error.get("ErrorDetail", {})
            code, message = str(detail.get("ErrorCode", "")), detail.get("ErrorMessage", "")
            raise error_for(code, f"{self._place}: run {run_id} was not stopped, {code}: {message}", 0)

    @property
    def _place(self) -> str:
        return f"Glue job {self.name}"


def _ends_before(page: Sequence[JobRun], since: datetime) -> bool:
    """Whether no later page can have a run since then: this page, newest first, goes back past it."""
    if len(page) < 2 or page[-1].started_at >= since:  # noqa: PLR2004 - one run has no order
        return False
    return page[0].started_at > page[-1].started_at


def _run(found: Mapping[str, Any]) -> JobRun:
    try:
        state = JobState(found["JobRunState"])
    except ValueError:
        state = JobState.UNKNOWN
    changed_at = found.get("LastModifiedOn") or found.get("CompletedOn") or found.get("StartedOn") or _NEVER
    return JobRun(
        run_id=found["Id"],
        state=state,
        started_at=found.get("StartedOn") or changed_at,
        changed_at=changed_at,
        ended_at=None if state.is_living else found.get("CompletedOn") or changed_at,
        error=str(found.get("ErrorMessage") or ""),
        size=_size(found),
        timeout_seconds=60.0 * found["Timeout"] if found.get("Timeout") else None,
    )


def _size(found: Mapping[str, Any]) -> JobSize | None:
    worker_type, workers, version = (found.get(key) for key in ("WorkerType", "NumberOfWorkers", "GlueVersion"))
    return JobSize(worker_type, workers, version) if worker_type and workers and version else None
