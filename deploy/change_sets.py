"""Change sets of CloudFormation: made first, shown, and then carried out or thrown away."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from botocore.exceptions import ClientError, WaiterError

_POLL = {"Delay": 5, "MaxAttempts": 720}  # an hour: a new stack waits for buckets, roles and functions
_NO_CHANGES = ("didn't contain changes", "No updates are to be performed")
_APPLICATION = "compactor"


class DeploymentError(Exception):
    """AWS did not do what was asked."""


@dataclass(frozen=True, slots=True)
class Change:
    """One change to a resource.

    Attributes:
        action: `Add`, `Modify`, `Remove` or `Import`.
        logical_id: The name in the template.
        kind: As in `AWS::SQS::Queue`.
        replacement: `True`, `Conditional` or `False`; nothing where it cannot be.
    """

    action: str
    logical_id: str
    kind: str
    replacement: str


class Stack:
    """A stack that is changed by change sets alone.

    Args:
        client: A boto3 client of CloudFormation.
        name: The stack's.
        poll: How waiters wait.
    """

    def __init__(self, client: Any, name: str, poll: Mapping[str, int] = _POLL) -> None:
        self._client = client
        self._name = name
        self._poll = dict(poll)

    def exists(self) -> bool:
        """Whether there is a stack to update. One that no change set was ever carried out for is none."""
        try:
            [found] = self._client.describe_stacks(StackName=self._name)["Stacks"]
        except ClientError as exc:
            if "does not exist" in str(exc):
                return False
            raise
        return bool(found["StackStatus"] != "REVIEW_IN_PROGRESS")

    def propose(self, change_set: str, template_url: str, parameters: Mapping[str, str]) -> list[Change] | None:
        """Make a change set, and see what it would do.

        Args:
            change_set: Its name.
            template_url: Where the template is.
            parameters: By name.

        Returns:
            The changes; None if there are none, and the change set is gone.

        Raises:
            DeploymentError: The template or a parameter was refused.
        """
        self._client.create_change_set(
            StackName=self._name,
            ChangeSetName=change_set,
            ChangeSetType="UPDATE" if self.exists() else "CREATE",
            TemplateURL=template_url,
            Parameters=[{"ParameterKey": name, "ParameterValue": value} for name, value in parameters.items()],
            Capabilities=["CAPABILITY_NAMED_IAM"],
            Tags=[{"Key": "application", "Value": _APPLICATION}],
        )
        try:
            self._wait("change_set_create_complete", ChangeSetName=change_set)
        except WaiterError as exc:
            reason = str(exc.last_response.get("StatusReason", exc))
            self.discard(change_set)
            if any(words in reason for words in _NO_CHANGES):
                return None
            raise DeploymentError(f"stack {self._name}: the change set was refused: {reason}") from exc
        return self._changes(change_set)

    def discard(self, change_set: str) -> None:
        """Throw a change set away, and the empty stack that it came with."""
        if self.exists():
            self._client.delete_change_set(StackName=self._name, ChangeSetName=change_set)
        else:
            self._client.delete_stack(StackName=self._name)

    def carry_out(self, change_set: str) -> None:
        """Carry out a change set, and wait for its end.

        Raises:
            DeploymentError: A resource could not be made or changed; CloudFormation has rolled back.
        """
        waiter = "stack_update_complete" if self.exists() else "stack_create_complete"
        self._client.execute_change_set(StackName=self._name, ChangeSetName=change_set)
        try:
            self._wait(waiter)
        except WaiterError as exc:
            raise DeploymentError(f"stack {self._name}: not deployed: {'; '.join(self._failures()) or exc}") from exc

    def outputs(self) -> dict[str, str]:
        """What the stack says of itself."""
        [found] = self._client.describe_stacks(StackName=self._name)["Stacks"]
        return {each["OutputKey"]: each["OutputValue"] for each in found.get("Outputs", ())}

    def _changes(self, change_set: str) -> list[Change]:
        changes: list[Change] = []
        more: dict[str, str] = {}
        while True:
            page = self._client.describe_change_set(StackName=self._name, ChangeSetName=change_set, **more)
            changes += [_change(each["ResourceChange"]) for each in page["Changes"]]
            if not page.get("NextToken"):
                return changes
            more = {"NextToken": page["NextToken"]}

    def _failures(self) -> Sequence[str]:
        """Why, by the latest events; the first failure is the cause of those after it."""
        events = self._client.describe_stack_events(StackName=self._name)["StackEvents"]
        return [
            f"{each['LogicalResourceId']}: {each.get('ResourceStatusReason', 'no reason was given')}"
            for each in reversed(events)
            if each["ResourceStatus"].endswith("_FAILED")
        ][-3:]

    def _wait(self, waiter: str, **more: str) -> None:
        self._client.get_waiter(waiter).wait(StackName=self._name, WaiterConfig=self._poll, **more)


def _change(found: Mapping[str, Any]) -> Change:
    return Change(found["Action"], found["LogicalResourceId"], found["ResourceType"], str(found.get("Replacement", "")))
