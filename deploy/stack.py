"""A CloudFormation stack that changes only through change sets: create one, show it, execute or delete it."""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from botocore.exceptions import ClientError, WaiterError

_POLL = {"Delay": 5, "MaxAttempts": 720}  # up to an hour: a new stack creates buckets, roles and functions
_NO_CHANGES = ("didn't contain changes", "No updates are to be performed")
_FAILURES_SHOWN = 3
_REPLACEMENTS = {"True": "REPLACE", "Conditional": "REPLACE?"}

Change = Mapping[str, Any]
"""A `ResourceChange` of `describe_change_set`."""


class DeploymentError(Exception):
    """CloudFormation refused a change set, or rolled it back."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Deployed:
    """A stack as it is deployed."""

    template: dict[str, Any]
    parameters: Mapping[str, str]
    tags: Mapping[str, str]
    changed_at: str


def has_native_engine(found: Deployed) -> bool:
    """Whether the package of the deployed job has compiled code; False for a template without such a list."""
    arguments = found.template.get("Resources", {}).get("Job", {}).get("Properties", {}).get("DefaultArguments", {})
    names = [each.rpartition("/")[2] for each in arguments.get("--additional-python-modules", "").split(",")]
    return any(name.startswith("ndjson_compactor-") and not name.endswith("-none-any.whl") for name in names)


@dataclass(frozen=True, slots=True)
class Stack:
    """A stack, which may not exist yet, with a boto3 client of CloudFormation and the `WaiterConfig` of its waiters.

    CloudFormation gives its tags to every resource that takes tags.
    """

    client: Any
    name: str
    poll: Mapping[str, int] = field(default_factory=_POLL.copy)
    tags: Mapping[str, str] = field(default_factory=dict)

    def exists(self) -> bool:
        """Whether the stack can be updated. A stack whose first change set was never executed has to be created."""
        try:
            return bool(self._description()["StackStatus"] != "REVIEW_IN_PROGRESS")
        except ClientError as exc:
            if "does not exist" in str(exc):
                return False
            raise

    def propose(self, change_set: str, template_url: str, parameters: Mapping[str, str]) -> list[Change] | None:
        """Create a change set; returns its changes, or None if it has none and was deleted.

        Raises:
            DeploymentError: CloudFormation refused the template or a parameter.
        """
        self.client.create_change_set(
            StackName=self.name,
            ChangeSetName=change_set,
            ChangeSetType="UPDATE" if self.exists() else "CREATE",
            TemplateURL=template_url,
            Parameters=[{"ParameterKey": name, "ParameterValue": value} for name, value in parameters.items()],
            Capabilities=["CAPABILITY_NAMED_IAM"],
            Tags=[{"Key": key, "Value": value} for key, value in {"application": "compactor", **self.tags}.items()],
        )
        try:
            self._wait("change_set_create_complete", ChangeSetName=change_set)
        except WaiterError as exc:
            reason = str(exc.last_response.get("StatusReason", exc))
            self.discard(change_set)
            if any(words in reason for words in _NO_CHANGES):
                return None
            raise DeploymentError(f"stack {self.name}: the change set was refused: {reason}") from exc
        pages = self.client.get_paginator("describe_change_set").paginate(StackName=self.name, ChangeSetName=change_set)
        return [each["ResourceChange"] for page in pages for each in page["Changes"]]

    def discard(self, change_set: str) -> None:
        """Delete a change set, and the empty stack that CloudFormation created for the first one."""
        if self.exists():
            self.client.delete_change_set(StackName=self.name, ChangeSetName=change_set)
        else:
            self.client.delete_stack(StackName=self.name)

    def execute(self, change_set: str) -> None:
        """Execute a change set and wait until the stack is complete.

        Raises:
            DeploymentError: A resource could not be created or changed, and CloudFormation rolled back.
        """
        waiter = "stack_update_complete" if self.exists() else "stack_create_complete"
        self.client.execute_change_set(StackName=self.name, ChangeSetName=change_set, ClientRequestToken=change_set)
        try:
            self._wait(waiter)
        except WaiterError as exc:
            failures = [*self._failures(change_set)][-_FAILURES_SHOWN:]  # listed from the latest to the first
            raise DeploymentError(f"stack {self.name}: not deployed: {'; '.join(failures[::-1]) or exc}") from exc

    def deployed(self) -> "Deployed":
        """What is deployed. The stack may change meanwhile: compare `changed_at` before anything is built on it.

        Raises:
            DeploymentError: It has no template of `make deploy`.
        """
        about = self._description()  # before the template, so that a later change shows itself
        template = self.client.get_template(StackName=self.name, TemplateStage="Original")["TemplateBody"]
        if not isinstance(template, dict):
            raise DeploymentError(f"stack {self.name}: its template is not JSON, as make deploy writes it")
        return Deployed(
            template=json.loads(json.dumps(template)),
            parameters={each["ParameterKey"]: each["ParameterValue"] for each in about.get("Parameters", ())},
            tags={each["Key"]: each["Value"] for each in about.get("Tags", ())},
            changed_at=_changed_at(about),
        )

    def changed_at(self) -> str:
        """When the stack was last changed, as CloudFormation says it."""
        return _changed_at(self._description())

    def resources(self) -> dict[str, str]:
        """The names, URLs or ids of the resources, by their names in the template."""
        pages = self.client.get_paginator("list_stack_resources").paginate(StackName=self.name)
        return {
            each["LogicalResourceId"]: each.get("PhysicalResourceId", "")
            for page in pages
            for each in page["StackResourceSummaries"]
        }

    def delete(self) -> None:
        """Delete the stack and wait until it is gone; what its policies retain stays.

        Raises:
            DeploymentError: A resource could not be deleted.
        """
        self.client.delete_stack(StackName=self.name)
        try:
            self._wait("stack_delete_complete")
        except WaiterError as exc:
            raise DeploymentError(f"stack {self.name}: not deleted: {exc}; its events name the resource") from exc

    def outputs(self) -> dict[str, str]:
        """The outputs of the stack by name."""
        return {each["OutputKey"]: each["OutputValue"] for each in self._description().get("Outputs", ())}

    def _description(self) -> dict[str, Any]:
        [found] = self.client.describe_stacks(StackName=self.name)["Stacks"]
        return dict(found)

    def _failures(self, token: str) -> Iterator[str]:
        """The failures of one execution, the latest first. The earliest is the cause of the others."""
        pages = self.client.get_paginator("describe_stack_events").paginate(StackName=self.name)
        for each in (each for page in pages for each in page["StackEvents"]):
            if each.get("ClientRequestToken") == token and each["ResourceStatus"].endswith("_FAILED"):
                yield f"{each['LogicalResourceId']}: {each.get('ResourceStatusReason', 'no reason was given')}"

    def _wait(self, waiter: str, **more: str) -> None:
        self.client.get_waiter(waiter).wait(StackName=self.name, WaiterConfig=self.poll, **more)


def _changed_at(about: Mapping[str, Any]) -> str:
    return str(about.get("LastUpdatedTime") or about.get("CreationTime"))


def deleted_jobs(changes: Sequence[Change]) -> list[str]:
    """The jobs on Glue that changes delete or replace, by their names in the template."""
    gone = (each for each in changes if each["Action"] == "Remove" or each.get("Replacement") == "True")
    return sorted(each["LogicalResourceId"] for each in gone if each["ResourceType"] == "AWS::Glue::Job")


def change_lines(changes: Sequence[Change]) -> list[str]:
    """Changes as lines of text. Replacements and removals are in capitals and come first."""
    ordered = sorted(changes, key=lambda each: (_action(each).islower(), each["Action"], each["LogicalResourceId"]))
    return [
        "Changes",
        *(f"  {_action(each):9}{each['LogicalResourceId']}  ({each['ResourceType']})" for each in ordered),
        "",
    ]


def _action(change: Change) -> str:
    action = str(change["Action"])
    other = action.upper() if action == "Remove" else action.lower()
    return _REPLACEMENTS.get(change.get("Replacement", ""), other)
