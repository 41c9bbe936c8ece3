"""The permissions that the code needs for the AWS calls it can reach, and those that the roles grant."""

import ast
import re
from collections.abc import Iterator, Mapping
from typing import Any

from tests.deployment.reachable import Found, reachable
from tests.deployment.resolving import Document

AWS_ADAPTERS = "compactor.adapters.aws."

ENTRIES = {
    "BuilderRole": "lambdas.manifest_builder.handler",
    "SealerRole": "lambdas.manifest_sealer.handler",
    "ControlRole": "lambdas.control_plane.handler",
    "JobRole": "glue_entry.main",
}
"""The entry point of the code that runs under each role."""

ACTIONS = {
    "abort_multipart_upload": ("s3:AbortMultipartUpload",),
    "complete_multipart_upload": ("s3:PutObject",),
    "copy": ("s3:GetObject", "s3:PutObject", "s3:AbortMultipartUpload"),
    "copy_object": ("s3:GetObject", "s3:PutObject"),
    "create_multipart_upload": ("s3:PutObject",),
    "delete_object": ("s3:DeleteObject",),
    "delete_objects": ("s3:DeleteObject",),
    "get_object": ("s3:GetObject",),
    "head_bucket": ("s3:ListBucket",),
    "head_object": ("s3:GetObject",),
    "list_objects_v2": ("s3:ListBucket",),
    "put_object": ("s3:PutObject",),
    "upload_part": ("s3:PutObject",),
    "upload_file": ("s3:PutObject", "s3:AbortMultipartUpload"),
    "batch_get_item": ("dynamodb:BatchGetItem",),
    "put_item": ("dynamodb:PutItem",),
    "get_queue_attributes": ("sqs:GetQueueAttributes",),
    "receive_message": ("sqs:ReceiveMessage",),
    "delete_message_batch": ("sqs:DeleteMessage",),
    "batch_stop_job_run": ("glue:BatchStopJobRun",),
    "get_job": ("glue:GetJob",),
    "get_job_runs": ("glue:GetJobRuns",),
    "start_job_run": ("glue:StartJobRun",),
    "get_table": ("glue:GetTable",),
    "update_table": ("glue:UpdateTable",),
    "get_metric_data": ("cloudwatch:GetMetricData",),
    "put_metric_data": ("cloudwatch:PutMetricData",),
    "publish": ("sns:Publish",),
    "get_secret_value": ("secretsmanager:GetSecretValue",),
    "describe_stream_summary": ("kinesis:DescribeStreamSummary",),
    "describe_stream_consumer": ("kinesis:DescribeStreamConsumer",),
    "list_shards": ("kinesis:ListShards",),
    "get_shard_iterator": ("kinesis:GetShardIterator",),
    "get_records": ("kinesis:GetRecords",),
    "subscribe_to_shard": ("kinesis:SubscribeToShard",),
}
"""The actions that each client call needs. Add new calls here, and allow them in the roles that make them."""

CLIENTS = {"client", "_client", "sqs", "cloudwatch"}
"""The names of AWS clients in the adapters."""

LOGS = {"logs:CreateLogStream", "logs:PutLogEvents"}

GLUE_ICEBERG = {f"glue:{each}" for each in ("GetCatalog", "GetDatabase", "GetTable", "CreateTable", "UpdateTable")}
"""What Glue's REST endpoint of Iceberg asks for: config, namespace, table, create, commit."""

S3_TABLES = {
    f"s3tables:{each}"
    for each in (
        "GetTableBucket",
        "GetNamespace",
        "CreateNamespace",
        "CreateTable",
        "GetTableMetadataLocation",
        "UpdateTableMetadataLocation",
        "GetTableData",
        "PutTableData",
    )
}
"""What that of S3 Tables asks for, in the same order, and for the files of metadata."""

