"""Asks AWS whether names that a new stack would give are taken, for CloudFormation could not create it then."""

from collections.abc import Callable, Iterator, Mapping
from functools import partial
from types import MappingProxyType
from typing import Any

from botocore.exceptions import ClientError

from deploy.resolved import Resolver

Client = Callable[[str], Any]
"""Makes the client of a service."""

Known = Mapping[str, str | None]
"""The parameters of a stack, with the values that CloudFormation gives by itself."""

NAMES = {
    "AWS::CloudWatch::Alarm": "AlarmName",
    "AWS::CloudWatch::Dashboard": "DashboardName",
    "AWS::DynamoDB::Table": "TableName",
    "AWS::Events::EventBus": "Name",
    "AWS::Events::Rule": "Name",
    "AWS::Glue::Connection": "ConnectionInput/Name",
    "AWS::Glue::Database": "DatabaseInput/Name",
    "AWS::Glue::Job": "Name",
    "AWS::Glue::Table": "TableInput/Name",
    "AWS::IAM::ManagedPolicy": "ManagedPolicyName",
    "AWS::IAM::Role": "RoleName",
    "AWS::KMS::Alias": "AliasName",
    "AWS::Lambda::Function": "FunctionName",
    "AWS::Logs::LogGroup": "LogGroupName",
    "AWS::S3::Bucket": "BucketName",
    "AWS::SNS::Topic": "TopicName",
    "AWS::SQS::Queue": "QueueName",
}
"""The property with the name of a resource, by type."""

WITHIN = {"AWS::Glue::Table": "DatabaseName", "AWS::Events::Rule": "EventBusName"}
"""The property that puts a resource into another one of the stack, where names are free as long as that one is new."""

_MISSING = {
    "404",
    "NoSuchBucket",
    "NoSuchEntity",
    "AWS.SimpleQueueService.NonExistentQueue",
    "QueueDoesNotExist",
    "ResourceNotFound",
    "ResourceNotFoundException",
    "EntityNotFoundException",
    "NotFound",
    "NotFoundException",
    "InvalidSubnetID.NotFound",
    "InvalidGroup.NotFound",
    "RepositoryNotFoundException",
    "ImageNotFoundException",
}


def planned_names(
    template: Mapping[str, Any], known: Known, owned: Mapping[str, str] = MappingProxyType({})
) -> Iterator[tuple[str, str]]:
    """Type and name of each resource that a deployment creates and that another one could have.

    `owned` has the names, URLs or ARNs of the resources that the stack has already, by their names in the template.
    """
    resolver = Resolver(template, known)
    for logical, resource in template["Resources"].items():
        kind = resource["Type"]
        if kind in NAMES and ("Condition" not in resource or resolver.holds(resource["Condition"])):
            properties = resolver.value(resource["Properties"])
            name = str(name_of(kind, properties))
            if WITHIN.get(kind) not in properties and not owned.get(logical, "").endswith(name):
                yield kind, name


def name_of(kind: str, properties: Mapping[str, Any]) -> Any:
    """The name among the properties of a resource; None if it has none."""
    if kind not in NAMES:
        return None
    found: Any = properties
    for key in NAMES[kind].split("/"):
        found = found.get(key, {})
    return found or None


def is_taken(kind: str, name: str, client: Client, known: Known) -> bool:
    """Whether there is a resource of a type and name.

    Raises:
        ClientError: It could not be asked.
    """
    return bool(answer(partial(_ASK[kind], client, arn_of(kind, name, known) if kind in _ARNS else name)))


def answer(ask: Callable[[], Any]) -> Any:
    """What AWS answers; None if it says that there is no such thing.

    Raises:
        ClientError: It could not be asked.
    """
    try:
        return ask()
    except ClientError as exc:
        if str(exc.response.get("Error", {}).get("Code", "")) in _MISSING:
            return None
        raise


_ARNS = {
    "AWS::IAM::ManagedPolicy": "arn:${AWS::Partition}:iam::${AWS::AccountId}:policy/",
    "AWS::SNS::Topic": "arn:${AWS::Partition}:sns:${AWS::Region}:${AWS::AccountId}:",
}
"""How the ARN begins, of types that are asked for by it."""


def arn_of(kind: str, name: str, known: Known) -> str:
    """The ARN of a policy or topic."""
    return str(Resolver({"Conditions": {}}, known).value({"Fn::Sub": _ARNS[kind]})) + name


def _has_group(client: Client, name: str) -> bool:
    found = client("logs").describe_log_groups(logGroupNamePrefix=name)["logGroups"]
    return any(each["logGroupName"] == name for each in found)


def _has_alias(client: Client, name: str) -> bool:
    pages = client("kms").get_paginator("list_aliases").paginate()
    return any(each["AliasName"] == name for page in pages for each in page["Aliases"])


_ASK: dict[str, Callable[[Client, str], bool]] = {
    "AWS::CloudWatch::Alarm": lambda client, name: bool(
        client("cloudwatch").describe_alarms(AlarmNames=[name])["MetricAlarms"]
    ),
    "AWS::CloudWatch::Dashboard": lambda client, name: bool(client("cloudwatch").get_dashboard(DashboardName=name)),
    "AWS::DynamoDB::Table": lambda client, name: bool(client("dynamodb").describe_table(TableName=name)),
    "AWS::Events::EventBus": lambda client, name: bool(client("events").describe_event_bus(Name=name)),
    "AWS::Events::Rule": lambda client, name: bool(client("events").describe_rule(Name=name)),
    "AWS::Glue::Connection": lambda client, name: bool(
        client("glue").get_connection(Name=name, HidePassword=True)["Connection"]
    ),
    "AWS::Glue::Database": lambda client, name: bool(client("glue").get_database(Name=name)),
    "AWS::Glue::Job": lambda client, name: bool(client("glue").get_job(JobName=name)),
    "AWS::IAM::ManagedPolicy": lambda client, arn: bool(client("iam").get_policy(PolicyArn=arn)),
    "AWS::IAM::Role": lambda client, name: bool(client("iam").get_role(RoleName=name)),
    "AWS::KMS::Alias": _has_alias,
    "AWS::Lambda::Function": lambda client, name: bool(client("lambda").get_function(FunctionName=name)),
    "AWS::Logs::LogGroup": _has_group,
    "AWS::S3::Bucket": lambda client, name: bool(client("s3").head_bucket(Bucket=name)),
    "AWS::SNS::Topic": lambda client, arn: bool(client("sns").get_topic_attributes(TopicArn=arn)),
    "AWS::SQS::Queue": lambda client, name: bool(client("sqs").get_queue_url(QueueName=name)),
}
