"""What IAM says: whether policies allow a call, and which calls CloudFormation makes with the deployer's rights."""

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from tests.support.aws_account.arns import NUMBER, REGION, arn_of
from tests.support.aws_account.resource import Resource
from tests.support.aws_account.rules import Refused

Context = Mapping[str, str]
Call = tuple[str, str, Context]
"""An action, the ARN of its resource, and what conditions are compared with."""

_TAG = {"aws:ResourceTag/application": "compactor"}
_LINKED = f"arn:aws:iam::{NUMBER}:role/aws-service-role/"
_ROLES = f"arn:aws:iam::{NUMBER}:role/"


@dataclass(frozen=True, slots=True)
class Rights:
    """The statements of someone's policies, all of which allow."""

    statements: list[Mapping[str, Any]] = field(default_factory=list)

    def allows(self, action: str, arn: str, context: Context) -> bool:
        """Whether a statement has the action and the resource, and its conditions hold."""
        return any(
            action in _listed(each["Action"])
            and any(_like(pattern, arn) for pattern in _listed(each["Resource"]))
            and all(_holds(how, wanted, context) for how, wanted in each.get("Condition", {}).items())
            for each in self.statements
        )

    def require(self, action: str, arn: str, context: Context) -> None:
        """Refuse a call that is not allowed, in the words of IAM."""
        if not self.allows(action, arn, context):
            raise Refused("access", f"not authorized to perform: {action} on resource: {arn}")


def _holds(how: str, wanted: Mapping[str, Any], context: Context) -> bool:
    """Whether the keys of a condition are in the request, each with one of the values."""
    assert how in {"StringEquals", "ArnEquals"}, how
    return all(context.get(key) in _listed(values) for key, values in wanted.items())


def _like(pattern: str, text: str) -> bool:
    return re.fullmatch(".*".join(map(re.escape, pattern.split("*"))), text) is not None


def _listed(value: Any) -> list[str]:
    return value if isinstance(value, list) else [value]


def calls(operation: str, resource: Resource, others: Iterable[Resource]) -> Iterator[Call]:
    """The calls by which CloudFormation creates, updates or deletes a resource; none of a type without a row here.

    `others` are the resources of the account.
    """
    role_of = {each.name: each for each in (*others, resource) if each.kind == "AWS::IAM::Role"}
    own = {each.logical: each for each in role_of.values() if each.stack == resource.stack}
    properties = resource.properties
    for service, action, where, context in _CALLS.get((resource.kind, operation), ()):
        role = role_of.get(properties.get("RoleName", ""))
        bounded = {"iam:PermissionsBoundary": str(role.properties.get("PermissionsBoundary"))} if role else {}
        for place in _places(where, resource, own):
            yield f"{service}:{action}", place, {**context, **bounded}


def _places(where: str, resource: Resource, roles: Mapping[str, Resource]) -> list[str]:
    properties = resource.properties
    if where == "roles":
        names = (properties[key].removesuffix(".Arn") for key in ("TaskRoleArn", "ExecutionRoleArn"))
        return [arn_of(roles[name]) for name in names]
    if where == "network":
        return [f"arn:aws:ec2:{REGION}:{NUMBER}:vpc/{properties['VpcId']}"]
    return [{"own": arn_of(resource), "any": "*", "role": f"{_ROLES}{properties.get('RoleName')}"}.get(where, where)]


Row = tuple[str, str, str, Context]
_ECS_ROLE = f"{_LINKED}ecs.amazonaws.com/AWSServiceRoleForECS"
_EMR_ROLE = f"{_LINKED}ops.emr-serverless.amazonaws.com/AWSServiceRoleForAmazonEMRServerless"


def _row(service: str, actions: str, where: str = "own", context: Context | None = None) -> list[Row]:
    return [(service, action, where, context or {}) for action in actions.split()]


