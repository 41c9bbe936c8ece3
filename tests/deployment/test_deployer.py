"""A deployment makes only calls that the deployer's policies allow, and where they allow them.

Calls to AWS in `deploy` are made against a stand-in, and what the policies do not allow is refused as AWS refuses it.
"""

import ast
import re
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import botocore.client
import pytest
from boto3.session import Session
from botocore.exceptions import ClientError

from deploy.__main__ import deploy
from deploy.policies import policies
from tests.deployment.accounts import key, network
from tests.deployment.resolving import ROOT
from tests.deployment.test_deploying import change, root, session

__all__ = ["root", "session"]  # fixtures

ACCOUNT, REGION = "123456789012", "eu-central-1"
_HERE = f"{REGION}:{ACCOUNT}:"

Arn = Callable[[Mapping[str, Any]], str]


def _object(given: Mapping[str, Any]) -> str:
    return f"arn:aws:s3:::{given['Bucket']}/{given['Key']}"


def _bucket(given: Mapping[str, Any]) -> str:
    return f"arn:aws:s3:::{given['Bucket']}"


def _stack(given: Mapping[str, Any]) -> str:
    return f"arn:aws:cloudformation:{_HERE}stack/{given['StackName']}/id"


def _named(start: str, key: str) -> Arn:
    return lambda given: start + (given[key][0] if isinstance(given[key], list) else given[key])


def _everything(_: Mapping[str, Any]) -> str:
    return "*"


CALLS: dict[str, tuple[str, Arn]] = {
    "s3.HeadBucket": ("s3:ListBucket", _bucket),
    "s3.ListObjectsV2": ("s3:ListBucket", _bucket),
    "s3.GetBucketLocation": ("s3:GetBucketLocation", _bucket),
    "s3.GetBucketNotificationConfiguration": ("s3:GetBucketNotification", _bucket),
    "s3.PutObject": ("s3:PutObject", _object),
    "s3.GetObject": ("s3:GetObject", _object),
    "sqs.GetQueueUrl": ("sqs:GetQueueUrl", _named(f"arn:aws:sqs:{_HERE}", "QueueName")),
    "dynamodb.DescribeTable": ("dynamodb:DescribeTable", _named(f"arn:aws:dynamodb:{_HERE}table/", "TableName")),
    "lambda.GetFunction": ("lambda:GetFunction", _named(f"arn:aws:lambda:{_HERE}function:", "FunctionName")),
    "lambda.GetAccountSettings": ("lambda:GetAccountSettings", _everything),
    "events.EnableRule": ("events:EnableRule", _named(f"arn:aws:events:{_HERE}rule/", "Name")),
    "events.DisableRule": ("events:DisableRule", _named(f"arn:aws:events:{_HERE}rule/", "Name")),
    "lakeformation.GetDataLakeSettings": ("lakeformation:GetDataLakeSettings", _everything),
    "sns.ListSubscriptionsByTopic": ("sns:ListSubscriptionsByTopic", _named("", "TopicArn")),
    "service-quotas.ListServiceQuotas": ("servicequotas:ListServiceQuotas", _everything),
    "iam.GetRole": ("iam:GetRole", _named(f"arn:aws:iam::{ACCOUNT}:role/", "RoleName")),
    "iam.GetPolicy": ("iam:GetPolicy", _named("", "PolicyArn")),
    "glue.GetJob": ("glue:GetJob", _named(f"arn:aws:glue:{_HERE}job/", "JobName")),
    "glue.GetConnection": ("glue:GetConnection", _named(f"arn:aws:glue:{_HERE}connection/", "Name")),
    "glue.GetDatabase": ("glue:GetDatabase", _named(f"arn:aws:glue:{_HERE}database/", "Name")),
    "glue.GetTable": (
        "glue:GetTable",
        lambda given: f"arn:aws:glue:{_HERE}table/{given['DatabaseName']}/{given['Name']}",
    ),
    "glue.UpdateTable": (
        "glue:UpdateTable",
        lambda given: f"arn:aws:glue:{_HERE}table/{given['DatabaseName']}/{given['Name']}",
    ),
    "logs.DescribeLogGroups": ("logs:DescribeLogGroups", _everything),
    "events.DescribeRule": ("events:DescribeRule", _named(f"arn:aws:events:{_HERE}rule/", "Name")),
    "events.DescribeEventBus": ("events:DescribeEventBus", _named(f"arn:aws:events:{_HERE}event-bus/", "Name")),
    "sns.GetTopicAttributes": ("sns:GetTopicAttributes", _named("", "TopicArn")),
    "cloudwatch.DescribeAlarms": (
        "cloudwatch:DescribeAlarms",
        _named(f"arn:aws:cloudwatch:{_HERE}alarm:", "AlarmNames"),
    ),
    "cloudwatch.GetDashboard": (
        "cloudwatch:GetDashboard",
        _named(f"arn:aws:cloudwatch::{ACCOUNT}:dashboard/", "DashboardName"),
    ),
    "ec2.DescribeSecurityGroups": ("ec2:DescribeSecurityGroups", _everything),
    "ec2.DescribeSubnets": ("ec2:DescribeSubnets", _everything),
    "ec2.DescribeVpcEndpoints": ("ec2:DescribeVpcEndpoints", _everything),
    "kms.DescribeKey": ("kms:DescribeKey", _named("", "KeyId")),
    "kms.ListAliases": ("kms:ListAliases", _everything),
    "cloudformation.DescribeStacks": ("cloudformation:DescribeStacks", _stack),
    "cloudformation.GetTemplate": ("cloudformation:GetTemplate", _stack),
    "cloudformation.CreateChangeSet": ("cloudformation:CreateChangeSet", _stack),
    "cloudformation.DescribeChangeSet": ("cloudformation:DescribeChangeSet", _stack),
    "cloudformation.ListStackResources": ("cloudformation:ListStackResources", _stack),
    "cloudformation.ExecuteChangeSet": ("cloudformation:ExecuteChangeSet", _stack),
    "cloudformation.DeleteChangeSet": ("cloudformation:DeleteChangeSet", _stack),
    "cloudformation.DeleteStack": ("cloudformation:DeleteStack", _stack),
    "cloudformation.DescribeStackEvents": ("cloudformation:DescribeStackEvents", _stack),
}
"""The action of each call, and the ARN that it is about."""

