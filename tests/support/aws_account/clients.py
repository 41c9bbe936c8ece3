"""The account as boto3's clients show it: what `deploy.stack.Stack` and the checks before a deployment ask."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from types import SimpleNamespace
from typing import Any

from botocore.exceptions import ClientError, WaiterError

from deploy.resolved import Document
from tests.support.aws_account.rules import Refused
from tests.support.aws_account.stacks import Plan, Stack, Stacks, planned


def error(code: str, message: str) -> ClientError:
    return ClientError({"Error": {"Code": code, "Message": message}}, "Call")


@dataclass(slots=True)
class CloudFormation:
    """A client of CloudFormation, with the templates by their address."""

    stacks: Stacks
    templates: dict[str, Document]
    plans: dict[str, Plan | Refused] = field(default_factory=dict)
    refuses_same: bool = False  # a change set without changes, as CloudFormation does
    given: dict[str, dict[str, Any]] = field(default_factory=dict)  # by change set
    executed: dict[str, list[dict[str, Any]]] = field(default_factory=dict)  # what was given, by stack

    def describe_stacks(self, StackName: str) -> dict[str, Any]:  # noqa: N803 - boto3's names
        found = self._stack(StackName)
        executed = self.executed.get(StackName, [])
        about = {"CreationTime": 0, "LastUpdatedTime": len(executed)}
        last = {key: executed[-1][key] for key in ("Parameters", "Tags")} if executed else {}
        outputs = [{"OutputKey": key, "OutputValue": value} for key, value in found.outputs.items()]
        return {"Stacks": [{"StackStatus": found.status, "Outputs": outputs, **about, **last}]}

    def get_template(self, StackName: str, TemplateStage: str) -> dict[str, Any]:  # noqa: N803
        assert TemplateStage == "Original"
        return {"TemplateBody": self._stack(StackName).template}

    def create_change_set(self, **given: Any) -> None:
        name, is_new = given["StackName"], given["ChangeSetType"] == "CREATE"
        found = self.stacks.stacks.get(name)
        if found and is_new and found.status != "REVIEW_IN_PROGRESS":
            raise error("ValidationError", f"Stack [{name}] already exists and cannot be created again")
        if found and not is_new and found.status.startswith(("ROLLBACK", "DELETE")):
            raise error("ValidationError", f"Stack:{name} is in {found.status} state and can not be updated.")
        template = self.templates[given["TemplateURL"]]
        if "CAPABILITY_NAMED_IAM" not in given.get("Capabilities", ()) and "RoleName" in str(template):
            raise error("InsufficientCapabilitiesException", "Requires capabilities : [CAPABILITY_NAMED_IAM]")
        self.stacks.stacks.setdefault(name, Stack(name))
        self.given[given["ChangeSetName"]] = given
        parameters = {each["ParameterKey"]: each["ParameterValue"] for each in given["Parameters"]}
        try:
            self.plans[given["ChangeSetName"]] = planned(name, template, parameters, self.stacks.account.failing)
        except Refused as exc:
            self.plans[given["ChangeSetName"]] = exc

    def execute_change_set(self, StackName: str, ChangeSetName: str, ClientRequestToken: str) -> None:  # noqa: N803
        if ChangeSetName not in self.plans:
            raise error("ChangeSetNotFound", f"ChangeSet [{ChangeSetName}] does not exist")
        plan = self.plans[ChangeSetName]
        assert isinstance(plan, Plan)
        assert ClientRequestToken == ChangeSetName
        self.stacks.deploy(StackName, plan)
        self.executed.setdefault(StackName, []).append(self.given[ChangeSetName])
        # "After you execute a change set, CloudFormation deletes all change sets that are associated with the stack"
        # [Update CloudFormation stacks using change sets].
        for other in [
            name for name in self.plans if name != ChangeSetName and self.given[name]["StackName"] == StackName
        ]:
            del self.plans[other]

    def delete_change_set(self, StackName: str, ChangeSetName: str) -> None:  # noqa: N803
        assert StackName in self.stacks.stacks
        del self.plans[ChangeSetName]

    def delete_stack(self, StackName: str) -> None:  # noqa: N803
        self.stacks.delete(StackName)

    def get_paginator(self, operation: str) -> Any:
        pages: dict[str, Callable[..., Iterator[dict[str, Any]]]] = {
            "describe_change_set": self._changes,
            "describe_stack_events": self._events,
            "list_stack_resources": self._resources,
        }
        return SimpleNamespace(paginate=pages[operation])

    def get_waiter(self, name: str) -> Any:
        return SimpleNamespace(wait=lambda **given: self._wait(name, **given))

    def _wait(self, waiter: str, StackName: str, ChangeSetName: str = "", **_: Any) -> None:  # noqa: N803
        plan = self.plans.get(ChangeSetName)
        if (
            waiter == "change_set_create_complete"
            and self.refuses_same
            and not [*self._changed(StackName, ChangeSetName)]
        ):
            reason = "The submitted information didn't contain changes. Submit different information."
            raise WaiterError(waiter, "failed", {"StatusReason": reason})
        if isinstance(plan, Refused):
            raise WaiterError(waiter, "failed", {"StatusReason": str(plan)})
        expected = {"stack_create_complete": "CREATE_COMPLETE", "stack_update_complete": "UPDATE_COMPLETE"}
        if waiter in expected and self._stack(StackName).status != expected[waiter]:
            raise WaiterError(waiter, self._stack(StackName).status, {})

    def _stack(self, name: str) -> Stack:
        if name not in self.stacks.stacks:
            raise error("ValidationError", f"Stack with id {name} does not exist")
        return self.stacks.stacks[name]

    def _changes(self, StackName: str, ChangeSetName: str) -> Iterator[dict[str, Any]]:  # noqa: N803
        kinds = {**self._stack(StackName).resources, **self._plan(ChangeSetName).resources}
        changed = self._changed(StackName, ChangeSetName)
        yield {
            "Changes": [
                {"ResourceChange": {"Action": how, "LogicalResourceId": name, "ResourceType": kinds[name].kind}}
                for how, name in changed
            ]
        }

    def _changed(self, stack: str, change_set: str) -> Iterator[tuple[str, str]]:
        """How a change set changes a stack: by what comes out of both templates, as CloudFormation compares them."""
        there, planned_now = self._stack(stack).resources, self._plan(change_set).resources
        yield from (("Add", name) for name in planned_now.keys() - there.keys())
        yield from (("Remove", name) for name in there.keys() - planned_now.keys())
        common = planned_now.keys() & there.keys()
        yield from (("Modify", name) for name in common if there[name].properties != planned_now[name].properties)

    def _plan(self, change_set: str) -> Plan:
        plan = self.plans[change_set]
        assert isinstance(plan, Plan)
        return plan

    def _resources(self, StackName: str) -> Iterator[dict[str, Any]]:  # noqa: N803
        found = self._stack(StackName).resources
        listed = [{"LogicalResourceId": name, "PhysicalResourceId": each.name} for name, each in found.items()]
        yield {"StackResourceSummaries": listed}

    def _events(self, StackName: str) -> Iterator[dict[str, Any]]:  # noqa: N803
        token = next(reversed(self.plans))
        failures = [
            {
                "LogicalResourceId": logical,
                "ResourceStatus": status,
                "ResourceStatusReason": reason,
                "ClientRequestToken": token,
            }
            for logical, status, reason in self._stack(StackName).failures
        ]
        yield {"StackEvents": failures[::-1]}


class Services:
    """Clients of the other services, for what the checks before a deployment ask."""

    def __init__(self, cloudformation: CloudFormation) -> None:
        self.account, self.cloudformation = cloudformation.stacks.account, cloudformation

    def client(self, service: str) -> Any:
        if service == "cloudformation":
            return self.cloudformation
        asked = {operation: self._asked(kind, key) for operation, (kind, key) in ASKED.get(service, {}).items()}
        return SimpleNamespace(
            **asked,
            get_account_settings=self._limits,
            describe_log_groups=self._log_groups,
            describe_alarms=self._alarms,
            get_data_lake_settings=self._lake_settings,
            get_paginator=self._paginator,
            batch_stop_job_run=self._stop,
            disable_rule=self._disable,
            enable_rule=self._enable,
        )

    def _disable(self, Name: str) -> None:  # noqa: N803
        self.account.disabled.add(Name)

    def _enable(self, Name: str) -> None:  # noqa: N803
        self.account.disabled.discard(Name)

    def _paginator(self, operation: str) -> Any:
        of_runs = operation == "get_job_runs"
        return SimpleNamespace(paginate=lambda **given: [self._runs(given["JobName"]) if of_runs else self._listed()])

    def _runs(self, job: str) -> dict[str, Any]:
        if self.account.named("AWS::Glue::Job", job) is None:
            raise error("EntityNotFoundException", f"Entity {job} not found")
        now = datetime.now(UTC)
        living = self.account.runs.get(job, set())
        return {"JobRuns": [{"Id": each, "JobRunState": "RUNNING", "StartedOn": now} for each in sorted(living)]}

    def _stop(self, JobName: str, JobRunIds: list[str]) -> dict[str, Any]:  # noqa: N803
        self._runs(JobName)
        self.account.runs[JobName] -= {*JobRunIds}
        return {}

    def _asked(self, kind: str, key: str) -> Callable[..., dict[str, Any]]:
        def ask(**given: str) -> dict[str, Any]:
            name = given[key].rpartition(":")[2].removeprefix("policy/")
            if kind == "AWS::S3::Bucket" and name in self.account.buckets_of_others:
                raise error("403", "Forbidden")
            found = self.account.named(kind, name)
            if found is None:
                raise error("ResourceNotFoundException", f"there is no {name}")
            return {kind.rpartition("::")[2]: found.properties}

        return ask

    def _limits(self) -> dict[str, Any]:
        functions = self.account.of_kind("AWS::Lambda::Function")
        reserved = sum(int(each.properties.get("ReservedConcurrentExecutions", 0)) for each in functions)
        return {"AccountLimit": {"UnreservedConcurrentExecutions": self.account.concurrency - reserved}}

    def _log_groups(self, logGroupNamePrefix: str) -> dict[str, Any]:  # noqa: N803
        found = [each.name for each in self.account.of_kind("AWS::Logs::LogGroup")]
        return {"logGroups": [{"logGroupName": name} for name in found if name.startswith(logGroupNamePrefix)]}

    def _listed(self) -> dict[str, Any]:
        found = [
            {"Endpoint": address, "SubscriptionArn": "arn" if confirmed else "PendingConfirmation"}
            for address, confirmed in self.account.subscriptions.items()
        ]
        return {"Quotas": [], "Aliases": [], "Subscriptions": found}

    def _lake_settings(self) -> dict[str, Any]:
        default = [] if self.account.has_lake_formation else [{"Permissions": ["ALL"]}]
        names = ("CreateDatabaseDefaultPermissions", "CreateTableDefaultPermissions")
        return {"DataLakeSettings": dict.fromkeys(names, default)}

    def _alarms(self, AlarmNames: list[str]) -> dict[str, Any]:  # noqa: N803
        return {"MetricAlarms": [name for name in AlarmNames if self.account.named("AWS::CloudWatch::Alarm", name)]}


ASKED = {
    "cloudwatch": {"get_dashboard": ("AWS::CloudWatch::Dashboard", "DashboardName")},
    "dynamodb": {"describe_table": ("AWS::DynamoDB::Table", "TableName")},
    "events": {
        "describe_event_bus": ("AWS::Events::EventBus", "Name"),
        "describe_rule": ("AWS::Events::Rule", "Name"),
    },
    "glue": {"get_database": ("AWS::Glue::Database", "Name"), "get_job": ("AWS::Glue::Job", "JobName")},
    "iam": {"get_policy": ("AWS::IAM::ManagedPolicy", "PolicyArn"), "get_role": ("AWS::IAM::Role", "RoleName")},
    "lambda": {"get_function": ("AWS::Lambda::Function", "FunctionName")},
    "s3": {"head_bucket": ("AWS::S3::Bucket", "Bucket")},
    "sns": {"get_topic_attributes": ("AWS::SNS::Topic", "TopicArn")},
    "sqs": {"get_queue_url": ("AWS::SQS::Queue", "QueueName")},
}
"""What each call asks for: the type, and the argument with the name."""
