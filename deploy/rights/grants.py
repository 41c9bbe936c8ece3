"""Who may do what where: the table that the roles and the policies of people in the template are written from."""

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Grant:
    """A statement of a policy."""

    sid: str
    actions: tuple[str, ...]
    places: tuple[str, ...]  # names of `places.PLACES`
    condition: str = ""  # as in the template
    only_if: str = ""  # the condition of the template on which it is there; empty for always


_LOG = ("logs:CreateLogStream", "logs:PutLogEvents")
_LOG_OF_GLUE = ("logs:CreateLogGroup", *_LOG)  # Glue's agents ask for a group that exists [AWSGlueServiceRole]
_OF_THE_NAMESPACE = '{ StringEquals: { "cloudwatch:namespace": !Ref MetricNamespace } }'
_OF_NAMESPACE_AND_GLUE = '{ StringEquals: { "cloudwatch:namespace": [!Ref MetricNamespace, Glue] } }'

_KEEP_FAILED_CALLS = Grant("KeepFailedCalls", ("sqs:SendMessage",), ("failed calls",))
_READ_SETTINGS = Grant("ReadSettings", ("s3:GetObject",), ("settings",))
_LIST_WORK = Grant("List", ("s3:ListBucket",), ("work bucket",))
_READ_WORK = Grant("Read", ("s3:GetObject",), ("manifests", "pending", "accepted", "recent"))
_DELETE_WORK = Grant("Delete", ("s3:DeleteObject",), ("manifests", "pending"))
_CLAIM = Grant("Claim", ("dynamodb:PutItem", "dynamodb:BatchGetItem"), ("claims",))
_PUT_METRICS = Grant("PutMetrics", ("cloudwatch:PutMetricData",), ("everything",), _OF_THE_NAMESPACE)

_READ_STREAMS = (
    Grant(
        "ReadStreams",
        (
            "kinesis:DescribeStreamConsumer",
            "kinesis:DescribeStreamSummary",
            "kinesis:GetRecords",
            "kinesis:GetShardIterator",
            "kinesis:ListShards",
            "kinesis:SubscribeToShard",
        ),
        ("streams", "consumers"),
    ),
)
"""What landing a Kinesis stream takes, beside the rights on manifests and state."""

_READ_TOPICS = (
    Grant("ConnectToBrokers", ("kafka-cluster:Connect",), ("brokers",), only_if="UsesMsk"),
    Grant("ReadTopics", ("kafka-cluster:DescribeTopic", "kafka-cluster:ReadData"), ("topics",), only_if="UsesMsk"),
    Grant("ReadSecrets", ("secretsmanager:GetSecretValue",), ("secrets",), only_if="HasKafkaSecrets"),
    Grant("DecryptSecrets", ("kms:Decrypt",), ("key of secrets",), only_if="HasKafkaSecretsKey"),
)
"""What planning and reading topics takes, where AWS says who may."""

_ENTER_NETWORK = (
    Grant("ReadConnection", ("glue:GetConnection",), ("catalog", "connection"), only_if="EntersNetwork"),
    Grant(
        "EnterNetwork",
        (
            "ec2:CreateNetworkInterface",
            "ec2:DeleteNetworkInterface",
            "ec2:DescribeNetworkInterfaces",
            "ec2:DescribeRouteTables",
            "ec2:DescribeSecurityGroups",
            "ec2:DescribeSubnets",
            "ec2:DescribeVpcAttribute",
            "ec2:DescribeVpcEndpoints",
        ),
        ("everything",),
        only_if="EntersNetwork",
    ),
    Grant(
        "TagInterfaces",
        ("ec2:CreateTags", "ec2:DeleteTags"),
        ("network interfaces",),
        '{ "ForAllValues:StringEquals": { "aws:TagKeys": [aws-glue-service-resource] } }',
        only_if="EntersNetwork",
    ),
)
"""What Glue does under the role of the job to put its workers into a network [managed policy AWSGlueServiceRole]."""

_OF_GLUE = ("catalog", "iceberg database", "iceberg table")
_OF_S3_TABLES = ("table bucket", "tables of the bucket")

