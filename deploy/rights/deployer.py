"""What deploying takes, from the template: AWS says for each type of resource what the calls of CloudFormation need."""

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from importlib.resources import files
from typing import Any

from deploy.resolved import Document

_STACK = "arn:${AWS::Partition}:cloudformation:${AWS::Region}:${AWS::AccountId}:stack/${JobName}/*"
_ARTEFACTS = "arn:${AWS::Partition}:s3:::${ArtefactBucketName}"
_WORK = "arn:${AWS::Partition}:s3:::${WorkBucketName}"
_INPUT = "arn:${AWS::Partition}:s3:::${InputBucketName}"

HERE = "arn:${AWS::Partition}:%s:${AWS::Region}:${AWS::AccountId}:"
_BUCKETS = tuple(f"arn:${{AWS::Partition}}:s3:::${{{name}BucketName}}" for name in ("Work", "Staging", "Lake", "Input"))
_CATALOGUE = tuple(HERE % "glue" + each for each in ("catalog", "database/${DatabaseName}", "table/${DatabaseName}/*"))
_ROLES = ("arn:${AWS::Partition}:iam::${AWS::AccountId}:role/${JobName}-*",)
_FUNCTIONS = (HERE % "lambda" + "function:${JobName}-*",)
_QUEUES = (HERE % "sqs" + "${JobName}-*",)
_BUSES = (HERE % "events" + "event-bus/${JobName}-*",)
_TOPICS = (HERE % "sns" + "${JobName}-*",)

RESOURCES: Mapping[str, tuple[str, ...]] = {
    "AWS::S3::Bucket": _BUCKETS,
    "AWS::S3::BucketPolicy": _BUCKETS,
    "AWS::SQS::Queue": _QUEUES,
    "AWS::SQS::QueuePolicy": _QUEUES,
    "AWS::DynamoDB::Table": (HERE % "dynamodb" + "table/${ClaimsTableName}",),
    "AWS::Lambda::Function": _FUNCTIONS,
    "AWS::Lambda::Permission": _FUNCTIONS,
    "AWS::Lambda::EventInvokeConfig": _FUNCTIONS,
    "AWS::Lambda::EventSourceMapping": (HERE % "lambda" + "event-source-mapping:*",),
    "AWS::Logs::LogGroup": tuple(
        HERE % "logs" + f"log-group:{each}" for each in ("/aws/lambda/${JobName}-*", "/aws-glue/${JobName}/*")
    ),
    "AWS::Events::Rule": (HERE % "events" + "rule/${JobName}-*",),
    "AWS::Events::EventBus": _BUSES,
    "AWS::Events::EventBusPolicy": _BUSES,
    "AWS::Glue::Job": tuple(HERE % "glue" + f"job/${{JobName}}{each}" for each in ("", "-*")),
    "AWS::Glue::Database": _CATALOGUE,
    "AWS::Glue::Table": _CATALOGUE,
    "AWS::IAM::Role": _ROLES,
    "AWS::IAM::ManagedPolicy": ("arn:${AWS::Partition}:iam::${AWS::AccountId}:policy/${JobName}-*",),
    "AWS::Glue::Connection": (HERE % "glue" + "catalog", HERE % "glue" + "connection/${JobName}-*"),
    "AWS::SNS::Topic": _TOPICS,
    "AWS::SNS::TopicPolicy": _TOPICS,
    "AWS::SNS::Subscription": _TOPICS,
    "AWS::CloudWatch::Alarm": (HERE % "cloudwatch" + "alarm:${JobName}-*",),
    "AWS::CloudWatch::Dashboard": ("arn:${AWS::Partition}:cloudwatch::${AWS::AccountId}:dashboard/${JobName}",),
    "AWS::KMS::Key": (HERE % "kms" + "key/*",),
    "AWS::KMS::Alias": (HERE % "kms" + "alias/${JobName}", HERE % "kms" + "key/*"),
}
"""Where the resources of each type are."""

