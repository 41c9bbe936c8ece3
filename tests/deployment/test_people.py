"""Every command of an operator runs with the operator's policy, and every one that only looks with the policy for it.

A stand-in for AWS serves the calls, and what a policy does not allow is refused as AWS refuses it.
"""

import json
import re
from pathlib import Path
from typing import Any

import botocore.client
import pytest
from botocore.exceptions import ClientError
from click.testing import CliRunner, Result

from compactor.adapters.aws.clients import aws_client
from compactor.cli.entry import compactor as command
from deploy.resolved import Document
from tests.deployment.permissions import ACTIONS, GLUE_ICEBERG, S3_TABLES
from tests.deployment.resolving import parameters_of, resources, template
from tests.support import extras
from tests.support.aws_stand_in import REGION

NAME = "people"
WORK, STAGING, LAKE, RAW, CLAIMS = "people-work", "people-staging", "people-lake", "people-raw", "people-claims"
GOOD = b'{"id": "1"}\n{"id": "2"}\n'
COMMAND = {"Name": "gluestreaming", "ScriptLocation": "s3://b/glue_entry.py"}
FLAWED = b'{"id": "3"}\nno json\n'

ACTIONS_OF_PEOPLE = {
    **ACTIONS,
    "copy_object": ("s3:GetObject", "s3:PutObject"),
    "list_object_versions": ("s3:ListBucketVersions",),
    "describe_table": ("dynamodb:DescribeTable",),
    "describe_time_to_live": ("dynamodb:DescribeTimeToLive",),
    "get_topic_attributes": ("sns:GetTopicAttributes",),
    "list_metrics": ("cloudwatch:ListMetrics",),
    "filter_log_events": ("logs:FilterLogEvents",),
    "enable_rule": ("events:EnableRule",),
    **{f"{verb}_message": (f"sqs:{verb.title()}Message",) for verb in ("receive", "send", "delete")},
    "describe_stream_summary": ("kinesis:DescribeStreamSummary",),
    "get_records": ("kinesis:GetRecords",),
    "get_shard_iterator": ("kinesis:GetShardIterator",),
    "list_shards": ("kinesis:ListShards",),
}
BEYOND_COMMANDS = {
    "logs:DescribeLogStreams": "to read the logs that runbook.md names",
    "logs:FilterLogEvents": "to read the logs that runbook.md names, as test_incidents.py does",
    "logs:GetLogEvents": "to read the logs that runbook.md names",
    "cloudwatch:DescribeAlarms": "to see the alarms",
    "cloudwatch:GetDashboard": "to see the dashboard",
    "events:EnableRule": "to enable a schedule, as test_incidents.py does",
    "sqs:StartMessageMoveTask": "to redrive the dead-letter queue, as runbook.md says",
    "sqs:CancelMessageMoveTask": "to stop that",
    "sqs:ListMessageMoveTasks": "to follow that",
    "sqs:ReceiveMessage": "to read one of the dead letters, as runbook.md says; the redrive needs it",
    "sqs:DeleteMessage": "the redrive needs it",
    "sqs:SendMessage": "the redrive needs it",
    "s3:AbortMultipartUpload": "an upload of a large file that fails",
    "kinesis:DescribeStreamConsumer": "for enhanced fan-out, which the stand-in does not serve",
    "kinesis:SubscribeToShard": "the same",
    "glue:BatchStopJobRun": "control stops a run that hangs",
    "glue:GetTable": "doctor compares the table that schema.table names; there is none below",
    "glue:UpdateTable": "schema publish adds columns to it",
    **dict.fromkeys(GLUE_ICEBERG | S3_TABLES, "an Iceberg table, whose endpoints the stand-in does not serve"),
}
"""Actions without a command below, each with the reason."""


PLACES = {
    "WorkBucketName": WORK,
    "StagingBucketName": STAGING,
    "LakeBucketName": LAKE,
    "InputBucketName": RAW,
    "JobName": NAME,
    "ArtefactBucketName": WORK,
    "KinesisStreams": NAME,
    "ClaimsTableName": CLAIMS,
    "Environment": "people",
}


def policy(name: str, places: Document = PLACES) -> list[Document]:
    """The statements of a policy for some places, with names that AWS gives filled in."""
    found, job = resources(template(), parameters_of("prod") | places), places["JobName"]
    given = {
        "EventQueue.Arn": f"{job}-events",
        "DeadLetterQueue.Arn": f"{job}-dead-letters",
        "ClaimsTable.Arn": places["ClaimsTableName"],
        "AlarmTopic": f"{job}-alarms",
        "BuilderLogs.Arn": f"/aws/lambda/{job}-manifest-builder",
        "ControlLogs.Arn": f"/aws/lambda/{job}-control-plane",
        "JobOutputLogs.Arn": f"/aws-glue/{job}/output",
    }
    text = json.dumps(found[name]["Properties"]["PolicyDocument"]["Statement"])
    for logical, real in given.items():
        text = text.replace(f'"{logical}"', f'"{real}"')
    return list(json.loads(text))


