"""Lists, starts and cancels the job's runs on EMR Serverless.

An application has no job definition and no run limit: so each start contains all parameters, and does nothing while a
run with this name is alive. Concurrent starts send the same token, so that EMR Serverless makes one run. Runs use mode
BATCH, because EMR Serverless "always retries" a run in mode STREAMING [EMR Serverless User Guide, Job resiliency], and
only the control plane restarts the job.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from compactor.adapters.aws.errors import translated, translated_pages
from compactor.control.one_run import start_one
from compactor.control.snapshot import JobRun, JobState, newest_first
from compactor.core.ports import Clock
from compactor.settings.sections import Emr

_PAGE_RUNS = 50  # the limit of ListJobRuns [EMR Serverless API]

STATES: Mapping[str, JobState] = {
    "SUBMITTED": JobState.WAITING,
    "PENDING": JobState.WAITING,
    "QUEUED": JobState.WAITING,
    "SCHEDULED": JobState.STARTING,
    "RUNNING": JobState.RUNNING,
    "CANCELLING": JobState.STOPPING,
    "CANCELLED": JobState.STOPPED,
    "SUCCESS": JobState.SUCCEEDED,
    "FAILED": JobState.FAILED,
}
_LIVING = [name for name, state in STATES.items() if state.is_living]

_PYTHON = "./environment/bin/python"


@dataclass(frozen=True, slots=True, kw_only=True)
class EmrJob:
    """The job in one application.

    Attributes:
        name: The name of its runs. Other runs in the application are left alone.
        shard: The job's shard; empty if it takes all manifests.
        defined_at: When the settings were written, which counts as a deployment; None if unknown.
    """

    emr: Any
    name: str
    wanted: Emr
    settings_place: str
    clock: Clock
    defined_at: Callable[[], datetime | None]
    shard: str = ""
    page_runs: int = _PAGE_RUNS

    def list(self, since: datetime) -> Sequence[JobRun]:
        # A run without a timeout may have lived longer than any history.
        found = {run.run_id: run for run in self._listed(states=_LIVING)}
        found.update((run.run_id, run) for run in self._listed(createdAtAfter=since))
        return newest_first([run for run in found.values() if run.is_living or run.started_at >= since])

    def start(self) -> str | None:
        return start_one(self.name, self, self.clock, self._submit)

    def _submit(self, token: str) -> str:
        with translated(self._place):
            answer = self.emr.start_job_run(
                applicationId=self.wanted.application_id,
                clientToken=token,
                executionRoleArn=self.wanted.role_arn,
                name=self.name,
                mode="BATCH",
                # "You can set executionTimeoutMinutes to 0 if you want your job run to never time out" [EMR Serverless
                # User Guide, Other considerations]; the default is 12 hours.
                executionTimeoutMinutes=0,
                jobDriver={"sparkSubmit": self._submitted()},
                configurationOverrides=self._monitored(),
            )
        return str(answer["jobRunId"])

    def stop(self, run_id: str) -> None:
        with translated(self._place):
            self.emr.cancel_job_run(applicationId=self.wanted.application_id, jobRunId=run_id)

    def _listed(self, **which: Any) -> Iterator[JobRun]:
        pages = self.emr.get_paginator("list_job_runs").paginate(
            applicationId=self.wanted.application_id, PaginationConfig={"PageSize": self.page_runs}, **which
        )
        for answer in translated_pages(self._place, pages):
            yield from (_run(each) for each in answer.get("jobRuns", ()) if each.get("name") == self.name)

    def _submitted(self) -> Mapping[str, object]:
        return {
            "entryPoint": self.wanted.entry_point,
            "entryPointArguments": ["--CONFIG", self.settings_place, *(["--SHARD", self.shard] if self.shard else [])],
            "sparkSubmitParameters": spark_submit_parameters(self.wanted),
        }

    def _monitored(self) -> Mapping[str, object]:
        group = self.wanted.log_group
        logging = {"enabled": True, "logGroupName": group} if group else {"enabled": False}
        return {"monitoringConfiguration": {"cloudWatchLoggingConfiguration": logging}}

    @property
    def _place(self) -> str:
        return f"EMR Serverless application {self.wanted.application_id}"


def spark_submit_parameters(wanted: Emr) -> str:
    """The spark-submit options: the archive with its Python, as in AWS's guide, and the properties."""
    properties = {
        "spark.archives": f"{wanted.archive}#environment",
        "spark.emr-serverless.driverEnv.PYSPARK_DRIVER_PYTHON": _PYTHON,
        "spark.emr-serverless.driverEnv.PYSPARK_PYTHON": _PYTHON,
        "spark.executorEnv.PYSPARK_PYTHON": _PYTHON,
        **wanted.spark_conf,
    }
    return " ".join(f"--conf {key}={value}" for key, value in properties.items())


def _run(found: Mapping[str, Any]) -> JobRun:
    state = STATES.get(found["state"], JobState.UNKNOWN)
    details = str(found.get("stateDetails") or "")
    return JobRun(
        run_id=found["id"],
        state=state,
        started_at=found["createdAt"],
        changed_at=found["updatedAt"],
        ended_at=None if state.is_living else found["updatedAt"],
        error=details if state is JobState.FAILED else "",
    )