RUNTIME_CALLS: dict[str, tuple[str, Arn]] = {
    "ecr.DescribeImages": (
        "ecr:DescribeImages",
        _named(f"arn:aws:ecr:{_HERE}repository/", "repositoryName"),
    ),
}
"""Those that only the deployment of a runtime makes; `test_runtime_account.py` makes all of its calls."""

FREE = {"sts.GetCallerIdentity": "needs no permission [STS API, GetCallerIdentity]"}
"""Calls without an action, each with the reason."""

CONFIRMED: dict[str, dict[str, str]] = {
    "cloudformation.DeleteChangeSet": {"StackName": "compactor-dev"},
    "cloudformation.DescribeStackEvents": {"StackName": "compactor-dev"},
    "cloudformation.ExecuteChangeSet": {"StackName": "compactor-dev"},
    "cloudformation.GetTemplate": {"StackName": "compactor-dev"},
    "cloudformation.ListStackResources": {"StackName": "compactor-dev"},
    "events.DescribeEventBus": {"Name": "compactor-dev-input"},
    "events.DisableRule": {"Name": "compactor-dev-control"},
    "events.EnableRule": {"Name": "compactor-dev-control"},
    "glue.GetConnection": {"Name": "compactor-dev-brokers"},
    "glue.GetTable": {"DatabaseName": "compactor_dev", "Name": "events"},
    "glue.UpdateTable": {"DatabaseName": "compactor_dev", "Name": "events"},
    "sns.ListSubscriptionsByTopic": {"TopicArn": f"arn:aws:sns:{REGION}:{ACCOUNT}:compactor-dev-alarms"},
    "s3.GetObject": {"Bucket": "example-compactor-dev", "Key": "state/schemas/1.json"},
}
"""What calls are given that only a confirmed or a later deployment makes, one in a network, or for others' input."""


def pascal(operation: str) -> str:
    special = {"list_objects_v2": "ListObjectsV2", "upload_file": "PutObject"}
    return special.get(operation) or "".join(part.capitalize() for part in operation.split("_"))


