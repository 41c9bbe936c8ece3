"""Looks at AWS: does it answer, agree on the time, take the credentials, and have what the settings name."""

from datetime import datetime

from compactor.core.errors import CompactorError
from compactor.core.ports import Clock
from compactor.ledger.heartbeat import LIFE_SECONDS
from compactor.ops.doctor.findings import Finding, fault, ok, skipped, warning
from compactor.ops.doctor.ports import Absent, Account

SIGNATURE_SECONDS = 300.0
"""A clock that is further off has its requests refused: signatures hold for five minutes [AWS: Signature Version 4]."""

SIGNS_SECONDS = LIFE_SECONDS / 2
"""A clock that is further off than this leaves a run one late sign of life before it is taken for dead."""

_DEPLOY = "deploy it as deploy/README.md says"


def endpoint(account: Account, bucket: str) -> Finding:
    """Whether anybody answers where S3 should be."""
    try:
        account.server_time(bucket)
    except CompactorError as exc:
        found = " ".join(str(exc).split())
        return fault(
            "endpoint", found, "look at the network, HTTP_PROXY and NO_PROXY, VPC endpoints, and aws.endpoint_url"
        )
    return ok("endpoint", f"{account.endpoint} answers")


def clock(account: Account, bucket: str, here: Clock) -> Finding:
    """Whether this machine and S3 agree on the time."""
    before = here.now()
    there = account.server_time(bucket)
    return clock_finding(before, there, here.now())


def clock_finding(before: datetime, there: datetime, after: datetime) -> Finding:
    """What a clock is worth.

    Args:
        before: This machine's time before it asked.
        there: The answer.
        after: This machine's time then.
    """
    off = min(abs((there - here).total_seconds()) for here in (before, after))
    if before <= there <= after:
        off = 0.0
    way = "behind" if there > after else "ahead"
    mend = "let the machine keep time: timedatectl set-ntp true (or chronyc makestep)"
    if off > SIGNATURE_SECONDS:
        found = f"{off / 60:,.0f} min {way} of the server: AWS refuses requests that are more than 5 min off"
        return fault("clock", found, mend)
    if off > SIGNS_SECONDS:
        found = f"{off:.0f} s {way} of the server: other runs may take one here for dead after {LIFE_SECONDS:.0f} s"
        return warning("clock", found, mend)
    return ok("clock", f"agrees with the server within {SIGNS_SECONDS:.0f} s")


def region(account: Account) -> Finding:
    """Whether there is a region, without which only S3 can be asked."""
    found = account.region()
    if found is None:
        return fault("region", "none is named", "set aws.region, or AWS_REGION in the environment")
    return ok("region", found)


def credentials(account: Account, bucket: str) -> Finding:
    """Whether there are credentials, and S3 takes them."""
    source = account.credentials()
    if source is None:
        return fault(
            "credentials", "none are found", "log in (aws sso login), set AWS_PROFILE, or put keys into the environment"
        )
    refusal = account.refusal(bucket) if bucket else ""
    if refusal:
        return fault("credentials", f"those from {source} are refused: {refusal}", "log in again, or renew the keys")
    return ok("credentials", f"from {source}; what follows is tried with them, not with the role of the job")


def bucket(account: Account, name: str, keys: str) -> Finding:
    """Whether a bucket is there.

    Args:
        account: Where to ask.
        name: The bucket.
        keys: The settings' keys that name it.
    """
    found = account.bucket(name)
    label = f"bucket {name}"
    if found is Absent.MISSING:
        return fault(label, "there is no such bucket", f"make it (aws s3 mb s3://{name}), or put {keys} right")
    if found is Absent.DENIED:
        return warning(label, "not allowed to ask for it", f"allow s3:ListBucket on arn:aws:s3:::{name}")
    return ok(label, "is there")