_READ_ICEBERG = (
    Grant("ReadIcebergInGlue", ("glue:GetCatalog", "glue:GetDatabase", "glue:GetTable"), _OF_GLUE),
    Grant(
        "ReadIcebergInS3Tables",
        ("s3tables:GetTableBucket", "s3tables:GetTableMetadataLocation", "s3tables:GetTableData"),
        _OF_S3_TABLES,
    ),
    # Where it governs the table, Glue's endpoint hands out what it grants, and nothing more.
    Grant("AskLakeFormation", ("lakeformation:GetDataAccess",), ("everything",), only_if="HasGlueIceberg"),
)
"""What reading the Iceberg table takes [AWS Glue REST APIs for Apache Iceberg; S3 Tables Iceberg REST endpoint].

Without such a table the parameters are empty, and the resources name nothing. Not tried with an account.
"""

_WRITE_ICEBERG = (
    Grant("WriteIcebergInGlue", ("glue:CreateTable", "glue:UpdateTable"), _OF_GLUE),
    Grant(
        "WriteIcebergInS3Tables",
        (
            "s3tables:GetNamespace",
            "s3tables:CreateNamespace",
            "s3tables:CreateTable",
            "s3tables:UpdateTableMetadataLocation",
            "s3tables:PutTableData",
        ),
        _OF_S3_TABLES,
    ),
)
"""What making it and committing to it takes beside. Its files on Glue are those of the output."""

_READ_ONLY = (
    _READ_SETTINGS,
    Grant("List", ("s3:ListBucket",), ("work bucket", "staging bucket", "lake bucket", "input bucket")),
    Grant("Read", ("s3:GetObject",), ("input", "manifests", "pending", "state", "staging", "rows", "schema file")),
    Grant("ReadTheJob", ("glue:GetJob", "glue:GetJobRuns"), ("job",)),
    Grant("ReadQueues", ("sqs:GetQueueAttributes",), ("events", "dead letters")),
    Grant(
        "ReadClaims", ("dynamodb:DescribeTable", "dynamodb:DescribeTimeToLive", "dynamodb:BatchGetItem"), ("claims",)
    ),
    *_READ_STREAMS,
    Grant("ReadTopic", ("sns:GetTopicAttributes",), ("topic",)),
    Grant("ReadTable", ("glue:GetTable",), ("catalog", "database", "table")),
    *_READ_ICEBERG,
    Grant(
        "ReadLogs",
        ("logs:DescribeLogStreams", "logs:FilterLogEvents", "logs:GetLogEvents"),
        (
            "log of the builder",
            "log of the sealer",
            "log of the control plane",
            "output of the job",
            "errors of the job",
        ),
    ),
    Grant(
        "ReadMetrics",
        (
            "cloudwatch:DescribeAlarms",
            "cloudwatch:GetDashboard",
            "cloudwatch:GetMetricData",
            "cloudwatch:ListMetrics",
        ),
        ("everything",),
    ),
)

