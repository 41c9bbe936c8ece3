"""A stand-in for ECS with one cluster, which refuses what AWS's own description of its API refuses.

moto's tasks have no times, no tokens and no reason for their end.
"""

import uuid
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from compactor.control.snapshot import JobState
from tests.support.emr_stand_in import check, refusal

CLUSTER = "compactor-dev"
FAMILY = "compactor-dev"
KEPT = timedelta(hours=1)
"""For how long stopped tasks are listed at least [ECS API, ListTasks]; here for exactly as long, if `forgets`."""

ENDS: Mapping[JobState, Mapping[str, Any]] = {
    JobState.SUCCEEDED: {"stopCode": "EssentialContainerExited", "exitCode": 3},
    JobState.FAILED: {"stopCode": "EssentialContainerExited", "exitCode": 1},
    JobState.STOPPED: {"stopCode": "UserInitiated", "exitCode": 0},
}


@dataclass
class EcsStandIn:
    """The client of one account.

    Attributes:
        now: The time of the service.
        failures: What the next start is answered with, instead of a task.
    """

    now: Callable[[], datetime]
    forgets: bool = False
    failures: list[Mapping[str, str]] = field(default_factory=list)
    requests: list[Mapping[str, Any]] = field(default_factory=list)
    tasks: dict[str, dict[str, Any]] = field(default_factory=dict)
    _tokens: dict[str, str] = field(default_factory=dict)

    def run_task(self, **request: Any) -> dict[str, Any]:
        check("RunTask", request, "ecs")
        self._cluster("RunTask", request)
        if len(request["clientToken"]) > 64 or len(request["startedBy"]) > 128:
            raise refusal("RunTask", "InvalidParameterException", "too long")
        if self.failures:
            return {"tasks": [], "failures": [self.failures.pop()]}
        arn = self._tokens.get(request["clientToken"])
        if arn is None:
            self.requests.append(request)
            arn = self._tokens[request["clientToken"]] = self.add(request["startedBy"])
        if self.tasks[arn]["startedBy"] != request["startedBy"]:
            raise refusal("RunTask", "ConflictException", "the token is that of a request with other arguments")
        return {"tasks": [self.tasks[arn]], "failures": []}

    def add(self, started_by: str) -> str:
        """Begin a task; returns its ARN."""
        arn = f"arn:aws:ecs:eu-central-1:123456789012:task/{CLUSTER}/{uuid.uuid4().hex}"
        self.tasks[arn] = {
            "taskArn": arn,
            "startedBy": started_by,
            "createdAt": self.now(),
            "lastStatus": "PROVISIONING",
            "desiredStatus": "RUNNING",
            "containers": [{"name": "compactor"}],
        }
        return arn

    def set(self, task_id: str, last_status: str, desired_status: str = "RUNNING", **more: Any) -> None:
        """Change the state of a task."""
        task = self._task(task_id)
        if "exitCode" in more:
            task["containers"] = [{"name": "compactor", "exitCode": more.pop("exitCode")}, {"name": "agent"}]
        task.update(lastStatus=last_status, desiredStatus=desired_status, **more)

    def end(self, task_id: str, state: JobState) -> None:
        """Let a task end in one of the ways of `ENDS`."""
        self.set(task_id, "STOPPED", "STOPPED", stoppedAt=self.now(), stoppedReason="it ended", **ENDS[state])

    def stop_task(self, **request: Any) -> dict[str, Any]:
        check("StopTask", request, "ecs")
        self._cluster("StopTask", request)
        self.set(request["task"], self._task(request["task"])["lastStatus"], "STOPPED")
        return {"task": self._task(request["task"])}

    def describe_tasks(self, **request: Any) -> dict[str, Any]:
        check("DescribeTasks", request, "ecs")
        if not 0 < len(request["tasks"]) <= 100:
            raise refusal("DescribeTasks", "InvalidParameterException", "expected 1 to 100 tasks")
        return {"tasks": [self.tasks[arn] for arn in request["tasks"]], "failures": []}

    def get_paginator(self, operation: str) -> "EcsStandIn":
        assert operation == "list_tasks"
        return self

    def paginate(self, **request: Any) -> Iterator[dict[str, Any]]:
        size = request.pop("PaginationConfig")["PageSize"]
        check("ListTasks", {**request, "maxResults": size}, "ecs")
        self._cluster("ListTasks", request)
        found = [
            arn
            for arn, task in self.tasks.items()
            if task["desiredStatus"] == request["desiredStatus"] and request["family"] == FAMILY
            if not (self.forgets and "stoppedAt" in task and self.now() - task["stoppedAt"] > KEPT)
        ]
        for start in range(0, max(len(found), 1), size):
            yield {"taskArns": found[start : start + size]}

    def _task(self, task_id: str) -> dict[str, Any]:
        found = next((task for arn, task in self.tasks.items() if arn.endswith(f"/{task_id}")), None)
        if found is None:
            raise refusal("StopTask", "InvalidParameterException", "The referenced task was not found.")
        return found

    def _cluster(self, operation: str, request: Mapping[str, Any]) -> None:
        if request["cluster"] != CLUSTER:
            raise refusal(operation, "ClusterNotFoundException", "Cluster not found.")
