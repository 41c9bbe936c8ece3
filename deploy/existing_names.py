"""Asks AWS whether names that a new stack would give are taken, for CloudFormation could not create it then."""

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from botocore.exceptions import ClientError

Client = Callable[[str], Any]
"""Makes the client of a service."""

_MISSING = {
    "404",
    "NoSuchBucket",
    "NoSuchEntity",
    "AWS.SimpleQueueService.NonExistentQueue",
    "QueueDoesNotExist",
    "ResourceNotFoundException",
    "EntityNotFoundException",
    "NotFoundException",
}

FUNCTIONS = ("manifest-builder", "manifest-sealer", "control-plane")
ROLES = (*FUNCTIONS, "job")
QUEUES = ("events", "dead-letters", "failed-calls")


def planned_names(parameters: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    """Type and name of each resource that a new stack creates and that another one could have."""
    job = parameters["JobName"]
    yield from (("AWS::S3::Bucket", parameters[key]) for key in ("WorkBucketName", "LakeBucketName"))
    if parameters["InputBucketIsNew"] == "yes":
        yield "AWS::S3::Bucket", parameters["InputBucketName"]
    yield from (("AWS::SQS::Queue", f"{job}-{name}") for name in QUEUES)
    yield "AWS::DynamoDB::Table", parameters["ClaimsTableName"]
    yield from (("AWS::Lambda::Function", f"{job}-{name}") for name in FUNCTIONS)
    yield from (("AWS::IAM::Role", f"{job}-{name}") for name in ROLES)
    yield "AWS::Glue::Job", job
    yield "AWS::Glue::Database", parameters["DatabaseName"]
    yield from (("AWS::Logs::LogGroup", f"/aws/lambda/{job}-{name}") for name in FUNCTIONS)
    yield from (("AWS::Logs::LogGroup", f"/aws-glue/{job}/{name}") for name in ("output", "error"))


def is_taken(kind: str, name: str, client: Client) -> bool:
    """Whether there is a resource of a type and name.

    Raises:
        ClientError: It could not be asked.
    """
    try:
        return _ASK[kind](client, name)
    except ClientError as exc:
        code = str(exc.response.get("Error", {}).get("Code", ""))
        if code in _MISSING:
            return False
        raise


def _has_group(client: Client, name: str) -> bool:
    found = client("logs").describe_log_groups(logGroupNamePrefix=name)["logGroups"]
    return any(each["logGroupName"] == name for each in found)


_ASK: dict[str, Callable[[Client, str], bool]] = {
    "AWS::S3::Bucket": lambda client, name: bool(client("s3").head_bucket(Bucket=name)),
    "AWS::SQS::Queue": lambda client, name: bool(client("sqs").get_queue_url(QueueName=name)),
    "AWS::DynamoDB::Table": lambda client, name: bool(client("dynamodb").describe_table(TableName=name)),
    "AWS::Lambda::Function": lambda client, name: bool(client("lambda").get_function(FunctionName=name)),
    "AWS::IAM::Role": lambda client, name: bool(client("iam").get_role(RoleName=name)),
    "AWS::Glue::Job": lambda client, name: bool(client("glue").get_job(JobName=name)),
    "AWS::Glue::Database": lambda client, name: bool(client("glue").get_database(Name=name)),
    "AWS::Logs::LogGroup": _has_group,
}