def table(account: Account, name: str) -> Finding:
    """Whether the table of claims is one that claims can be kept in."""
    found = account.table(name)
    if isinstance(found, Absent):
        return _absent("claims", f"table {name}", found, "builder.claims", "dynamodb:DescribeTable")
    if found.keys != (("pk", "HASH", "S"),):
        keys = ", ".join(" ".join(part) for part in found.keys)
        return fault("claims", f"table {name}: its key is {keys}, expected pk HASH S", f"{_DEPLOY}, under another name")
    if found.status not in {"ACTIVE", "UPDATING"}:
        return fault("claims", f"table {name} is {found.status}, expected ACTIVE", "wait, or look at it in DynamoDB")
    if found.ttl_attribute != "expires_at":
        shown = f"by {found.ttl_attribute}" if found.ttl_attribute else "never"
        mend = "turn on its time to live by expires_at, or the table grows for ever"
        return warning("claims", f"table {name}: items are removed {shown}, expected by expires_at", mend)
    return ok("claims", f"table {name} is there, with its key and its time to live")


def queue(account: Account, url: str) -> Finding:
    """Whether the queue of events is there."""
    found = account.queue(url)
    if isinstance(found, Absent):
        return _absent("queue", url, found, "control.queue_url", "sqs:GetQueueAttributes")
    return ok("queue", f"{url}: {found.waiting:,} waiting, {found.in_flight:,} in flight")


def dead_letter_queue(account: Account, url: str) -> Finding:
    """Whether the queue of what nobody could read is there, and empty."""
    found = account.queue(url)
    if isinstance(found, Absent):
        return _absent("dead letters", url, found, "control.dead_letter_queue_url", "sqs:GetQueueAttributes")
    if found.waiting + found.in_flight:
        move = "read them, mend the cause, and start a redrive of the queue; compactor plan finds files they told of"
        return warning("dead letters", f"{url}: {found.waiting + found.in_flight:,} events nobody could read", move)
    return ok("dead letters", f"{url}: empty")


def topic(account: Account, arn: str) -> Finding:
    """Whether the topic is there."""
    absent = account.topic(arn)
    if absent:
        return _absent("topic", arn, absent, "control.topic_arn", "sns:GetTopicAttributes")
    return ok("topic", f"{arn} is there")


def job(account: Account, name: str, *, is_meant: bool, config: str) -> Finding:
    """Whether the Glue job is there, and one that only the control plane restarts.

    Args:
        account: Where to ask.
        name: The job.
        is_meant: Whether the settings name it, so that it has to be there.
        config: Where these settings are from; nothing where they are not on S3.
    """
    found = account.job(name)
    if found is Absent.MISSING and not is_meant:
        return skipped(
            "glue job", f"there is none called {name}: right where the job runs elsewhere", f"else {_DEPLOY}"
        )
    if isinstance(found, Absent):
        return _absent("glue job", name, found, "control.job_name", "glue:GetJob")
    read = found.arguments.get("--CONFIG", "")
    wrong = [
        f"{what} is {value}, expected {expected} ({why})"
        for what, value, expected, why in (
            ("Command.Name", found.kind, "gluestreaming", "a batch job ends after its timeout"),
            ("MaxConcurrentRuns", found.max_concurrent_runs, 1, "it is the lock against a second run"),
            ("MaxRetries", found.max_retries, 0, "the control plane alone restarts it"),
        )
        if value != expected
    ]
    if not read:
        wrong.append("it has no argument --CONFIG (where its settings are)")
    if wrong:
        return fault("glue job", f"{name}: {'; '.join(wrong)}", _DEPLOY)
    if config and read != config:
        return warning("glue job", f"{name} reads its settings from {read}", f"name those with --config {read}")
    return ok("glue job", f"{name}: one run at a time, no retries, settings from {read}")


def metrics(account: Account, namespace: str) -> Finding:
    """Whether CloudWatch answers. Nothing is sent: a measurement would stay there."""
    absent = account.metrics(namespace)
    if absent:
        return _absent("metrics", f"CloudWatch, {namespace}", absent, "metrics.sink", "cloudwatch:ListMetrics")
    return ok("metrics", f"CloudWatch answers; nothing was sent to {namespace}")


def _absent(name: str, what: str, absent: Absent, key: str, action: str) -> Finding:
    if absent is Absent.MISSING:
        return fault(name, f"{what}: there is none", f"{_DEPLOY}, or put {key} right")
    # Who may not look may still use it, and the other way round.
    return warning(name, f"{what}: these credentials may not look at it", f"allow {action}, or look with others")
