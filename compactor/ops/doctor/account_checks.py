"""AWS checks: whether it responds, agrees on the time, accepts the credentials, and has the configured resources."""

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from compactor.core.documents.records import LIFE_SECONDS
from compactor.core.errors import CompactorError
from compactor.core.ports import Clock
from compactor.core.text.formatting import count
from compactor.ops.doctor.findings import Absent, Account, CheckEnded, Finding, fault, ok, skipped, warning

SIGNATURE_SECONDS = 300.0
"""AWS refuses requests if the clock is off by more: signatures hold for five minutes [Signature Version 4]."""

HEARTBEAT_SECONDS = LIFE_SECONDS / 2
"""If the clock is off by more, one late heartbeat can make a run look dead."""

DEPLOY = "deploy it as deploy/README.md says"


def endpoint(account: Account, bucket: str) -> Finding:
    """Whether S3 responds."""
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
    """Compare the server's time with this machine's time before the request and after the response."""
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
    """Whether a region is set; every service but S3 needs one."""
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


def bucket(account: Account, name: str, key: str) -> Finding:
    """Whether the bucket of a setting exists."""
    found = account.describe("s3", "head_bucket", Bucket=name)
    if found is Absent.MISSING:
        where = f" --region {place}" if (place := account.region()) else ""
        return fault("does not exist", f"create it (aws s3 mb s3://{name}{where}), or correct {key}")
    if found is Absent.DENIED:
        return warning("these credentials do not permit checking it", f"allow s3:ListBucket on arn:aws:s3:::{name}")
    return ok("exists")


def described(account: Account, name: str, key: str, service: str, call: str, **arguments: Any) -> Mapping[str, Any]:
    """AWS's description of the resource in the setting `key`.

    Raises:
        CheckEnded: It is missing, or these credentials may not describe it.
    """
    found = account.describe(service, call, **arguments)
    if found is Absent.MISSING:
        raise CheckEnded(fault(f"{name} does not exist", f"{DEPLOY}, or correct {key}"))
    if isinstance(found, Absent):  # using it may be permitted even if describing it is not
        action = f"{service}:{call.title().replace('_', '')}"
        move = f"allow {action}, or check with other credentials"
        raise CheckEnded(warning(f"{name}: not allowed to describe it", move))
    return found


def claims(account: Account, name: str) -> Finding:
    """Whether the table of claims exists, with its key and its time to live."""
    table = described(account, name, "builder.claims", "dynamodb", "describe_table", TableName=name)["Table"]
    types = {each["AttributeName"]: each["AttributeType"] for each in table["AttributeDefinitions"]}
    keys = [f"{each['AttributeName']} {each['KeyType']} {types[each['AttributeName']]}" for each in table["KeySchema"]]
    if keys != ["pk HASH S"]:
        shown = f"{name}: its key is {', '.join(keys)}, expected pk HASH S"
        return fault(shown, f"{DEPLOY}, under another name")
    if table["TableStatus"] not in {"ACTIVE", "UPDATING"}:
        return fault(f"{name} is {table['TableStatus']}, expected ACTIVE", "wait, or check the table in DynamoDB")
    return _time_to_live(account, name)


def _time_to_live(account: Account, name: str) -> Finding:
    found = described(account, name, "builder.claims", "dynamodb", "describe_time_to_live", TableName=name)
    ttl = found.get("TimeToLiveDescription", {})
    is_on = ttl.get("TimeToLiveStatus") in {"ENABLED", "ENABLING"}
    if is_on and ttl.get("AttributeName") == "expires_at":
        return ok(f"{name} exists, with its key and its time to live")
    shown = f"expire by {ttl['AttributeName']}" if is_on else "never expire"
    move = "enable time to live on expires_at, or the table grows without end"
    return warning(f"{name}: items {shown}, expected by expires_at", move)


_WAITING, _IN_FLIGHT = "ApproximateNumberOfMessages", "ApproximateNumberOfMessagesNotVisible"


