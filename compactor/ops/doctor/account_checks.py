"""Judges AWS: whether it answers, agrees on the time, accepts the credentials, and has what the settings name."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import partial
from typing import Any

from compactor.core.errors import CompactorError
from compactor.core.ports import Clock
from compactor.core.text.formatting import count
from compactor.ledger.heartbeat import LIFE_SECONDS
from compactor.ops.doctor.findings import Absent, Account, Finding, fault, ok, skipped, warning

SIGNATURE_SECONDS = 300.0
"""A request whose clock is further off is refused: signatures hold for five minutes [AWS: Signature Version 4]."""

HEARTBEAT_SECONDS = LIFE_SECONDS / 2
"""With a clock that is further off, one late heartbeat is enough for a run to be taken for dead."""

DEPLOY = "deploy it as deploy/README.md says"


def endpoint(account: Account, bucket: str) -> Finding:
    """Whether S3 answers."""
    try:
        account.server_time(bucket)
    except CompactorError as exc:
        found = " ".join(str(exc).split())
        return fault(found, "check the network, HTTP_PROXY and NO_PROXY, VPC endpoints, and aws.endpoint_url")
    return ok(f"{account.endpoint} answers")


def clock(account: Account, bucket: str, here: Clock) -> Finding:
    """Whether this machine and S3 agree on the time."""
    before = here.now()
    there = account.server_time(bucket)
    return clock_finding(before, there, here.now())


def clock_finding(before: datetime, there: datetime, after: datetime) -> Finding:
    """Compares the time of the server with the time of this machine before the request and after the answer."""
    off = min(abs((there - here).total_seconds()) for here in (before, after))
    if before <= there <= after:
        off = 0.0
    way = "behind" if there > after else "ahead"
    move = "synchronize the clock: timedatectl set-ntp true (or chronyc makestep)"
    if off > SIGNATURE_SECONDS:
        return fault(f"{off / 60:,.0f} min {way} of the server: AWS refuses requests that are over 5 min off", move)
    if off > HEARTBEAT_SECONDS:
        risk = f"other runs may take a run here for dead after {LIFE_SECONDS:.0f} s"
        return warning(f"{off:.0f} s {way} of the server: {risk}", move)
    return ok(f"agrees with the server within {HEARTBEAT_SECONDS:.0f} s")


def region(account: Account) -> Finding:
    """Whether a region is set, which every service but S3 needs."""
    found = account.region()
    return ok(found) if found else fault("no AWS region", "set aws.region, or AWS_REGION in the environment")


def credentials(account: Account, bucket: str) -> Finding:
    """Whether there are credentials, and S3 accepts them."""
    source = account.credentials()
    if source is None:
        return fault("no AWS credentials", "set AWS_PROFILE or run aws sso login")
    refusal = account.refusal(bucket) if bucket else ""
    if refusal:
        return fault(f"S3 refuses those from {source}: {refusal}", "log in again, or renew the keys")
    return ok(f"from {source}; the checks below use them, not the role of the job")


def bucket(account: Account, name: str, keys: str) -> Finding:
    """Whether a bucket exists; `keys` are the settings that name it."""
    found = account.describe("s3", "head_bucket", Bucket=name)
    if found is Absent.MISSING:
        return fault("does not exist", f"create it (aws s3 mb s3://{name}), or correct {keys}")
    if found is Absent.DENIED:
        return warning("these credentials may not ask for it", f"allow s3:ListBucket on arn:aws:s3:::{name}")
    return ok("exists")


@dataclass(frozen=True, slots=True)
class Resource:
    """Something on AWS that the settings name."""

    name: str
    key: str
    service: str  # the service that has it, and the prefix of its IAM actions
    call: str
    argument: str  # names it in that call
    judge: Callable[[str, Mapping[str, Any]], Finding]  # judges the answer, with the name of the resource
    more: Mapping[str, Any] = field(default_factory=dict)  # further arguments of the call

    def check(self, account: Account, name: str, *, is_required: bool = True) -> Finding:
        """Check the resource of this name; where it is not required, it may be missing."""
        found = account.describe(self.service, self.call, **{self.argument: name}, **self.more)
        if found is Absent.MISSING and not is_required:
            return skipped(f"{name} does not exist: fine if the job runs elsewhere", f"otherwise {DEPLOY}")
        if found is Absent.MISSING:
            return fault(f"{name} does not exist", f"{DEPLOY}, or correct {self.key}")
        if isinstance(found, Absent):  # it may be allowed to use what it may not describe
            action = f"{self.service}:{self.call.title().replace('_', '')}"
            return warning(f"{name}: not allowed to describe it", f"allow {action}, or check with other credentials")
        return self.judge(name, found)


def _judge_table(name: str, found: Mapping[str, Any]) -> Finding:
    table = found["Table"]
    types = {each["AttributeName"]: each["AttributeType"] for each in table["AttributeDefinitions"]}
    keys = [f"{each['AttributeName']} {each['KeyType']} {types[each['AttributeName']]}" for each in table["KeySchema"]]
    if keys != ["pk HASH S"]:
        shown = f"{name}: its key is {', '.join(keys)}, expected pk HASH S"
        return fault(shown, f"{DEPLOY}, under another name")
    if table["TableStatus"] not in {"ACTIVE", "UPDATING"}:
        return fault(f"{name} is {table['TableStatus']}, expected ACTIVE", "wait, or check the table in DynamoDB")
    return ok(f"{name} exists, with its key and its time to live")


def _judge_time_to_live(name: str, found: Mapping[str, Any]) -> Finding:
    ttl = found.get("TimeToLiveDescription", {})
    is_on = ttl.get("TimeToLiveStatus") in {"ENABLED", "ENABLING"}
    if is_on and ttl.get("AttributeName") == "expires_at":
        return ok("")
    shown = f"expire by {ttl['AttributeName']}" if is_on else "never expire"
    move = "enable time to live on expires_at, or the table grows without end"
    return warning(f"{name}: items {shown}, expected by expires_at", move)


def _waiting(found: Mapping[str, Any]) -> tuple[int, int]:
    attributes = found["Attributes"]
    waiting = int(attributes["ApproximateNumberOfMessages"])
    return waiting, int(attributes["ApproximateNumberOfMessagesNotVisible"])


def _judge_queue(url: str, found: Mapping[str, Any]) -> Finding:
    waiting, in_flight = _waiting(found)
    return ok(f"{url}: {waiting:,} waiting, {in_flight:,} in flight")


def _judge_dead_letters(url: str, found: Mapping[str, Any]) -> Finding:
    events = sum(_waiting(found))
    if events:
        move = "read them, fix the cause, and redrive the queue; compactor plan finds the files that they announced"
        return warning(f"{url}: {count(events, 'unreadable event')}", move)
    return ok(f"{url}: empty")


def _judge_job(config: str, name: str, found: Mapping[str, Any]) -> Finding:
    described = found["Job"]
    runs = described.get("ExecutionProperty", {}).get("MaxConcurrentRuns", 1)
    wrong = [
        f"{what} is {value}, expected {expected} ({why})"
        for what, value, expected, why in (
            ("Command.Name", described.get("Command", {}).get("Name", ""), "gluestreaming", "a batch job times out"),
            ("MaxConcurrentRuns", runs, 1, "the lock against a second run"),
            ("MaxRetries", described.get("MaxRetries", 0), 0, "only the control plane restarts it"),
        )
        if value != expected
    ]
    place = described.get("DefaultArguments", {}).get("--CONFIG", "")
    if not place:
        wrong.append("it has no argument --CONFIG, which says where its settings are")
    if wrong:
        return fault(f"{name}: {'; '.join(wrong)}", DEPLOY)
    if config and place != config:
        return warning(f"{name} reads its settings from {place}", f"check those: --config {place}")
    return ok(f"{name}: one run at a time, no retries, settings from {place}")


_TABLE = Resource("claims", "builder.claims", "dynamodb", "describe_table", "TableName", _judge_table)
_TIME_TO_LIVE = replace(_TABLE, call="describe_time_to_live", judge=_judge_time_to_live)
QUEUE = Resource(
    "queue",
    "control.queue_url",
    "sqs",
    "get_queue_attributes",
    "QueueUrl",
    _judge_queue,
    {"AttributeNames": ["ApproximateNumberOfMessages", "ApproximateNumberOfMessagesNotVisible"]},
)
DEAD_LETTERS = replace(QUEUE, name="dead letters", key="control.dead_letter_queue_url", judge=_judge_dead_letters)
TOPIC = Resource(
    "topic", "control.topic_arn", "sns", "get_topic_attributes", "TopicArn", lambda arn, _: ok(f"{arn} exists")
)
METRICS = Resource(
    "metrics",
    "metrics.sink",
    "cloudwatch",
    "list_metrics",
    "Namespace",
    lambda namespace, _: ok(f"CloudWatch answers; nothing was sent to {namespace}"),
)


def claims(account: Account, name: str) -> Finding:
    """Whether the table of claims exists, with its key and its time to live."""
    shape = _TABLE.check(account, name)
    lifetime = _TIME_TO_LIVE.check(account, name) if shape.state == "ok" else shape
    return shape if lifetime.state == "ok" else lifetime


def job(config: str) -> Resource:
    """The Glue job; `config` says where these settings are, and is empty where they are not on S3."""
    return Resource("glue job", "control.job_name", "glue", "get_job", "JobName", partial(_judge_job, config))


def _judge_application(name: str, found: Mapping[str, Any]) -> Finding:
    application = found["application"]
    kind, state = application.get("type", ""), application.get("state", "")
    if kind.upper() != "SPARK" or state == "TERMINATED":
        return fault(
            f"{name} is of type {kind} and {state}, expected a Spark application", "correct emr.application_id"
        )
    return ok(f"{name}: {application.get('releaseLabel', 'unknown release')}, {state}")


APPLICATION = Resource(
    "emr application", "emr.application_id", "emr-serverless", "get_application", "applicationId", _judge_application
)
