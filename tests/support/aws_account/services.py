"""What the service of a type says to a resource that is created or changed."""

import json
import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Protocol

from tests.support.aws_account import glue_rules
from tests.support.aws_account.arns import arn_of
from tests.support.aws_account.fargate import fargate_sizes
from tests.support.aws_account.resource import Resource

POLICY_CHARACTERS, INLINE_CHARACTERS = 6144, 10_240
KEPT_UNRESERVED = 100


class Region(Protocol):
    """The account as a service sees it."""

    concurrency: int
    has_lake_formation: bool
    grants: set[str]
    glue_versions: tuple[str, ...]
    objects: set[str]
    networks: dict[str, set[str]]
    resources: list[Resource]

    def of_kind(self, kind: str) -> Iterator[Resource]: ...
    def named(self, kind: str, name: str) -> Resource | None: ...


def statements(document: Mapping[str, Any]) -> list[dict[str, Any]]:
    listed = document["Statement"]
    return listed if isinstance(listed, list) else [listed]


Said = Iterator[tuple[str, str]]


def _function(account: Region, new: Resource) -> Said:
    code = new.properties["Code"]
    if f"{code['S3Bucket']}/{code['S3Key']}" not in account.objects:
        yield "code is missing", f"there is no {code['S3Bucket']}/{code['S3Key']}"
    others = [each for each in account.of_kind(new.kind) if each.name != new.name]
    reserved = [int(each.properties.get("ReservedConcurrentExecutions", 0)) for each in (*others, new)]
    left = account.concurrency - sum(reserved)
    if reserved[-1] and left < KEPT_UNRESERVED:
        yield "unreserved executions", f"{left} executions would be unreserved, below {KEPT_UNRESERVED}"


def _mapping(account: Region, new: Resource) -> Said:
    given = new.properties
    own = {each.logical: each for each in account.resources if each.stack == new.stack}
    function, queue = own[given["FunctionName"]], own[given["EventSourceArn"].removesuffix(".Arn")]
    visible, timeout = (
        int(each.properties.get(key, default))
        for each, key, default in ((queue, "VisibilityTimeout", 30), (function, "Timeout", 3))
    )
    if visible < timeout:
        yield "visibility timeout", f"queue visibility timeout {visible} s, function timeout {timeout} s"
    if int(given.get("BatchSize", 10)) > 10 and not int(given.get("MaximumBatchingWindowInSeconds", 0)):
        yield "batching window", f"BatchSize {given['BatchSize']} without a window"


def _bucket(account: Region, new: Resource) -> Said:
    """S3 sends a test message to each queue of a notification, which the queue's policy has to let in."""
    told = new.properties.get("NotificationConfiguration", {}).get("QueueConfigurations", ())
    policies = [each.properties for each in account.of_kind("AWS::SQS::QueuePolicy") if each.stack == new.stack]
    for queue in (each["Queue"].removesuffix(".Arn") for each in told):
        lets_in = any(
            queue in each["Queues"]
            and any(
                statement.get("Principal") == {"Service": "s3.amazonaws.com"} and new.name in json.dumps(statement)
                for statement in statements(each["PolicyDocument"])
            )
            for each in policies
        )
        if not lets_in:
            yield "notification", f"{queue} takes no messages of bucket {new.name}"


def _log_group(account: Region, new: Resource) -> Said:
    key = new.properties.get("KmsKeyId", "")
    for found in (
        each
        for each in account.of_kind("AWS::KMS::Key")
        if key == arn_of(each) or (each.stack, f"{each.logical}.Arn") == (new.stack, key)
    ):
        groups = [
            pattern.rpartition("log-group:")[2]
            for each in statements(found.properties["KeyPolicy"])
            if "logs." in str(each.get("Principal", {}).get("Service", ""))
            for pattern in each["Condition"]["ArnLike"]["kms:EncryptionContext:aws:logs:arn"]
        ]
        if not any(re.fullmatch(re.escape(each).replace(r"\*", ".*"), new.name) for each in groups):
            yield (
                "key of a log group",
                f"the policy of {found.logical} does not let CloudWatch Logs use it for {new.name}",
            )


def _key(_: Region, new: Resource) -> Said:
    owners = [
        each
        for each in statements(new.properties["KeyPolicy"])
        if str(each.get("Principal", {}).get("AWS", "")).endswith(":root") and each["Action"] == "kms:*"
    ]
    if not owners:
        yield "key policy", "no one could change it later"


def _role(_: Region, new: Resource) -> Said:
    length = sum(_characters(each["PolicyDocument"]) for each in new.properties.get("Policies", ()))
    if length > INLINE_CHARACTERS:
        yield "length of inline policies", f"{length} characters, more than {INLINE_CHARACTERS}"


def _role_policy(account: Region, new: Resource) -> Said:
    """It is one more of the role's inline policies."""
    role = account.named("AWS::IAM::Role", name := new.properties["RoleName"])
    if role is None:
        yield "role of a policy", f"there is no role {name}"
        return
    others = role.properties.get("Policies", ())
    length = sum(_characters(each["PolicyDocument"]) for each in (*others, new.properties))
    if length > INLINE_CHARACTERS:
        yield "length of inline policies", f"role {name} would have {length} characters, more than {INLINE_CHARACTERS}"


def _task_definition(_: Region, new: Resource) -> Said:
    units, memory = int(new.properties["Cpu"]), int(new.properties["Memory"])
    if "FARGATE" in new.properties["RequiresCompatibilities"] and memory not in fargate_sizes().get(units, ()):
        yield "size of a task", f"no Fargate configuration exists for {units} CPU units and {memory} MiB"


def _security_group(account: Region, new: Resource) -> Said:
    if new.properties["VpcId"] not in account.networks:
        yield "network", f"the vpc ID '{new.properties['VpcId']}' does not exist"


def _characters(document: object) -> int:
    return len("".join(json.dumps(document).split()))


def _policy(_: Region, new: Resource) -> Said:
    length = _characters(new.properties["PolicyDocument"])
    if length > POLICY_CHARACTERS:
        yield "length of a policy", f"{length} characters, more than {POLICY_CHARACTERS}"


def _database(account: Region, new: Resource) -> Said:
    if account.has_lake_formation and "CREATE_DATABASE" not in account.grants:
        message = "Insufficient Lake Formation permission(s): Required Create Database on Catalog"
        yield "right to create databases", f"{new.name}: {message}"


def _job(account: Region, new: Resource) -> Said:
    return glue_rules.refused(new.properties, account.glue_versions)


SERVICES: dict[str, Callable[[Region, Resource], Said]] = {
    "AWS::EC2::SecurityGroup": _security_group,
    "AWS::ECS::TaskDefinition": _task_definition,
    "AWS::Glue::Database": _database,
    "AWS::Glue::Job": _job,
    "AWS::IAM::ManagedPolicy": _policy,
    "AWS::IAM::Role": _role,
    "AWS::IAM::RolePolicy": _role_policy,
    "AWS::KMS::Key": _key,
    "AWS::Lambda::EventSourceMapping": _mapping,
    "AWS::Lambda::Function": _function,
    "AWS::Logs::LogGroup": _log_group,
    "AWS::S3::Bucket": _bucket,
}
"""What the service of a type says to a resource: the rules that refuse it."""
