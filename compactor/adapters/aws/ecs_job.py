"""Lists, starts and stops the job's tasks on ECS, on Fargate or on instances.

A task is a run: the control plane starts it, not a service of ECS, so that one set of rules decides about starts,
breaker and drains everywhere. Each start contains the command, as a task definition serves all shards.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from compactor.adapters.aws.errors import translated, translated_pages
from compactor.control.one_run import start_one
from compactor.control.snapshot import JobRun, JobState, newest_first
from compactor.core.errors import ExitCode, StoreUnavailable
from compactor.core.ports import Clock
from compactor.cost.prices import JobSize
from compactor.settings.sections import Ecs

CONTAINER = "compactor"
HEALTH_FILE = "/tmp/health"  # noqa: S108 - in the container; its health check looks at it
_PAGE_TASKS = 100  # the limit of ListTasks and DescribeTasks [ECS API]

STATES: Mapping[str, JobState] = {
    "PROVISIONING": JobState.STARTING,
    "PENDING": JobState.STARTING,
    "ACTIVATING": JobState.STARTING,
    "RUNNING": JobState.RUNNING,
    "DEACTIVATING": JobState.STOPPING,
    "STOPPING": JobState.STOPPING,
    "DEPROVISIONING": JobState.STOPPING,
    "STOPPED": JobState.STOPPED,
    "DELETED": JobState.STOPPED,
}
_STOPPED_BY_OTHERS = {"UserInitiated", "SpotInterruption", "TerminationNotice"}
_IN_ORDER = {int(ExitCode.DONE), int(ExitCode.NEEDS_OPERATOR)}


@dataclass(frozen=True, slots=True, kw_only=True)
class EcsJob:
    """The job's tasks in one cluster.

    ECS keeps a stopped task for an hour, so the history is short; the breaker's window is as long.

    Attributes:
        name: The name of its runs. Other tasks of the definition are left alone.
        shard: The job's shard; empty if it takes all manifests.
        defined_at: When the settings were written, which counts as a deployment; None if unknown.
    """

    ecs: Any
    name: str
    wanted: Ecs
    settings_place: str
    clock: Clock
    defined_at: Callable[[], datetime | None]
    shard: str = ""
    page_tasks: int = _PAGE_TASKS

    def list(self, since: datetime) -> Sequence[JobRun]:
        # A task that stops meanwhile is listed twice, the second time as stopped.
        found = {task["taskArn"]: _run(task) for task in self._tasks() if task.get("startedBy") == self.name}
        return newest_first([run for run in found.values() if run.is_living or run.started_at >= since])

    def start(self) -> str | None:
        return start_one(self.name, self, self.clock, self._submit)

    def stop(self, run_id: str) -> None:
        with translated(self._place):  # SIGTERM; SIGKILL follows after the container's stopTimeout
            self.ecs.stop_task(cluster=self.wanted.cluster, task=run_id, reason="stopped by the control plane")

    def _submit(self, token: str) -> str:
        network = {
            "subnets": [*self.wanted.subnets],
            "securityGroups": [*self.wanted.security_groups],
            "assignPublicIp": "ENABLED" if self.wanted.public_ip else "DISABLED",
        }
        with translated(self._place):
            answer = self.ecs.run_task(
                cluster=self.wanted.cluster,
                taskDefinition=self.wanted.task_definition,
                clientToken=token,
                startedBy=self.name,
                capacityProviderStrategy=[{"capacityProvider": self.wanted.capacity_provider}],
                networkConfiguration={"awsvpcConfiguration": network},
                overrides={"containerOverrides": [{"name": CONTAINER, "command": self._command()}]},
                propagateTags="TASK_DEFINITION",
            )
        for failure in answer.get("failures", ()):  # ECS answers so if it has no room
            reason, detail = failure.get("reason", "unknown reason"), failure.get("detail", "")
            raise StoreUnavailable(f"{self._place}: no task was started: {reason} {detail}".rstrip())
        return _id(answer["tasks"][0])

    def _command(self) -> Sequence[str]:
        of_shard = ["--shard", self.shard] if self.shard else []
        options = ["--config", self.settings_place, "--log-format", "json"]
        return [*options, "job", "run", "--health-file", HEALTH_FILE, *of_shard]

    def _tasks(self) -> Iterator[Mapping[str, Any]]:
        for status in ("RUNNING", "STOPPED"):  # what is wanted of a task: one that stops is in the second list
            pages = self.ecs.get_paginator("list_tasks").paginate(
                cluster=self.wanted.cluster,
                family=self.wanted.task_definition,
                desiredStatus=status,
                PaginationConfig={"PageSize": self.page_tasks},
            )
            for answer in translated_pages(self._place, pages):
                if arns := answer.get("taskArns"):
                    with translated(self._place):
                        yield from self.ecs.describe_tasks(cluster=self.wanted.cluster, tasks=arns)["tasks"]

    @property
    def _place(self) -> str:
        return f"ECS cluster {self.wanted.cluster}"


def _id(task: Mapping[str, Any]) -> str:
    return str(task["taskArn"]).rpartition("/")[2]


def _run(task: Mapping[str, Any]) -> JobRun:
    state, created_at = _state(task), task["createdAt"]
    changed_at = task.get("stoppedAt") or task.get("stoppingAt") or task.get("startedAt") or created_at
    reasons = [str(task.get("stoppedReason") or ""), *(str(each.get("reason") or "") for each in _containers(task))]
    return JobRun(
        run_id=_id(task),
        state=state,
        started_at=created_at,
        changed_at=changed_at,
        ended_at=None if state.is_living else changed_at,
        error="; ".join(filter(None, reasons)) if state is JobState.FAILED else "",
        size=_size(task),
    )


def _size(task: Mapping[str, Any]) -> JobSize | None:
    """The task's part of Fargate; None on instances and on spare capacity, whose prices differ."""
    if task.get("capacityProviderName") != "FARGATE" or not (task.get("cpu") and task.get("memory")):
        return None
    return JobSize(f"{int(task['cpu']) / 1024:g}x{int(task['memory']) / 1024:g}", 1, "", runtime="ecs")


def _state(task: Mapping[str, Any]) -> JobState:
    state = STATES.get(task.get("lastStatus", ""), JobState.UNKNOWN)
    if state in {JobState.STARTING, JobState.RUNNING} and task.get("desiredStatus") == "STOPPED":
        return JobState.STOPPING
    if state is not JobState.STOPPED or task.get("stopCode") in _STOPPED_BY_OTHERS:
        return state
    codes = {each.get("exitCode") for each in _containers(task)}
    return JobState.SUCCEEDED if codes and codes <= _IN_ORDER else JobState.FAILED


def _containers(task: Mapping[str, Any]) -> Sequence[Mapping[str, Any]]:
    return [each for each in task.get("containers", ()) if each.get("name") == CONTAINER]