_CALLS: Mapping[tuple[str, str], list[Row]] = {
    ("AWS::ECS::Cluster", "create"): [
        *_row("ecs", "CreateCluster TagResource DescribeClusters"),
        *_row("iam", "CreateServiceLinkedRole", _ECS_ROLE, {"iam:AWSServiceName": "ecs.amazonaws.com"}),
    ],
    ("AWS::ECS::Cluster", "update"): _row(
        "ecs",
        "UpdateCluster UpdateClusterSettings PutClusterCapacityProviders DescribeClusters TagResource UntagResource"
        " ListTagsForResource",
    ),
    ("AWS::ECS::Cluster", "delete"): _row("ecs", "DeleteCluster DescribeClusters"),
    ("AWS::ECS::TaskDefinition", "create"): [
        *_row("ecs", "RegisterTaskDefinition TagResource"),
        *_row("ecs", "DescribeTaskDefinition", "any"),
        *_row("iam", "GetRole", "roles"),
        *_row("iam", "PassRole", "roles", {"iam:PassedToService": "ecs-tasks.amazonaws.com"}),
    ],
    ("AWS::ECS::TaskDefinition", "update"): _row("ecs", "TagResource UntagResource ListTagsForResource"),
    ("AWS::ECS::TaskDefinition", "delete"): _row("ecs", "DeregisterTaskDefinition DescribeTaskDefinition", "any"),
    ("AWS::EC2::SecurityGroup", "create"): [
        *_row("ec2", "CreateSecurityGroup"),
        *_row("ec2", "CreateSecurityGroup", "network"),
        *_row("ec2", "CreateTags", context={"ec2:CreateAction": "CreateSecurityGroup"}),
        *_row("ec2", "DescribeSecurityGroups", "any"),
        *_row("ec2", "RevokeSecurityGroupEgress AuthorizeSecurityGroupEgress", context=_TAG),
    ],
    ("AWS::EC2::SecurityGroup", "update"): _row(
        "ec2",
        "RevokeSecurityGroupEgress AuthorizeSecurityGroupEgress UpdateSecurityGroupRuleDescriptionsEgress CreateTags"
        " DeleteTags",
        context=_TAG,
    ),
    ("AWS::EC2::SecurityGroup", "delete"): [
        *_row("ec2", "DescribeSecurityGroups DescribeInstances", "any"),
        *_row("ec2", "DeleteSecurityGroup", context=_TAG),
    ],
    ("AWS::EMRServerless::Application", "create"): [
        *_row("emr-serverless", "CreateApplication", "any"),
        *_row("emr-serverless", "TagResource"),
        *_row("emr-serverless", "GetApplication", context=_TAG),
        *_row("iam", "CreateServiceLinkedRole", _EMR_ROLE, {"iam:AWSServiceName": "ops.emr-serverless.amazonaws.com"}),
    ],
    ("AWS::EMRServerless::Application", "update"): [
        *_row("emr-serverless", "UpdateApplication UntagResource GetApplication", context=_TAG),
        *_row("emr-serverless", "TagResource"),
    ],
    ("AWS::EMRServerless::Application", "delete"): _row(
        "emr-serverless", "DeleteApplication GetApplication", context=_TAG
    ),
    ("AWS::IAM::Role", "create"): _row("iam", "CreateRole PutRolePolicy GetRolePolicy TagRole GetRole"),
    ("AWS::IAM::Role", "delete"): _row("iam", "DeleteRole DeleteRolePolicy ListRolePolicies ListAttachedRolePolicies"),
    ("AWS::IAM::RolePolicy", "create"): _row("iam", "PutRolePolicy GetRolePolicy", "role"),
    ("AWS::IAM::RolePolicy", "update"): _row("iam", "PutRolePolicy GetRolePolicy", "role"),
    ("AWS::IAM::RolePolicy", "delete"): _row("iam", "DeleteRolePolicy GetRolePolicy", "role"),
    ("AWS::Logs::LogGroup", "create"): [
        *_row("logs", "CreateLogGroup PutRetentionPolicy TagResource"),
        *_row("logs", "DescribeLogGroups DescribeResourcePolicies", "any"),
    ],
    ("AWS::Logs::LogGroup", "update"): _row(
        "logs",
        "AssociateKmsKey DisassociateKmsKey PutRetentionPolicy DeleteRetentionPolicy TagResource UntagResource"
        " ListTagsForResource",
    ),
    ("AWS::Logs::LogGroup", "delete"): _row("logs", "DeleteLogGroup"),
}
"""By type and operation: service, actions, what they are about, and what conditions are compared with."""
