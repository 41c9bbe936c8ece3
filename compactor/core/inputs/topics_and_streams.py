"""Places that input comes from and that are no folders. No I/O."""

from compactor.core.kafka.ranges import is_kafka
from compactor.core.kinesis.places import is_kinesis


def is_topic_or_stream(place: str) -> bool:
    """Return whether a place is in Kafka or in Kinesis, and in no store."""
    return is_kafka(place) or is_kinesis(place)
