"""What schedules do while a stack is created: they call their functions as soon as they may."""

import json
from collections.abc import Iterator
from typing import Protocol

from tests.support.aws_account.resource import Resource


class Region(Protocol):
    """The account as EventBridge sees it."""

    resources: list[Resource]

    def of_kind(self, kind: str) -> Iterator[Resource]: ...


def call_functions(account: Region) -> None:
    """Call the functions whose schedule and permission exist; "the rule is active when it is created" [EventBridge].

    The control plane writes to the bucket of its role in its first call: what it has sent, and when it saw the job.
    """
    for permission in account.of_kind("AWS::Lambda::Permission"):
        own = {each.logical: each for each in account.resources if each.stack == permission.stack}
        rule = own.get(permission.properties.get("SourceArn", "").removesuffix(".Arn"))
        function = own.get(permission.properties["FunctionName"])
        if rule is None or function is None or "ScheduleExpression" not in rule.properties:
            continue
        if function.properties["Handler"] == "lambdas.control_plane.handler":
            role = own[function.properties["Role"].removesuffix(".Arn")]
            for bucket in (each for each in own.values() if each.kind == "AWS::S3::Bucket"):
                if f":::{bucket.name}/" in json.dumps(list(_writes(role))):
                    bucket.contents.append("state/control/notices.json")


def _writes(role: Resource) -> Iterator[object]:
    """The places that a role may write to."""
    for policy in role.properties["Policies"]:
        for statement in policy["PolicyDocument"]["Statement"]:
            if "s3:PutObject" in statement["Action"]:
                yield statement["Resource"]
