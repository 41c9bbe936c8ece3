"""Clients of stand-ins for AWS that refuse what someone's policies do not allow, before the stand-in is asked."""

from collections.abc import Callable, Iterable, Mapping
from types import SimpleNamespace
from typing import Any

from botocore.exceptions import ClientError

from tests.support.aws_account.account import Account
from tests.support.aws_account.arns import NUMBER, REGION, filled
from tests.support.aws_account.rights import Call, Rights
from tests.support.aws_account.rules import Refused

Calls = Callable[[str, Mapping[str, Any]], Iterable[Call]]
"""What IAM is asked for a call of a client: by its name in boto3 and its arguments."""

_WAITERS = {"change_set_create_complete": "describe_change_set"}
_ECS, _EMR = (f"arn:aws:{service}:{REGION}:{NUMBER}:" for service in ("ecs", "emr-serverless"))


class Granted:
    """A client. Its arguments are those of boto3, by their names."""

    def __init__(self, client: Any, rights: Rights, calls: Calls) -> None:
        self._client, self._rights, self._calls = client, rights, calls

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._client, name)

        def call(**given: Any) -> Any:
            self._check(name, given)
            return found(**given)

        return call

    def get_paginator(self, operation: str) -> Any:
        def paginate(**given: Any) -> Any:
            self._check(operation, given)
            yield from self._client.get_paginator(operation).paginate(**given)

        return SimpleNamespace(paginate=paginate)

    def get_waiter(self, name: str) -> Any:
        def wait(**given: Any) -> Any:
            self._check(_WAITERS.get(name, "describe_stacks"), given)
            return self._client.get_waiter(name).wait(**given)

        return SimpleNamespace(wait=wait)

    def upload_file(self, path: str, bucket: str, key: str) -> None:
        self._check("upload_file", {"Bucket": bucket, "Key": key})
        self._client.upload_file(path, bucket, key)

    def _check(self, operation: str, given: Mapping[str, Any]) -> None:
        try:
            for call in self._calls(operation, given):
                self._rights.require(*call)
        except Refused as exc:
            raise ClientError({"Error": {"Code": "AccessDeniedException", "Message": str(exc)}}, operation) from exc


def rights_of_role(account: Account, name: str) -> Rights:
    """The rights of a role: its own policies, and those that other stacks gave it."""
    documents = []
    for each in account.resources:
        if each.kind in {"AWS::IAM::Role", "AWS::IAM::RolePolicy"} and each.properties["RoleName"] == name:
            own = {other.logical: other for other in account.resources if other.stack == each.stack}
            documents += filled(list(each.properties.get("Policies", [each.properties])), own)
    return Rights([statement for each in documents for statement in each["PolicyDocument"]["Statement"]])


def calls_of_ecs(account: Account) -> Calls:
    """What the calls to ECS ask IAM for."""

    def calls(operation: str, given: Mapping[str, Any]) -> Iterable[Call]:
        cluster = given["cluster"]
        within = {"ecs:cluster": f"{_ECS}cluster/{cluster}"}
        if operation == "run_task":
            yield "ecs:RunTask", f"{_ECS}task-definition/{given['taskDefinition']}:1", within
            if "propagateTags" in given or "tags" in given:
                yield "ecs:TagResource", f"{_ECS}task/{cluster}/new", {"ecs:CreateAction": "RunTask"}
            for role in _roles_of_the_task(account, given["taskDefinition"]):
                yield "iam:PassRole", role, {"iam:PassedToService": "ecs-tasks.amazonaws.com"}
        elif operation == "list_tasks":
            yield "ecs:ListTasks", f"{_ECS}container-instance/{cluster}/*", within
        elif operation == "describe_tasks":
            yield from (("ecs:DescribeTasks", arn, within) for arn in given["tasks"])
        else:
            assert operation == "stop_task"
            yield "ecs:StopTask", f"{_ECS}task/{cluster}/{given['task']}", within

    return calls


def _roles_of_the_task(account: Account, family: str) -> list[str]:
    definition = account.named("AWS::ECS::TaskDefinition", family)
    assert definition is not None, family
    own = {each.logical: each for each in account.resources if each.stack == definition.stack}
    return [str(filled(definition.properties[key], own)) for key in ("TaskRoleArn", "ExecutionRoleArn")]


def calls_of_emr(operation: str, given: Mapping[str, Any]) -> Iterable[Call]:
    """What the calls to EMR Serverless ask IAM for."""
    application = f"{_EMR}/applications/{given['applicationId']}"
    if operation == "start_job_run":
        yield "emr-serverless:StartJobRun", application, {}
        yield "iam:PassRole", given["executionRoleArn"], {"iam:PassedToService": "emr-serverless.amazonaws.com"}
    elif operation == "list_job_runs":
        yield "emr-serverless:ListJobRuns", application, {}
    else:
        assert operation == "cancel_job_run"
        yield "emr-serverless:CancelJobRun", f"{application}/jobruns/{given['jobRunId']}", {}