OWN = {
    "Stack": (
        (
            "cloudformation:CreateChangeSet",
            "cloudformation:DeleteChangeSet",
            "cloudformation:DeleteStack",
            "cloudformation:DescribeChangeSet",
            "cloudformation:DescribeStackEvents",
            "cloudformation:DescribeStacks",
            "cloudformation:ExecuteChangeSet",
            "cloudformation:GetTemplate",
            "cloudformation:ListStackResources",
            "cloudformation:TagResource",
        ),
        (_STACK,),
    ),
    "LookUp": (
        (
            "ec2:DescribeSecurityGroups",
            "ec2:DescribeSubnets",
            "ec2:DescribeVpcEndpoints",
            "iam:GetPolicy",
            "kms:DescribeKey",
            "lakeformation:GetDataLakeSettings",
            "lambda:GetAccountSettings",
            "servicequotas:ListServiceQuotas",
        ),
        ("*",),
    ),
    "StopCalls": (("events:DisableRule", "events:EnableRule"), RESOURCES["AWS::Events::Rule"]),
    "EndRuns": (("glue:BatchStopJobRun", "glue:GetJobRuns"), RESOURCES["AWS::Glue::Job"]),
    "Subscriptions": (("sns:ListSubscriptionsByTopic",), RESOURCES["AWS::SNS::Topic"]),
    "LocateInput": (("s3:GetBucketLocation",), (_INPUT,)),
    "ListArtefacts": (("s3:GetBucketLocation", "s3:ListBucket"), (_ARTEFACTS,)),
    "Artefacts": (
        ("s3:AbortMultipartUpload", "s3:GetObject", "s3:PutObject"),
        (f"{_ARTEFACTS}/${{Environment}}/*",),
    ),
    "ListSchemas": (("s3:ListBucket",), (_WORK,)),
    "Schemas": (
        ("s3:GetObject",),
        tuple(f"{_WORK}/${{StatePrefix}}/{each}schemas/*" for each in ("", "streams/*/")),
    ),
    "Runs": (
        ("s3:GetObject", "s3:PutObject"),
        tuple(f"{_WORK}/${{StatePrefix}}/{each}runs/*" for each in ("", "streams/*/")),
    ),
}
"""What the deployment itself calls: the actions and the resources, by the name of the statement."""

WITHOUT_RESOURCE = {
    "kms:CreateKey": "there is no key yet",
    "kms:ListAliases": "lists them all",
    "lambda:CreateEventSourceMapping": "there is no mapping yet",
    "logs:DescribeLogGroups": "lists them all",
    "logs:DescribeResourcePolicies": "lists them all",
    "sns:GetSubscriptionAttributes": "a subscription is no resource of IAM",
    "sns:SetSubscriptionAttributes": "a subscription is no resource of IAM",
    "sns:Unsubscribe": "a subscription is no resource of IAM",
}
"""Actions that are allowed on `*`, each with the reason."""

_UNUSED = re.compile(
    r"s3:(Put|Delete|Create|Update)\w*(Metadata|Replication|Website|Accelerate|Analytics|Inventory|Metrics|Tiering|Abac"
    r"|C[Oo][Rr][Ss]|Logging|Lock|Acl|Object)\w*|s3:(GetObject\w*|REST.*)"
    r"|dynamodb:\w*(Replica|Import|Kinesis|Insights|Item|Query|Scan)\w*"
    r"|lambda:\w*(CodeSigning|Capacity|Alias|LayerVersion|Recursion|Scaling|Publish)\w*"
    r"|logs:\w*(Protection|Index|Delivery|Bearer|Transformer|LogStream\w*|LogEvents|PutResource|DeleteResource)\w*"
    r"|sns:\w*DataProtection\w*|glue:\w*SchemaVersion|iam:(Attach|Detach)(Group|User|Role)Policy"
    r"|iam:DeleteRolePermissionsBoundary|events:(?!\w*(Rule|Target|EventBus|[Tt]ag|Permission))\w*"
)
"""Actions on what holds data, and on features that no resource of the template uses."""