BEYOND_CALLS: Mapping[str, Mapping[str, str]] = {
    "BuilderRole": {
        **dict.fromkeys(LOGS, "Lambda writes the log"),
        "sqs:ReceiveMessage": "the event source mapping polls the queue",
        "sqs:DeleteMessage": "the event source mapping acknowledges",
        "sqs:GetQueueAttributes": "the event source mapping scales by it",
    },
    "SealerRole": {
        **dict.fromkeys(LOGS, "Lambda writes the log"),
        "sqs:SendMessage": "Lambda keeps failed calls",
    },
    "ControlRole": {
        **dict.fromkeys(LOGS, "Lambda writes the log"),
        "sqs:SendMessage": "Lambda keeps failed calls",
    },
    "JobRole": {
        **dict.fromkeys(LOGS, "Glue writes the log"),
        "logs:CreateLogGroup": "Glue's agents ask for a log group that exists",
        "cloudwatch:PutMetricData": "Glue's own metrics",
        "s3:GetObject": "S3A reads input, staging and checkpoints; Glue fetches script, packages and environment",
        "s3:ListBucket": "S3A lists folders and detects missing objects",
        "s3:PutObject": "S3A writes staging and checkpoints; Glue writes the logs of the Spark UI and the environment",
        "s3:DeleteObject": "S3A renames by copying and deleting",
        "s3:AbortMultipartUpload": "S3A aborts the uploads of failed tasks",
        **dict.fromkeys(GLUE_ICEBERG, "pyiceberg commits to the table by Glue's REST endpoint"),
        **dict.fromkeys(S3_TABLES, "pyiceberg commits to the table by the REST endpoint of S3 Tables"),
    },
}
"""Actions that AWS or Spark need under a role, each with the reason."""

OF_TOPICS = {
    **dict.fromkeys(
        ("kafka-cluster:Connect", "kafka-cluster:DescribeTopic", "kafka-cluster:ReadData"), "of librdkafka"
    ),
    "secretsmanager:GetSecretValue": "of clients of brokers",
    "kms:Decrypt": "Secrets Manager decrypts with the rights of the caller",
    "glue:GetConnection": "Glue reads where the job runs",
    **dict.fromkeys(
        (
            "ec2:CreateNetworkInterface",
            "ec2:DeleteNetworkInterface",
            "ec2:DescribeNetworkInterfaces",
            "ec2:DescribeRouteTables",
            "ec2:DescribeSecurityGroups",
            "ec2:DescribeSubnets",
            "ec2:DescribeVpcAttribute",
            "ec2:DescribeVpcEndpoints",
            "ec2:CreateTags",
            "ec2:DeleteTags",
        ),
        "Glue puts workers into the network",
    ),
}
"""Actions that the job needs in a stack for topics only, each with the reason."""

CALLS_OF_TOPICS = {"get_secret_value"}
"""Calls that are only made in such a stack."""

ANYWHERE = {
    "lakeformation:GetDataAccess": "has no resources; Lake Formation's grants are the limit",
    **{action: "has no resources, or none is there yet" for action in OF_TOPICS if action.startswith("ec2:")},
    "cloudwatch:PutMetricData": "has no resources; the namespace is the limit",
    "cloudwatch:GetMetricData": "has no resources and no namespaces",
}
"""Actions that may be allowed on `*`, each with the reason."""


def calls(role: str) -> frozenset[str]:
    """The AWS calls that the code under a role can reach."""
    return frozenset(
        call
        for function in reachable(ENTRIES[role])
        if function.module.startswith(AWS_ADAPTERS)
        for call in _client_calls(function)
    )


def _client_calls(function: Found) -> Iterator[str]:
    for node in ast.walk(function.node):
        if not (isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute)):
            continue
        receiver = node.func.value
        name = receiver.attr if isinstance(receiver, ast.Attribute) else getattr(receiver, "id", "")
        if name in CLIENTS:
            [operation] = [each.value for each in node.args] if node.func.attr == "get_paginator" else [node.func.attr]
            yield operation


def statements(role: Document) -> Iterator[tuple[str, list[str], list[str], Document]]:
    """The statements of a resolved role: Sid, actions, resources, condition."""
    for policy in role["Properties"]["Policies"]:
        for each in policy["PolicyDocument"]["Statement"]:
            assert each["Effect"] == "Allow", each
            yield each["Sid"], _listed(each["Action"]), _listed(each["Resource"]), each.get("Condition", {})


def allowed(role: Document) -> set[str]:
    """The actions that a role allows."""
    return {action for _, actions, _, _ in statements(role) for action in actions}


def allows(role: Document, action: str, arn: str) -> bool:
    """Whether a role allows an action on one resource."""
    return any(
        action in actions and any(_matches(pattern, arn) for pattern in resources)
        for _, actions, resources, _ in statements(role)
    )


def _matches(pattern: str, arn: str) -> bool:
    return re.fullmatch(".*".join(map(re.escape, pattern.split("*"))), arn) is not None


def _listed(value: Any) -> list[str]:
    return value if isinstance(value, list) else [value]