def calls_of_the_deployment() -> Iterator[str]:
    """The operations of boto3 clients that the code of `deploy` mentions, as AWS names them."""
    known = {call.partition(".")[2] for call in (*CALLS, *RUNTIME_CALLS, *FREE)}
    for path in (ROOT / "deploy").glob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if not (isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute)):
                continue
            name = node.func.attr
            if name == "get_paginator":
                name = str(ast.literal_eval(node.args[0]))
            is_client = "client" in ast.unparse(node.func.value) or ast.unparse(node.func.value) == "s3"
            if (is_client or pascal(name) in known) and name not in {
                "client",
                "get_waiter",
                "paginate",
                "wait",
                "partition",
            }:
                yield pascal(name)


class Deployer:
    """Refuses calls that the policies do not allow."""

    def __init__(self) -> None:
        self.statements: list[dict[str, Any]] = []
        self.made: set[str] = set()
        self.refused: list[tuple[str, str]] = []

    def check(self, call: str, given: Mapping[str, Any]) -> None:
        self.made.add(call)
        if call in FREE:
            return
        action, arn_of = CALLS[call]
        if not self.allows(action, arn := arn_of(given)):
            self.refused.append((action, arn))
            raise ClientError({"Error": {"Code": "AccessDeniedException", "Message": f"{action} on {arn}"}}, call)

    def allows(self, action: str, arn: str) -> bool:
        return any(
            action in each["Action"]
            and any(re.fullmatch(re.escape(place).replace(r"\*", ".*"), arn) for place in each["Resource"])
            for each in self.statements
        )


@pytest.fixture
def deployer(monkeypatch: pytest.MonkeyPatch) -> Deployer:
    """Between each client of AWS and its service."""
    made = Deployer()
    call = botocore.client.BaseClient._make_api_call

    def checked(client: Any, operation: str, given: dict[str, Any]) -> Any:
        if made.statements:
            made.check(f"{client.meta.service_model.service_name}.{operation}", given)
        return call(client, operation, given)

    monkeypatch.setattr(botocore.client.BaseClient, "_make_api_call", checked)
    return made


def allow(deployer: Deployer, root: Path) -> None:
    found = policies("dev", ACCOUNT, root)
    deployer.statements = [
        each for name, policy in found.items() if name.startswith("deployer") for each in policy["Statement"]
    ]


def test_a_deployment_needs_only_the_deployers_policies(session: Any, root: Path, deployer: Deployer) -> None:
    """A new stack with a key and an input bucket that exists is checked and shown under the policies.

    The calls that a confirmed deployment makes beyond that are allowed at the stack's own places.
    """
    s3 = session.client("s3")
    s3.create_bucket(Bucket="example-raw-dev", CreateBucketConfiguration={"LocationConstraint": REGION})
    there = network()(session) | key(parameter="InputKeyArn")(session)
    change(root, InputBucketIsNew="no", KmsKey="new", **there)
    allow(deployer, root)
    deploy("dev", Session, confirm=lambda: False, root=root)
    assert deployer.refused == []
    assert CALLS.keys() | FREE.keys() == deployer.made | CONFIRMED.keys()
    for call, given in CONFIRMED.items():
        action, arn_of = CALLS[call]
        assert deployer.allows(action, arn_of(given)), call
    for runs in ("state/runs", "state/streams/clicks/runs"):  # of the shared job, and of a job that RESTART=1 drains
        for action in ("s3:GetObject", "s3:PutObject"):
            assert deployer.allows(action, f"arn:aws:s3:::example-compactor-dev/{runs}/r.json")
    deployer.statements = [each for each in deployer.statements if each["Sid"] != "LookUp"]
    with pytest.raises(ClientError, match="lambda:GetAccountSettings"):
        session.client("lambda").get_account_settings()


def test_every_call_of_the_deployment_is_known() -> None:
    """A call that is added to `deploy` needs its action above, and then in the deployer's policies."""
    assert {pascal(name) for name in ("list_objects_v2", "get_job")} == {"ListObjectsV2", "GetJob"}
    assert (
        set(calls_of_the_deployment()) - {call.partition(".")[2] for call in (*CALLS, *RUNTIME_CALLS, *FREE)} == set()
    )