class Iam:
    """Refuses calls that a policy does not allow, and remembers the actions of those that it allows."""

    def __init__(self) -> None:
        self.statements: list[Document] | None = None
        self.used: set[str] = set()
        self.refused: list[tuple[str, str]] = []

    def check(self, service: str, operation: str, given: dict[str, Any]) -> None:
        if self.statements is None:
            return
        of_version = "VersionId" in given.get("CopySource", ())
        for named in ACTIONS_OF_PEOPLE[operation]:
            action = "s3:GetObjectVersion" if of_version and named == "s3:GetObject" else named
            for arn in arns(service, action, given):
                if not any(allows(each, action, arn) for each in self.statements):
                    self.refused.append((action, arn))
                    code = "AccessDenied" if service == "s3" else "AccessDeniedException"
                    raise ClientError({"Error": {"Code": code, "Message": f"{action} on {arn}"}}, operation)
            self.used.add(action)


def arns(service: str, action: str, given: dict[str, Any]) -> list[str]:
    """The resources of a call, as the policies here name them."""
    if service == "s3":
        if "CopySource" in given and action.startswith("s3:GetObject"):
            given = given["CopySource"]
        keys = [each["Key"] for each in given["Delete"]["Objects"]] if "Delete" in given else [given.get("Key", "")]
        place = "arn:aws:s3:::" + given["Bucket"]
        return [place] if action.startswith("s3:List") else [f"{place}/{key}" for key in keys]
    named = {
        "sqs": lambda: given["QueueUrl"].rpartition("/")[2],
        "sns": lambda: given["TopicArn"].rpartition(":")[2],
        "glue": lambda: f"arn:aws:glue:eu-central-1:123456789012:job/{given['JobName']}",
        "dynamodb": lambda: given.get("TableName") or next(iter(given["RequestItems"])),
        "cloudwatch": lambda: "*",
        "logs": lambda: given["logGroupName"],
        "events": lambda: f"arn:aws:events:eu-central-1:123456789012:rule/{given['Name']}",
        "kinesis": lambda: f"arn:aws:kinesis:{REGION}:123456789012:stream/{given.get('StreamName', NAME)}",
    }
    return [named[service]()]


def allows(statement: Document, action: str, arn: str) -> bool:
    actions, places = (
        each if isinstance(each, list) else [each] for each in (statement["Action"], statement["Resource"])
    )
    return action in actions and any(re.fullmatch(re.escape(place).replace(r"\*", ".*"), arn) for place in places)


@pytest.fixture
def iam(monkeypatch: pytest.MonkeyPatch) -> Iam:
    """Between each client of AWS and its service."""
    made = Iam()
    call = botocore.client.BaseClient._make_api_call

    def checked(client: Any, operation: str, given: dict[str, Any]) -> Any:
        snake = re.sub(r"(?<!^)(?=[A-Z])", "_", operation).lower()
        made.check(client.meta.service_model.service_name, snake, given)
        return call(client, operation, given)

    monkeypatch.setattr(botocore.client.BaseClient, "_make_api_call", checked)
    return made


class People:
    """A deployment on the stand-in, and its commands."""

    def __init__(self, config: Path, s3: Any, iam: Iam) -> None:
        self.config, self.s3, self.iam = config, s3, iam

    def run(self, *words: str, codes: tuple[int, ...] = (0,)) -> Result:
        result = CliRunner().invoke(command, ["--config", str(self.config), *words])
        assert result.exit_code in codes, "\n".join([*words, result.output[-3000:], str(self.iam.refused)])
        return result


