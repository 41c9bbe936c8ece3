"""Asks brokers what the doctor wants to know of a topic."""

from confluent_kafka import KafkaException, TopicCollection
from confluent_kafka.admin import AclOperation, AdminClient, ConfigResource, ResourceType

from compactor.core.logs.ports import TopicFacts


def inspected(admin: AdminClient, name: str, seconds: float) -> TopicFacts:
    """Describe a topic: its partitions, the right to read it, and for how long it keeps records.

    Raises:
        KafkaException: It may not be described, or is not there.
    """
    asked = admin.describe_topics(TopicCollection([name]), include_authorized_operations=True, request_timeout=seconds)
    found = asked[name].result()
    allowed = found.authorized_operations
    may_read = None if allowed is None else bool({AclOperation.READ, AclOperation.ALL} & set(allowed))
    try:
        retention_seconds, retention_bytes = _retention(admin, name, seconds)
    except KafkaException as exc:
        return TopicFacts(len(found.partitions), may_read, not_told=exc.args[0].name())
    return TopicFacts(len(found.partitions), may_read, retention_seconds, retention_bytes)


def _retention(admin: AdminClient, name: str, seconds: float) -> tuple[float | None, int | None]:
    resource = ConfigResource(ResourceType.TOPIC, name)
    [answer] = admin.describe_configs([resource], request_timeout=seconds).values()
    config = {key: entry.value for key, entry in answer.result().items()}
    is_deleted = "delete" in str(config.get("cleanup.policy", "delete"))
    milliseconds, length = int(config.get("retention.ms") or -1), int(config.get("retention.bytes") or -1)
    return (
        milliseconds / 1000 if is_deleted and milliseconds >= 0 else None,
        length if is_deleted and length >= 0 else None,
    )
