"""Judges Kafka: whether brokers answer and accept the user, and topics are there, may be read and keep records long."""

from compactor.core.errors import AccessError, ExtraMissing, TryAgainError
from compactor.core.kafka.ports import KafkaLog, OpenKafka, TopicFacts
from compactor.core.kafka.ranges import Topic
from compactor.core.text.formatting import count, shown_seconds
from compactor.ops.doctor.findings import Finding, fault, ok, warning

MARGIN = 4
"""Retention should be this many times as long as records may wait: an outage lasts longer than a delay."""


def cluster(kafka: OpenKafka, name: str) -> Finding:
    """Whether brokers of a cluster answer, and accept the user of the settings."""
    try:
        nodes = kafka.open().nodes(name)
    except ExtraMissing as exc:
        return fault(str(exc), "install it in the Python of the compactor, and of Spark's executors")
    except AccessError as exc:
        return fault(_line(exc), f"correct the user, the password or the certificates in kafka.clusters.{name}")
    except TryAgainError as exc:
        move = (
            "check bootstrap.servers, security.protocol and the network path, also to the addresses that brokers name"
        )
        return fault(_line(exc), f"{move}, for kafka.clusters.{name}")
    return ok(f"{count(nodes, 'broker')} {'answers' if nodes == 1 else 'answer'}")


def topic(kafka: OpenKafka, of: Topic, *, wait_seconds: float, is_planned: bool) -> list[Finding]:
    """Whether a topic is there and may be read, and whether its records are kept long enough.

    Args:
        kafka: The brokers.
        of: The topic.
        wait_seconds: How long a record may wait until it is read.
        is_planned: Whether jobs plan the topic.
    """
    log: KafkaLog = kafka.open()
    try:
        facts = log.inspect(of)
    except AccessError as exc:
        return [fault(_line(exc), f"allow Describe and Read on topic {of.name}")]
    if facts is None:
        found = f"{of}: there is no such topic, or it may not be described"
        return [fault(found, f"create it, correct its name, or allow Describe on topic {of.name}")]
    if facts.may_read is False:
        return [fault(f"{of}: may be described, and not be read", f"allow Read on topic {of.name}")]
    by_command = "" if is_planned else "; no job plans it: `compactor plan` does, or name it in kafka.topics"
    return [ok(f"{of}: {count(facts.partitions, 'partition')}{by_command}"), _retention(of, facts, wait_seconds)]


def _retention(of: Topic, facts: TopicFacts, wait_seconds: float) -> Finding:
    if facts.not_told:
        move = f"allow DescribeConfigs on topic {of.name}, or see that it keeps records far longer than"
        return warning(f"{of}: its retention is not known: {facts.not_told}", f"{move} {shown_seconds(wait_seconds)}")
    kept = "for ever" if facts.retention_seconds is None else f"for {shown_seconds(facts.retention_seconds)}"
    raise_it = f"raise retention.ms of topic {of.name}"
    if facts.retention_seconds is not None and facts.retention_seconds <= wait_seconds:
        waits = f"may wait for {shown_seconds(wait_seconds)} before they are read"
        return fault(f"{of}: records are kept {kept}, and {waits}", raise_it)
    if facts.retention_seconds is not None and facts.retention_seconds < MARGIN * wait_seconds:
        waits = f"less than {MARGIN} times the {shown_seconds(wait_seconds)} for which they may wait"
        return warning(f"{of}: records are kept {kept}, {waits}", raise_it)
    if facts.retention_bytes is not None:
        size = f"up to {facts.retention_bytes:,} bytes a partition"
        move = f"see that this is far above what comes in {shown_seconds(wait_seconds)}, or unset retention.bytes"
        return warning(f"{of}: records are kept {kept}, and {size}", move)
    return ok(f"{of}: records are kept {kept}")


def _line(error: Exception) -> str:
    return " ".join(str(error).split())