def _messages(account: Account, key: str, url: str) -> tuple[int, int]:
    """The number of waiting messages in a queue, and of those in flight."""
    names = [_WAITING, _IN_FLIGHT]
    found = described(account, url, key, "sqs", "get_queue_attributes", QueueUrl=url, AttributeNames=names)
    return int(found["Attributes"][_WAITING]), int(found["Attributes"][_IN_FLIGHT])


def queue(account: Account, url: str) -> Finding:
    """Whether the queue of events exists."""
    found = _messages(account, "control.queue_url", url)
    return ok(f"{url}: {found[0]:,} waiting, {found[1]:,} in flight")


def dead_letters(account: Account, url: str) -> Finding:
    """Whether the queue of unreadable events exists and is empty."""
    found = _messages(account, "control.dead_letter_queue_url", url)
    if events := sum(found):
        move = "read them, fix the cause, and redrive the queue; compactor plan finds the files that they announced"
        return warning(f"{url}: {count(events, 'unreadable event')}", move)
    return ok(f"{url}: empty")


def topic(account: Account, arn: str) -> Finding:
    """Whether the topic of notices exists."""
    described(account, arn, "control.topic_arn", "sns", "get_topic_attributes", TopicArn=arn)
    return ok(f"{arn} exists")


def metrics(account: Account, namespace: str) -> Finding:
    """Whether CloudWatch responds."""
    described(account, namespace, "metrics.sink", "cloudwatch", "list_metrics", Namespace=namespace)
    return ok(f"CloudWatch answers; nothing was sent to {namespace}")


def job(account: Account, name: str, config: str, *, is_required: bool) -> Finding:
    """Whether the Glue job exists, runs once at a time, and has these settings.

    `config` is the place of the settings, or empty if not on S3. A job that is not required may be missing.
    """
    try:
        found = described(account, name, "control.job_name", "glue", "get_job", JobName=name)["Job"]
    except CheckEnded as exc:
        if is_required or exc.finding.state != "fault":
            raise
        return skipped(f"{name} does not exist: fine if the job runs elsewhere", f"otherwise {DEPLOY}")
    runs = found.get("ExecutionProperty", {}).get("MaxConcurrentRuns", 1)
    wrong = [
        f"{what} is {value}, expected {expected} ({why})"
        for what, value, expected, why in (
            ("Command.Name", found.get("Command", {}).get("Name", ""), "gluestreaming", "a batch job times out"),
            ("MaxConcurrentRuns", runs, 1, "the lock against a second run"),
            ("MaxRetries", found.get("MaxRetries", 0), 0, "only the control plane restarts it"),
        )
        if value != expected
    ]
    place = found.get("DefaultArguments", {}).get("--CONFIG", "")
    if not place:
        wrong.append("it has no argument --CONFIG with the place of its settings")
    if wrong:
        return fault(f"{name}: {'; '.join(wrong)}", DEPLOY)
    if config and place != config:
        return warning(f"{name} reads its settings from {place}", f"check those: --config {place}")
    return ok(f"{name}: one run at a time, no retries, settings from {place}")


def application(account: Account, name: str) -> Finding:
    """Whether the application of EMR Serverless exists and runs Spark."""
    found = described(account, name, "emr.application_id", "emr-serverless", "get_application", applicationId=name)
    about = found["application"]
    kind, state = about.get("type", ""), about.get("state", "")
    if kind.upper() != "SPARK" or state == "TERMINATED":
        shown = f"{name} is of type {kind} and {state}, expected a Spark application"
        return fault(shown, "correct emr.application_id")
    return ok(f"{name}: {about.get('releaseLabel', 'unknown release')}, {state}")


def cluster(account: Account, name: str) -> Finding:
    """Whether the ECS cluster exists and is active."""
    found = described(account, name, "ecs.cluster", "ecs", "describe_clusters", clusters=[name])
    state = next((str(each.get("status", "")) for each in found.get("clusters", ())), "missing")
    if state != "ACTIVE":
        return fault(f"{name} is {state}, expected an active cluster", "correct ecs.cluster")
    return ok(f"{name}: {state}")
