"""The names, ARNs and attributes that AWS gives to resources."""

import re
from collections.abc import Mapping
from typing import Any

from deploy.existing_names import name_of
from tests.support.aws_account.resource import Resource
from tests.support.emr_stand_in import APPLICATION

REGION, NUMBER = "eu-central-1", "123456789012"

_NAMED_BY = {"AWS::ECS::Cluster": "ClusterName", "AWS::ECS::TaskDefinition": "Family"}
"""The property with the name, of types whose names `make deploy` need not look up."""

_ARNS = {
    "AWS::EC2::SecurityGroup": f"arn:aws:ec2:{REGION}:{NUMBER}:security-group/",
    "AWS::ECS::Cluster": f"arn:aws:ecs:{REGION}:{NUMBER}:cluster/",
    "AWS::ECS::TaskDefinition": f"arn:aws:ecs:{REGION}:{NUMBER}:task-definition/",
    "AWS::EMRServerless::Application": f"arn:aws:emr-serverless:{REGION}:{NUMBER}:/applications/",
    "AWS::IAM::Role": f"arn:aws:iam::{NUMBER}:role/",
    "AWS::KMS::Key": f"arn:aws:kms:{REGION}:{NUMBER}:key/",
    "AWS::Logs::LogGroup": f"arn:aws:logs:{REGION}:{NUMBER}:log-group:",
}
"""How an ARN begins, by type."""


def physical_name(kind: str, properties: Mapping[str, Any], stack: str, logical: str) -> str:
    """The name of a resource: that of the template, else one that AWS makes."""
    if kind == "AWS::EMRServerless::Application":
        return APPLICATION
    return str(name_of(kind, properties) or properties.get(_NAMED_BY.get(kind, "")) or f"{stack}-{logical}")


def arn_of(resource: Resource) -> str:
    """The ARN of a resource; empty for a type that needs none here."""
    start = _ARNS.get(resource.kind, "")
    return start and f"{start}{resource.name}{':1' if resource.kind.endswith('TaskDefinition') else ''}"


def filled(node: Any, own: Mapping[str, Resource]) -> Any:
    """A value of a template with names and ARNs where the `Resolver` leaves `Queue` and `Queue.Arn`."""
    if isinstance(node, dict):
        return {key: filled(value, own) for key, value in node.items()}
    if isinstance(node, list):
        return [filled(each, own) for each in node]
    found = re.fullmatch(r"([A-Z]\w+)(\.\w+)?(/.*)?", node) if isinstance(node, str) else None
    if not found or found[1] not in own:
        return node
    resource = own[found[1]]
    if found[2] == ".Arn" and not arn_of(resource):
        return node
    return (arn_of(resource) if found[2] == ".Arn" else resource.name) + (found[3] or "")