_KEY_USERS = ("AWS::Lambda::Function", "AWS::DynamoDB::Table")
_BOUNDED = re.compile(r"iam:(CreateRole|PutRolePolicy|PutRolePermissionsBoundary)")
_OF_OWN_KEY = re.compile(r"kms:(?!TagResource|\w*Alias)\w+")
TAGGED = {"StringEquals": {"aws:ResourceTag/application": "compactor"}}  # the tag of `Stack.propose`
_REGION = "us-east-1"  # whose schemas are complete


def deployer_statements(types: Iterable[str], *, key: str, boundary: str) -> Iterator[Document]:
    """What deploying resources of these types takes, with the variables of the template.

    Args:
        types: Such as `AWS::S3::Bucket`.
        key: The parameter KmsKey.
        boundary: The parameter PermissionsBoundary.
    """
    for sid, (own, resources) in OWN.items():
        yield statement(sid, own, resources)
    wanted = sorted({each for each in types if key == "new" or not each.startswith("AWS::KMS::")})
    anywhere: set[str] = set()
    for kind in wanted:
        actions = {each for each in handler_actions(kind) if is_needed(kind, each)}
        anywhere |= actions & WITHOUT_RESOURCE.keys()
        yield from _of_type(kind, actions - WITHOUT_RESOURCE.keys(), boundary)
    yield statement("Anywhere", anywhere, ("*",))
    services = {"StringEquals": {"iam:PassedToService": ["glue.amazonaws.com", "lambda.amazonaws.com"]}}
    yield {**statement("PassRoles", ("iam:PassRole",), _ROLES), "Condition": services}
    if key:
        of_key = {each for kind in _KEY_USERS for each in handler_actions(kind) if each.startswith("kms:")}
        keys = RESOURCES["AWS::KMS::Key"] if key == "new" else (key,)
        tagged = {"Condition": TAGGED} if key == "new" else {}
        yield {**statement("UseKey", of_key - WITHOUT_RESOURCE.keys(), keys), **tagged}


def _of_type(kind: str, actions: set[str], boundary: str) -> Iterator[Document]:
    """The statements of one type of resource; some of them on a condition."""
    within = {"StringEquals": {"iam:PermissionsBoundary": boundary}}
    bounded = {each for each in actions if boundary and _BOUNDED.fullmatch(each)}
    own = {each for each in actions if _OF_OWN_KEY.fullmatch(each)}
    sid = kind.removeprefix("AWS::").replace("::", "")
    for suffix, some, condition in (
        ("", actions - bounded - own, {}),
        ("WithinBoundary", bounded, {"Condition": within}),
        ("OfTheStack", own, {"Condition": TAGGED}),
    ):
        if some:
            yield {**statement(sid + suffix, some, RESOURCES[kind]), **condition}


def handler_actions(kind: str) -> frozenset[str]:
    """The actions that AWS names for creating, reading, updating and deleting a resource of a type."""
    folder = files("cfnlint.data.schemas")
    name = json.loads(folder.joinpath("providers", f"{_REGION}.json").read_text())[kind]
    schema: dict[str, Any] = json.loads(folder.joinpath("resources", f"{name}.json").read_text())
    return frozenset(
        action
        for call in ("create", "read", "update", "delete")
        for action in schema["handlers"].get(call, {}).get("permissions", ())
    )


def is_needed(kind: str, action: str) -> bool:
    """Whether an action is one of the resource's own service, on what the template uses."""
    service = {"EMRServerless": "emr-serverless"}.get(own := kind.split("::")[1], own.lower())
    is_of_other = action.startswith("glue:") and action.endswith("Connection") and not kind.endswith("Connection")
    is_own = action.startswith(f"{service}:") and action != "iam:PassRole" and not is_of_other
    return is_own and not _UNUSED.fullmatch(action)


def statement(sid: str, actions: Iterable[str], resources: Iterable[str]) -> Document:
    """A statement that allows actions on resources."""
    return {"Sid": sid, "Effect": "Allow", "Action": sorted(actions), "Resource": list(resources)}