GRANTS: Mapping[str, tuple[Grant, ...]] = {
    "BuilderRole": (
        Grant("Log", _LOG, ("log of the builder",)),
        Grant("ReceiveMessages", ("sqs:ReceiveMessage", "sqs:DeleteMessage", "sqs:GetQueueAttributes"), ("events",)),
        _READ_SETTINGS,
        _LIST_WORK,
        _READ_WORK,
        Grant("Write", ("s3:PutObject",), ("manifests", "pending", "accepted")),
        _DELETE_WORK,
        _CLAIM,
        _PUT_METRICS,
    ),
    "SealerRole": (
        Grant("Log", _LOG, ("log of the sealer",)),
        _KEEP_FAILED_CALLS,
        _READ_SETTINGS,
        _LIST_WORK,
        _READ_WORK,
        Grant("Write", ("s3:PutObject",), ("manifests", "accepted")),
        _DELETE_WORK,
        _CLAIM,
        _PUT_METRICS,
    ),
    "ControlRole": (
        Grant("Log", _LOG, ("log of the control plane",)),
        _KEEP_FAILED_CALLS,
        _READ_SETTINGS,
        _LIST_WORK,
        Grant("Read", ("s3:GetObject",), ("control", "open", "recent", "runs", "progress of landing")),
        Grant("Write", ("s3:PutObject",), ("control", "runs", "progress of landing")),
        Grant("RunTheJob", ("glue:GetJob", "glue:GetJobRuns", "glue:StartJobRun", "glue:BatchStopJobRun"), ("job",)),
        Grant("ReadQueues", ("sqs:GetQueueAttributes",), ("events", "dead letters")),
        Grant("Notify", ("sns:Publish",), ("topic",)),
        Grant("ReadMetrics", ("cloudwatch:GetMetricData",), ("everything",)),
        _PUT_METRICS,
    ),
    "JobRole": (
        Grant("Log", _LOG_OF_GLUE, ("output of the job", "errors of the job")),
        *_READ_STREAMS,
        Grant("ReadArtefacts", ("s3:GetObject",), ("settings", "job artefacts")),
        Grant("List", ("s3:ListBucket",), ("work bucket", "staging bucket", "lake bucket", "input bucket")),
        Grant(
            "Read",
            ("s3:GetObject",),
            ("input", "manifests", "state", "staging", "rows", "schema file", "spark ui"),
        ),
        Grant(
            "Write",
            ("s3:PutObject", "s3:AbortMultipartUpload"),
            ("manifests", "state", "staging", "spark ui", "rows"),
        ),
        Grant("Delete", ("s3:DeleteObject",), ("manifests", "state", "staging", "spark ui")),
        Grant("WaitForManifests", ("sqs:ReceiveMessage", "sqs:DeleteMessage"), ("manifest queue",)),
        Grant("MaintainTheTable", ("s3:DeleteObject",), ("metadata of the table",)),
        Grant("AddColumns", ("glue:GetTable", "glue:UpdateTable"), ("catalog", "database", "table")),
        *_READ_ICEBERG,
        *_WRITE_ICEBERG,
        Grant("PutMetrics", ("cloudwatch:PutMetricData",), ("everything",), _OF_NAMESPACE_AND_GLUE),
        *_READ_TOPICS,
        *_ENTER_NETWORK,
    ),
    "ReadOnlyPolicy": _READ_ONLY,
    # Beside the policy for reading, because a policy may not be longer.
    "OperatorPolicy": (
        Grant(
            "Write", ("s3:PutObject", "s3:AbortMultipartUpload"), ("manifests", "pending", "state", "staging", "rows")
        ),
        Grant("Delete", ("s3:DeleteObject",), ("manifests", "pending", "state", "staging")),
        Grant("ListVersions", ("s3:ListBucketVersions",), ("work bucket",)),  # `compactor restore`
        Grant("ReadVersions", ("s3:GetObjectVersion",), ("manifests", "pending", "state")),
        Grant("RemoveRows", ("s3:DeleteObject",), ("rows",)),  # `compactor data expire`, `rebuild` and `data erase`
        Grant("Claim", ("dynamodb:PutItem",), ("claims",)),
        Grant("AddColumns", ("glue:UpdateTable",), ("catalog", "database", "table")),
        Grant("RunTheJob", ("glue:StartJobRun", "glue:BatchStopJobRun"), ("job",)),
        Grant(
            "RedriveEvents",
            (
                "sqs:StartMessageMoveTask",
                "sqs:CancelMessageMoveTask",
                "sqs:ListMessageMoveTasks",
                "sqs:ReceiveMessage",
                "sqs:DeleteMessage",
            ),
            ("dead letters", "failed calls"),
        ),
        Grant("ReturnEvents", ("sqs:SendMessage",), ("events",)),
        Grant("EnableSchedules", ("events:EnableRule",), ("schedules",)),
        Grant("Notify", ("sns:Publish",), ("topic",)),
        _PUT_METRICS,
    ),
    # Apart, because a policy may not be longer: `compactor table repair`, `maintain`, and `data erase` with a table.
    "TablePolicy": _WRITE_ICEBERG,
}
"""The statements of each role and policy, by its name in the template."""