@pytest.fixture
def people(aws_endpoint: str, iam: Iam, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> People:
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "x")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "x")
    s3, sqs, sns, glue, dynamodb, kinesis = (
        aws_client(each, REGION, aws_endpoint) for each in ("s3", "sqs", "sns", "glue", "dynamodb", "kinesis")
    )
    for name in (WORK, STAGING, LAKE, RAW):
        s3.create_bucket(Bucket=name, CreateBucketConfiguration={"LocationConstraint": REGION})
    events, dead = (sqs.create_queue(QueueName=f"{NAME}-{each}")["QueueUrl"] for each in ("events", "dead-letters"))
    topic = sns.create_topic(Name=f"{NAME}-alarms")["TopicArn"]
    glue.create_job(Name=NAME, Role="role", Command=COMMAND, DefaultArguments={"--CONFIG": "s3://b/c"})
    kinesis.create_stream(StreamName=NAME, ShardCount=1)
    kinesis.put_record(StreamName=NAME, Data=GOOD, PartitionKey="x")
    dynamodb.create_table(
        TableName=CLAIMS,
        KeySchema=[{"AttributeName": "pk", "KeyType": "HASH"}],
        AttributeDefinitions=[{"AttributeName": "pk", "AttributeType": "S"}],
        BillingMode="PAY_PER_REQUEST",
    )
    config = tmp_path / "people.toml"
    config.write_text(
        f"""
        paths.manifests = "s3://{WORK}/manifests"
        paths.output = "s3://{LAKE}/events"
        paths.state = "s3://{WORK}/state"
        paths.staging = "s3://{STAGING}/staging"
        input = {{allowed_prefixes = ["s3://{RAW}", "kinesis://main/{NAME}"]}}
        kinesis = {{sources = {{main = {{}}}}}}
        stream = {{source = "listing", trigger_interval_seconds = 0.1}}
        convert = {{engine = "native"}}
        builder = {{claims = "{CLAIMS}", max_wait_seconds = 1}}
        aws = {{region = "{REGION}", endpoint_url = "{aws_endpoint}"}}
        metrics = {{sink = "cloudwatch", environment = "people", namespace = "Compactor/prod"}}
        [control]
        job_name = "{NAME}"
        queue_url = "{events}"
        dead_letter_queue_url = "{dead}"
        topic_arn = "{topic}"
        """
    )
    return People(config, s3, iam)


def test_people(people: People) -> None:
    """Readers read, and write nothing; operators do all that the commands do; no right is there for nothing."""
    extras.NATIVE.need()
    for name, data in {"2026-01-02-a.json": GOOD, "2026-01-02-b.json": FLAWED}.items():
        people.s3.put_object(Bucket=RAW, Key=name, Body=data)
    people.run("plan", f"s3://{RAW}/")
    people.run("run", "--once", codes=(0, 3))
    iam, values = people.iam, people.config.with_name("values.txt")
    values.write_text("1\n")
    erase = ("data", "erase", "--key", "id", "--value-file", str(values))

    iam.statements = policy("ReadOnlyPolicy")
    for words in (
        ("status",),
        ("trace", f"s3://{RAW}/2026-01-02-a.json"),
        ("verify",),
        ("rejects",),
        ("schema", "show"),
        ("cost", "estimate"),
        ("report", "--out", str(people.config.with_name("report.html"))),
        ("job", "check", "--dry-run"),
        ("plan", "--dry-run", f"s3://{RAW}/"),
        ("plan", "--dry-run", f"kinesis://main/{NAME}"),
        ("redrive", "rejects", "--dry-run"),
        ("data", "clean", "--dry-run"),
        ("rebuild", "--dry-run"),
        (*erase, "--dry-run"),
    ):
        people.run(*words, codes=(0, 3))
        assert iam.refused == [], words
    read = set(iam.used)
    assert people.run("doctor", "--elsewhere", codes=(2,)).output
    assert {action for action, _ in iam.refused} == {"s3:PutObject", "s3:DeleteObject"}
    read |= iam.used
    people.run("redrive", "rejects", "--yes", codes=(3,))
    iam.refused.clear()

    iam.statements = None
    people.s3.put_object(Bucket=RAW, Key="2026-01-02-c.json", Body=GOOD)
    people.s3.put_bucket_versioning(Bucket=WORK, VersioningConfiguration={"Status": "Enabled"})
    for body in (b"{}", b"damaged"):
        people.s3.put_object(Bucket=WORK, Key="state/control/notices.json", Body=body)
    iam.statements = [*policy("ReadOnlyPolicy"), *policy("OperatorPolicy")]
    for words in (
        ("doctor", "--elsewhere"),
        ("redrive", "rejects", "--yes"),
        (*erase, "--yes"),
        ("plan", f"s3://{RAW}/"),
        ("plan", f"kinesis://main/{NAME}"),
        ("run", "--once"),
        ("schema", "retire", "id"),
        ("stop",),
        ("job", "check"),
        ("job", "check", "--close-breaker"),
        ("data", "clean", "--checkpoints"),
        ("restore", f"s3://{WORK}/state/control/notices.json", "--yes"),
    ):
        people.run(*words, codes=(0, 3))
        assert iam.refused == [], words

    granted = {name: actions_of(policy(name)) for name in ("ReadOnlyPolicy", "OperatorPolicy")}
    assert granted["ReadOnlyPolicy"] - read - BEYOND_COMMANDS.keys() == set()
    assert read <= granted["ReadOnlyPolicy"]
    assert granted["OperatorPolicy"] - iam.used - BEYOND_COMMANDS.keys() == set()
    assert read | iam.used <= granted["ReadOnlyPolicy"] | granted["OperatorPolicy"]


def actions_of(statements: list[Document]) -> set[str]:
    """All actions that some statements allow."""
    found = (each["Action"] for each in statements)
    return {action for each in found for action in ([each] if isinstance(each, str) else each)}
